"""`/nav scaffold`: a menu file to start from, made of a page's own links."""

import re
from collections.abc import Iterator
from typing import Final

from stringd.documents.auto_shortcuts import LONG_LABEL, AutoShortcuts
from stringd.documents.blocks import slug
from stringd.documents.document import Document
from stringd.documents.links import one_line
from stringd.documents.shortcuts import Shortcut, defined_shortcut

NO_LINKS: Final = (
    "No links found on this page. Add links such as [@docs The docs](./docs.md), "
    "then run /nav scaffold again."
)
_UNSAFE = re.compile(r"[^A-Za-z0-9_-]")


def nav_scaffold(document: Document) -> str | None:
    """The scaffold's text; None when the page has no links (say `NO_LINKS`)."""
    lines = [f"[@{each.id} {each.label}]({each.target})" for each in _entries(document)]
    if not lines:
        return None
    return "\n".join(
        [
            "Save this as ./nav/main.md and keep the lines you want:",
            "",
            "```markdown",
            *lines,
            "```",
            "",
            "Then add this line to the document:",
            "",
            "[!nav:main](./nav/main.md)",
        ]
    )


def _entries(document: Document) -> Iterator[Shortcut]:
    """Existing shortcuts first, then plain links; each address once."""
    yield from document.shortcuts.values()
    known = {shortcut.target for shortcut in document.shortcuts.values()}
    directives = {each.start for each in document.directives}
    ids = AutoShortcuts(document.shortcuts)
    for link in document.links:
        target = link.target or document.references.get(link.name or "")
        plain = not link.image and link.start not in directives
        if not target or not plain or target in known or defined_shortcut(document.source, link):
            continue
        label = one_line(document.source[link.start + 1 : link.label_end])
        if label.startswith("!") or target.startswith("@"):
            continue
        known.add(target)
        stem = _UNSAFE.sub("", slug(label))[:LONG_LABEL].strip("-")
        if stem in ids.targets or stem in document.shortcuts:
            stem = stem[: LONG_LABEL - len("-99")].strip("-")
        ident = ids.adopt(stem, target) if stem else ids.id_for("", target)
        yield Shortcut(ident, label or ident, target)
