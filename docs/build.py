"""`python docs/build.py [folder]`: the documentation as static pages that load nothing else.

Needs markdown-it-py, which the `dev` extra brings.
"""

import html
import re
import sys
from itertools import pairwise
from pathlib import Path
from typing import Any

from markdown_it import MarkdownIt

DOCS = Path(__file__).parent
FIRST = (
    *("index", "tutorial", "concepts", "mcp", "clients", "commands", "topics", "bash"),
    *("documents", "apps", "chanflow", "daemon", "gate", "runs", "strategies", "models", "tools"),
    *("security", "sandbox", "trust", "operations", "supported", "comparison", "tokens"),
    *("architecture", "reviewing", "api"),
)
"""The order of the menu; pages not named here follow."""

STYLE = """
:root { color-scheme: light dark; font: 17px/1.55 system-ui, sans-serif }
body { margin: 0 auto; padding: 1rem; max-width: 76rem; display: grid; gap: 2rem;
  grid-template-columns: 11rem minmax(0, 1fr) }
nav { position: sticky; top: 1rem; align-self: start; display: grid; gap: .25rem }
nav a { text-decoration: none } nav a[aria-current] { font-weight: 700 }
main { overflow-wrap: break-word }
table { border-collapse: collapse; display: block; overflow: auto }
th, td { border: 1px solid #8886; padding: .3rem .6rem; text-align: left; vertical-align: top }
pre { overflow: auto; padding: .8rem; background: #8881 } code { font-size: .9em }
@media (max-width: 50rem) { body { display: block } nav { position: static } }
"""


def build(folder: Path) -> list[Path]:
    """Write every page into the folder; the files written."""
    folder.mkdir(parents=True, exist_ok=True)
    pages = sorted(DOCS.rglob("*.md"), key=lambda page: (_rank(page), page.stem))
    titles = {name_of(page): _title(page) for page in pages if page.parent == DOCS}
    written = []
    for page in pages:
        target = folder / f"{name_of(page)}.html"
        body = render(page.read_text(encoding="utf-8"), page.parent)
        target.write_text(_page(name_of(page), titles, _title(page), body), encoding="utf-8")
        written.append(target)
    return written


def name_of(page: Path) -> str:
    """The built page's name: pages of a sub-folder carry the folder's name."""
    return "-".join(page.relative_to(DOCS).with_suffix("").parts)


def render(text: str, folder: Path = DOCS) -> str:
    """Markdown as HTML: headings can be linked, links lead to the built pages."""
    markdown = MarkdownIt("commonmark", {"html": False}).enable("table")
    tokens = markdown.parse(text)
    seen: list[str] = []
    for token, inner in pairwise(tokens):
        if token.type == "heading_open":
            name = anchor(inner.content)
            earlier = seen.count(name)
            seen.append(name)
            token.attrs["id"] = f"{name}-{earlier}" if earlier else name
        for child in token.children or ():
            _lead(child, folder)
    rendered: str = markdown.renderer.render(tokens, markdown.options, {})
    return rendered


def anchor(heading: str) -> str:
    """The name of a heading, as code hosts make it."""
    text = re.sub(r"\[([^\]]*)\]\([^)]*\)", r"\1", heading).lower()
    return re.sub(r"[^\w\- ]", "", text).replace(" ", "-")


def _lead(token: Any, folder: Path) -> None:
    """A link to a page of ours leads to its built form; one to another file stays a name."""
    if token.type != "link_open":
        return
    path, mark, place = str(token.attrs.get("href", "")).partition("#")
    if not path or "://" in path:
        return
    aim = (folder / path).resolve()
    if aim.suffix == ".md" and DOCS.resolve() in aim.parents:
        token.attrs["href"] = f"{name_of(DOCS / aim.relative_to(DOCS.resolve()))}.html{mark}{place}"
    elif path.startswith("../"):
        token.attrs["href"] = "index.html"


def _title(page: Path) -> str:
    return page.read_text(encoding="utf-8").partition("\n")[0].removeprefix("# ").strip()


def _rank(page: Path) -> int:
    return FIRST.index(page.stem) if page.stem in FIRST else len(FIRST)


def _page(current: str, titles: dict[str, str], title: str, body: str) -> str:
    entries = "".join(
        f'<a href="{stem}.html"{" aria-current=page" if stem == current else ""}>'
        f"{html.escape(each)}</a>"
        for stem, each in titles.items()
    )
    return (
        '<!doctype html><html lang="en"><head><meta charset="utf-8">'
        '<meta name="viewport" content="width=device-width, initial-scale=1">'
        f"<title>{html.escape(title)} · stringd</title><style>{STYLE}</style></head>"
        f"<body><nav>{entries}</nav><main>{body}</main></body></html>\n"
    )


if __name__ == "__main__":
    made = build(Path(sys.argv[1]) if len(sys.argv) > 1 else Path("build/docs"))
    sys.stdout.write(f"{len(made)} pages in {made[0].parent}\n")
