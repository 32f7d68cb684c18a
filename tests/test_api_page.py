"""docs/api.md lists the public names as their docstrings describe them."""

from importlib.util import module_from_spec, spec_from_file_location
from pathlib import Path

DOCS = Path(__file__).parents[1] / "docs"


def test_the_page_is_what_the_docstrings_say() -> None:
    found = spec_from_file_location("docs_api", DOCS / "api.py")
    assert found is not None
    assert found.loader is not None
    module = module_from_spec(found)
    found.loader.exec_module(module)
    assert (DOCS / "api.md").read_text("utf-8") == module.page(), "run: python docs/api.py"
