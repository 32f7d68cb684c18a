"""Patterns over paths, as policies and searches use them."""

from contextlib import suppress

import pytest
from hypothesis import given
from hypothesis import strategies as st

from stringd.runs.guard.globs import GlobError, matches


@pytest.mark.parametrize(
    ("pattern", "path", "fits"),
    [
        ("**", ".", True),
        ("**", "a/b/.c", True),
        (".", ".", True),
        ("*", "a", True),
        ("*", "a/b", False),
        ("*.py", "a.py", True),
        ("*.py", "src/a.py", False),
        ("**/*.py", "a.py", True),
        ("**/*.py", "src/deep/a.py", True),
        ("src/**", "src", True),
        ("src/**", "src/a/b", True),
        ("src/**", "srcs", False),
        ("src/**/b", "src/b", True),
        ("src/**/b", "src/x/y/b", True),
        ("./src/*", "src/a", True),
        ("src/", "src", True),
        ("a?c", "abc", True),
        ("a?c", "a/c", False),
        ("[ab].txt", "a.txt", True),
        ("[!ab].txt", "a.txt", False),
        ("[!a]b", "/b", False),
        ("*.{py,md}", "x.md", True),
        ("{a,b/{c,d}}", "b/d", True),
        ("a.c", "abc", False),
        ("a(b", "a(b", True),
        ("[", "[", True),
        ("[!]]", "a", True),
        ("[!]]", "]", False),
        ("[!]", "[!]", True),
        ("*a*b", "xaxb", True),
        ("*a*b", "xbxa", False),
        ("a/./b", "a/b", True),
        ("**/secret", "a\nb/secret", True),
    ],
)
def test_patterns(pattern: str, path: str, fits: bool) -> None:
    assert matches(pattern, path) is fits


def test_a_pattern_that_explodes_is_refused() -> None:
    with pytest.raises(GlobError, match="Too many alternatives"):
        matches("{a,b}" * 20, "a")


@pytest.mark.parametrize(
    "pattern", ["*" * 300, "*a" * 100 + "b", "**/a/" * 60 + "b", "**/*a*/" * 60 + "b", "a*" * 200]
)
def test_no_pattern_takes_for_ever(pattern: str) -> None:
    """Backtracking would not end within the lifetime of this machine."""
    fits = [matches(pattern, path) for path in ("a" * 200 + "c", "a/" * 200 + "c")]
    assert fits == [not pattern.endswith("b"), False]


@given(st.text(max_size=30), st.text(max_size=30))
def test_any_text_is_a_pattern_or_refused(pattern: str, path: str) -> None:
    with suppress(GlobError):
        assert matches(pattern, path) in (True, False)
