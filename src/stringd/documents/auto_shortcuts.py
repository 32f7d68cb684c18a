"""Auto-shortcuts: short names for the long addresses of a rendering."""

import re
from collections.abc import Collection
from typing import Final

LONG_TARGET: Final = 40
LONG_LABEL: Final = 20
_NAMEABLE = re.compile(r"[A-Za-z0-9\s-]+", re.ASCII)


def shortens(target: str) -> bool:
    """Whether a link is worth a shortcut: a web address, or anything long."""
    if target.startswith("@"):
        return False
    return target.startswith(("http://", "https://")) or len(target) > LONG_TARGET


class AutoShortcuts:
    """Hands out ids for one rendering. An id never means two things, nor hides an author's."""

    def __init__(self, taken: Collection[str] = ()) -> None:
        self.targets: dict[str, str] = {}
        self._taken = set(taken)
        self._next: dict[str, int] = {}

    def id_for(self, label: str, target: str) -> str:
        """A fresh id for a link: its label's slug if that is short and plain, else `link-N`."""
        stem = ""
        if len(label) <= LONG_LABEL and _NAMEABLE.fullmatch(label):
            stem = "-".join(label.lower().split())
        ident = stem or "link-1"
        if ident in self._taken:
            ident = self._numbered(stem, 2) if stem else self._numbered("link", 1)
        self._taken.add(ident)
        self.targets[ident] = target
        return ident

    def adopt(self, ident: str, target: str) -> str:
        """An id for a shortcut of included text: its own, unless something else has it."""
        if self.targets.get(ident) == target:
            return ident
        free = self._numbered(ident, 2) if ident in self._taken else ident
        self._taken.add(free)
        self.targets[free] = target
        return free

    def _numbered(self, stem: str, number: int) -> str:
        """The next free `stem-N`, from `number` on."""
        # Counting on from the last number given keeps a thousand equal labels linear.
        at = max(number, self._next.get(stem, number))
        while f"{stem}-{at}" in self._taken:
            at += 1
        self._next[stem] = at + 1
        return f"{stem}-{at}"
