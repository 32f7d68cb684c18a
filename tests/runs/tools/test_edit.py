"""Where an edit applies when its text is not there letter for letter."""

import pytest

from stringd.runs.tools.files.edit import Edit, apply
from stringd.runs.tools.output import ToolFailure


@pytest.mark.parametrize(
    ("text", "old", "changed"),
    [
        ("  a\n\tb  \nc", "a\nb", "NEW\nc"),
        ("x  =\t1\ny", "x = 1", "NEW\ny"),
        ("(x  =\t1)", "x = 1", "(NEW)"),
        ("def f():\n    one\n    two\nend\nend", "def f():\n    other\nend", "NEW\nend"),
        ("a\n1\nz\n2\nz", "a\n?\nz", "NEW\n2\nz"),
    ],
)
def test_blanks_and_the_middle_of_a_block_may_differ(text: str, old: str, changed: str) -> None:
    assert apply(text, [Edit(old, "NEW")], "f") == changed


@pytest.mark.parametrize(
    ("text", "old"),
    [
        ("x\n" * 200_000 + "z\n", "\n".join([" x "] * 2000 + ["y"])),
        ("x\n" * 200_000, "\n".join(["x"] * 3 + ["y", "x y"])),
        ("a " * 1_000_000, "a  " * 20_000 + "b"),
        ("a" * 2_000_000, "a" * 20_000 + "b"),
    ],
)
def test_looking_for_what_is_not_there_comes_to_an_end(text: str, old: str) -> None:
    """Trying every place anew would take hours."""
    with pytest.raises(ToolFailure, match="is not in f"):
        apply(text, [Edit(old, "NEW")], "f")
