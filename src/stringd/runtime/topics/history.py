"""Where a topic has been: the places `/back` returns to."""

from collections.abc import Iterable, Iterator
from dataclasses import replace
from typing import Final

from stringd.documents import parse
from stringd.runtime.topics.location import Location

MAX_HISTORY: Final = 100
MAX_REMEMBERED: Final = 4 * 1024 * 1024
"""Characters of documents the history keeps for when they cannot be loaded again."""


class History:
    """The last places, oldest first; of old large documents only their address."""

    __slots__ = ("_bare", "_places", "_size")

    def __init__(self, places: Iterable[Location] = ()) -> None:
        self._places: list[Location] = []
        self._bare = 0
        """How many of the oldest places are known to hold no document."""
        self._size = 0
        for place in places:
            self.push(place)

    def __len__(self) -> int:
        return len(self._places)

    def __iter__(self) -> Iterator[Location]:
        return iter(self._places)

    @property
    def last(self) -> Location:
        """The place before the current one. There must be one."""
        return self._places[-1]

    def push(self, place: Location) -> None:
        """Put a place on top; the oldest go, and of large documents only their address stays."""
        self._places.append(_unread(place))
        self._size += _weight(place)
        if len(self._places) > MAX_HISTORY:
            self._size -= _weight(self._places.pop(0))
            self._bare = max(0, self._bare - 1)
        while self._size > MAX_REMEMBERED:
            oldest = self._places[self._bare]
            self._size -= _weight(oldest)
            oldest.page = None
            self._bare += 1

    def pop(self) -> None:
        """Drop the place on top."""
        self._size -= _weight(self._places.pop())
        self._bare = min(self._bare, len(self._places))


def _unread(place: Location) -> Location:
    """The same place with the text of its document alone: what was found in it weighs more."""
    page = place.page
    if page is None:
        return place
    old = page.document
    text = parse(old.source, old.uri, original=old.original, converted=old.converted)
    return Location(place.place, replace(page, document=text))


def _weight(place: Location) -> int:
    if place.page is None:
        return 0
    document = place.page.document
    return len(document.source) + len(document.original)
