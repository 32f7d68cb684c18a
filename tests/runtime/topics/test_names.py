"""Paths as replies show them."""

from pathlib import Path

import pytest

from stringd.runtime.topics.location import display, display_directory


@pytest.mark.parametrize(
    ("path", "shown", "directory"),
    [
        ("/h", ".", "~/"),
        ("/h/a/b", "a/b", "~/a/b/"),
        ("/hx/a", "/hx/a", "/hx/a/"),
    ],
)
def test_paths_are_shown_from_home(path: str, shown: str, directory: str) -> None:
    assert display("/h", Path(path)) == shown
    assert display_directory("/h", Path(path)) == directory
