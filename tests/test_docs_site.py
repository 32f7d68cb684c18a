"""The static pages: every link leads somewhere, and text stays text."""

import re
from html import unescape
from importlib.util import module_from_spec, spec_from_file_location
from pathlib import Path
from types import ModuleType

import pytest

DOCS = Path(__file__).parents[1] / "docs"


@pytest.fixture(scope="module")
def site() -> ModuleType:
    found = spec_from_file_location("docs_build", DOCS / "build.py")
    assert found is not None
    assert found.loader is not None
    module = module_from_spec(found)
    found.loader.exec_module(module)
    return module


def test_every_page_is_built_and_every_link_of_it_leads_somewhere(
    site: ModuleType, tmp_path: Path
) -> None:
    pages = {path.name: path.read_text("utf-8") for path in site.build(tmp_path)}
    assert len(pages) == len(list(DOCS.rglob("*.md")))
    anchors = {name: set(re.findall(r' id="([^"]+)"', text)) for name, text in pages.items()}
    lost = []
    for name, text in pages.items():
        for link in map(unescape, re.findall(r'href="([^"]+)"', text)):
            page, _, place = link.partition("#")
            if "://" not in page and (
                (page or name) not in pages or (place and place not in anchors[page or name])
            ):
                lost.append(f"{name}: {link}")
    assert lost == []


def test_nothing_is_loaded_from_elsewhere(site: ModuleType, tmp_path: Path) -> None:
    for page in site.build(tmp_path):
        assert not re.search(r"<(script|link|img|iframe)\b", page.read_text("utf-8"))


def test_text_cannot_become_markup(site: ModuleType) -> None:
    assert "<script>" not in site.render("# A <script>x</script>\n\n<script>alert(1)</script>\n")
