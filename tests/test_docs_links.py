"""Every link of the documentation leads somewhere."""

import re
from functools import cache
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
PAGES = sorted([*ROOT.glob("*.md"), *ROOT.glob("docs/**/*.md"), *ROOT.glob("examples/**/*.md")])
FENCE = re.compile(r"^ *(`{3,}|~{3,}).*?^ *\1 *$", re.MULTILINE | re.DOTALL)
CODE = re.compile(r"`[^`\n]*`")
LINK = re.compile(r"\[[^\]\n]*\]\(([^)\s]+)\)")
HEADING = re.compile(r"^#{1,6} +(.+?) *#*$", re.MULTILINE)


def prose(page: Path) -> str:
    """A page without its code blocks."""
    return FENCE.sub("", page.read_text(encoding="utf-8"))


def links(page: Path) -> list[str]:
    """Where the links and pictures of a page lead."""
    return [str(target) for target in LINK.findall(CODE.sub("", prose(page)))]


@cache
def anchors(page: Path) -> frozenset[str]:
    """The names a page's headings can be linked by, as code hosts make them."""
    names: list[str] = []
    for heading in HEADING.findall(prose(page)):
        text = re.sub(r"\[([^\]]*)\]\([^)]*\)", r"\1", heading).lower()
        name = re.sub(r"[^\w\- ]", "", text).replace(" ", "-")
        earlier = names.count(name)
        names.append(f"{name}-{earlier}" if earlier else name)
    return frozenset(names)


def broken(page: Path) -> list[str]:
    """The relative links of a page that lead nowhere."""
    found = []
    for target in links(page):
        path, _, anchor = target.partition("#")
        if "://" in path or path.startswith("mailto:"):
            continue
        aim = page.parent / path if path else page
        missing = not aim.exists()
        lost = bool(anchor) and aim.suffix == ".md" and not missing and anchor not in anchors(aim)
        if missing or lost:
            found.append(target)
    return found


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_every_link_and_anchor_exists(page: Path) -> None:
    assert broken(page) == []


def test_every_page_can_be_reached_from_the_first() -> None:
    seen: set[Path] = set()
    waiting = [ROOT / "docs" / "index.md"]
    while waiting:
        page = waiting.pop().resolve()
        if page in seen or page.suffix != ".md":
            continue
        seen.add(page)
        paths = [target.partition("#")[0] for target in links(page)]
        waiting += [page.parent / path for path in paths if path and "://" not in path]
    pages = {page.resolve() for page in ROOT.glob("docs/*.md")}
    assert {page.name for page in pages - seen} == set()


def test_broken_links_would_be_found(tmp_path: Path) -> None:
    page = tmp_path / "page.md"
    page.write_text(
        "# A `b` (c)!\n[x](none.md) [y](#nope) [z](#a-b-c) [w](page.md#a-b-c)\n"
        "```\n[not](a-link.md)\n```\n`[nor](this.md)` [web](https://example.org/x)\n"
    )
    assert broken(page) == ["none.md", "#nope"]
