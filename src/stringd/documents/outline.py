"""The outline of a document: what can be opened in it by `#id`, in its order."""

import re
from typing import Final, NamedTuple

from stringd.documents.blocks import slug
from stringd.documents.document import Document

_OWN_ID: Final = re.compile(r"[ \t]*\{#([^{}\s]+)\}")
_CLOSING: Final = re.compile(r"[ \t]+#+$")


class OutlineEntry(NamedTuple):
    """A heading with its level, or a marked block or an include, whose level is 0."""

    id: str
    title: str
    level: int
    start: int = -1
    """Where it begins in the source; -1 for an include."""


def outline(document: Document) -> list[OutlineEntry]:
    """Headings and marked blocks by their place, then includes; each id once."""
    found = [
        (span.start, OutlineEntry(span.id, "", 0, span.start)) for span in document.blocks.values()
    ]
    for heading in document.headings:
        own = _OWN_ID.search(heading.text)
        title = _CLOSING.sub("", _OWN_ID.sub("", heading.text)).strip()
        ident = own[1] if own else slug(heading.text)
        found.append((heading.start, OutlineEntry(ident, title, heading.level, heading.start)))
    found.sort(key=lambda each: each[0])
    entries = [entry for _, entry in found if entry.id]
    entries += [OutlineEntry(each.id, "", 0) for each in document.includes]
    return list({entry.id: entry for entry in reversed(entries)}.values())[::-1]
