"""The blocks of the manual page run, one after the other, as a reader would type them."""

import re
from pathlib import Path

PAGE = Path(__file__).parents[2] / "docs" / "library.md"


def test_the_examples_of_the_page_work() -> None:
    blocks = re.findall(r"^```python\n(.*?)^```", PAGE.read_text("utf-8"), re.MULTILINE | re.DOTALL)
    assert len(blocks) >= 7
    code = compile("\n".join(blocks), str(PAGE), "exec")
    exec(code, {"__name__": "manual"})
