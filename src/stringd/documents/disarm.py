"""Text made from a web page declares nothing: what would read as SFMD in it is escaped, visibly.

Converters make mistakes, and pages carry what strangers wrote. So the finished text is read the
way a reader of documents would, and whatever it finds there gets a backslash.
"""

from collections.abc import Iterator
from typing import Final

from stringd.documents.action_blocks import action_info
from stringd.documents.document import Document

_SIGNS: Final = ("[!", "[@", "]:", "<!-- ", "act.")
# Escaping one thing can uncover another, such as what a frontmatter hid; never many.
_ROUNDS: Final = 10


def disarmed(text: str) -> str:
    """The text without frontmatter, blocks, directives, shortcuts, references and actions."""
    for _ in range(_ROUNDS):
        if not text.startswith("---") and not any(sign in text for sign in _SIGNS):
            break
        places = sorted(set(_declarations(Document(text))))
        if not places:
            break
        cuts = [0, *places]
        pieces = [text[a:b] for a, b in zip(cuts, [*places, len(text)], strict=True)]
        text = "\\".join(pieces)
    return text


def _declarations(document: Document) -> Iterator[int]:
    """Where a backslash makes each declaration plain text."""
    source = document.source
    if document.body_start:
        yield 0
    yield from (source.index("<", mark.start) for mark in document.markers)
    yield from (source.index("[", each.start) for each in document.directives)
    yield from (source.index("[", line.start) for line in document.definitions)
    yield from (link + 1 for link in document.defined.inline)
    for fence in document.fences.all:
        if action_info(fence.info) is not None:
            yield source.index("act.", fence.start)
