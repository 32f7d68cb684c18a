"""Strategies loaded a moment ago, good while nothing that they were read from has changed."""

import time
from collections import OrderedDict
from collections.abc import Mapping
from typing import Final, NamedTuple

from stringd.runs.engine.run import RunSettings
from stringd.runs.strategy.definition import Strategy
from stringd.system.file_marks import FileMark, mark, settled

MEMORY_SECONDS: Final = 2.0
"""After this everything is judged again: whose a file is depends on more than the file."""
_MOST: Final = 64


class RememberedStrategy(NamedTuple):
    """What need not be loaded again; where there are skills or servers nothing is remembered."""

    strategy: Strategy


class _Remembrance(NamedTuple):
    found: RememberedStrategy
    marks: Mapping[str, FileMark]
    until: float


class StrategyMemory:
    """By settings. Safe to share by threads."""

    def __init__(self) -> None:
        self._entries: OrderedDict[RunSettings, _Remembrance] = OrderedDict()

    def find(self, settings: RunSettings) -> RememberedStrategy | None:
        """What these settings led to, if it would be the same now."""
        entry = self._entries.get(settings)
        if entry is None:
            return None
        if time.monotonic() < entry.until and all(
            mark(path) == before for path, before in entry.marks.items()
        ):
            return entry.found
        self._entries.pop(settings, None)
        return None

    def keep(
        self,
        settings: RunSettings,
        found: RememberedStrategy,
        marks: Mapping[str, FileMark],
    ) -> None:
        """Remember what was loaded after the marks of everything it depends on were taken."""
        if settled(marks.values()):
            self._entries[settings] = _Remembrance(found, marks, time.monotonic() + MEMORY_SECONDS)
            while len(self._entries) > _MOST:
                self._entries.popitem(last=False)
