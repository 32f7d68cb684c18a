"""Places, and how the head of an answer describes them."""

from pathlib import Path

import pytest

from stringd.actions.provenance import HomeFile
from stringd.documents import parse
from stringd.runtime.topics.location import DocumentPlace, Location, Page, is_web, path_of
from stringd.wire.exec import Meta


def test_a_loaded_place_is_described_by_its_document() -> None:
    source = (
        "---\ntitle: T\n---\n[!nav:main](m.md)\n\n```act.go\nGET https://x.test/\n```\n[a][@b]\n"
    )
    page = Page(parse(source, "file:///h/my%20page.md"), HomeFile())
    assert Location.of(page, "s").meta(2) == Meta(
        "file:///h/my%20page.md",
        "T",
        "#s",
        ("main",),
        ("go",),
        2,
        "s",
        False,
        ("Unknown shortcut @b — define with: [@b a](URI)",),
    )
    assert page.path == Path("/h/my page.md")


def test_a_place_that_is_not_loaded_keeps_its_address_and_block() -> None:
    assert Location(DocumentPlace("https://x.test/", "b")).meta(0) == Meta(
        "https://x.test/", None, "#b", block_id="b"
    )


def test_the_description_follows_the_history() -> None:
    location = Location.of(Page(parse("", "file:///a"), HomeFile()))
    assert location.meta(0) is location.meta(0)
    assert location.meta(1).history_length == 1


@pytest.mark.parametrize(
    ("uri", "path"),
    [
        ("file:///a%20b/%ED%95%9C.md", Path("/a b/한.md")),
        ("file:///100%2525", Path("/100%25")),
        ("https://x.test/a", None),
    ],
)
def test_a_file_address_names_a_path(uri: str, path: Path | None) -> None:
    assert path_of(uri) == path
    assert is_web(uri) is (path is None)
