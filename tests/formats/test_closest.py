"""What a person may have meant."""

import pytest

from stringd.formats.closest import closest_first

NAMES = ["read_file", "glob", "write_file", "run_command", "search_files"]


@pytest.mark.parametrize(
    ("meant", "first"),
    [
        ("readfile", "read_file"),
        ("command", "run_command"),
        ("GLOB", "glob"),
        ("wirte_file", "write_file"),
    ],
)
def test_the_closest_name_comes_first_and_none_is_left_out(meant: str, first: str) -> None:
    found = closest_first(meant, NAMES)
    assert found[0] == first
    assert sorted(found) == sorted(NAMES)


def test_without_any_likeness_the_order_stays() -> None:
    assert closest_first("qqq", NAMES) == NAMES
