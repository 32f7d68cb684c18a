"""Install manifests."""

import json

import pytest

from stringd.runtime.topics.location import AppManifest, Part, read_manifest

URL = "https://x.test/apps/weather"
FILES = [
    {"path": "string.md", "content": "# W"},
    {"path": "./docs/a.md", "url": "https://cdn.test/a.md"},
    {"path": 5},
    "nonsense",
]


def manifest() -> AppManifest:
    found = read_manifest(json.dumps({"files": FILES, "install_hint": "hint"}).encode(), URL)
    assert found is not None
    return found


def test_files_are_listed_by_path_and_nonsense_is_skipped() -> None:
    found = manifest()
    assert found.files == {
        "string.md": Part("# W", None),
        "docs/a.md": Part(None, "https://cdn.test/a.md"),
    }
    assert found.install_hint == "hint"
    assert found.named == "string.md, docs/a.md"


@pytest.mark.parametrize(
    ("url", "name"),
    [
        (URL, "string.md"),
        ("https://x.test/apps/string.md", "string.md"),
        ("https://x.test/apps/docs/a.md", "docs/a.md"),
        ("https://x.test/docs/a.md", None),
        ("https://other.test/apps/docs/a.md", None),
    ],
)
def test_links_are_looked_up_beside_the_manifest(url: str, name: str | None) -> None:
    found = manifest()
    assert found.find(url) == (found.files[name] if name else None)


@pytest.mark.parametrize(
    "body", [b"", b"# md", b"{", b"[]", b'{"files": {}}', b'{"a": 1}', b"\xff{", b"[" * 100_000]
)
def test_anything_else_is_no_manifest(body: bytes) -> None:
    assert read_manifest(body, URL) is None


def test_a_hint_that_is_no_text_is_ignored() -> None:
    found = read_manifest(b' {"files": [], "install_hint": 5}', URL)
    assert found == AppManifest(URL, {}, None)
    assert found.named == "none"
