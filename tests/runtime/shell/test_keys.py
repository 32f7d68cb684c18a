"""Key names become the bytes a terminal sends."""

import pytest

from stringd.runtime.shell.errors import UnknownKeyError
from stringd.runtime.shell.keys import key_bytes


@pytest.mark.parametrize(
    ("names", "sent"),
    [
        ("ctrl-c", b"\x03"),
        ("CTRL-D", b"\x04"),
        ("^Z", b"\x1a"),
        ("C-\\", b"\x1c"),
        ("enter", b"\r"),
        ("up", b"\x1b[A"),
        ("pagedown", b"\x1b[6~"),
        ("f12", b"\x1b[24~"),
        ("escape : q ! enter", b"\x1b:q!\r"),
        ("é", "é".encode()),
    ],
)
def test_a_name_becomes_the_bytes_of_its_key(names: str, sent: bytes) -> None:
    assert key_bytes(names) == sent


@pytest.mark.parametrize("names", ["", "  ", "ctrl-1", "bogus", "enter bogus"])
def test_a_name_that_is_no_key_is_refused(names: str) -> None:
    with pytest.raises(UnknownKeyError):
        key_bytes(names)
