"""Which key presses decide: only one that was pressed on purpose, after a moment of silence. Pure.

A key on its way before the question could be read, one of a paste, or a key that is held down is
not a decision. So a key counts only after `quiet` seconds without any key, and every key that is
dropped starts that silence again. The machine outlives its questions: what was typed at one counts
against the next.
"""

from collections import deque
from enum import Enum
from typing import Final

from stringd.gate.keys import ALLOWING, MOVING, Key, KeyReader, classify

ARMING_SECONDS: Final = 0.4
# A deciding key waits this long for others: the rest of a paste, or a second key.
SETTLE_SECONDS: Final = 0.01
# Twice the same key within this may be one key held down: keyboards wait up to a second to repeat.
_REPEAT_FACTOR: Final = 2.75
# The eye needs longer to see that a question was exchanged for another one.
_CHANGE_FACTOR: Final = 5.0
_NEVER: Final = float("-inf")


class Dropped(Enum):
    """Why a key did not count, in words for the person who pressed it."""

    EARLY = "That key came too soon and was ignored. Wait a moment, then press it again."
    HELD = "A key held down is ignored. Release it, wait a second, then press it again."
    SEVERAL = "Several keys at once are ignored."


class Arming:
    """Takes what the terminal sent and gives the keys that count."""

    def __init__(self, quiet: float = ARMING_SECONDS) -> None:
        self._quiet = quiet
        self._reader = KeyReader()
        self._armed_at = 0.0
        # When a key that allows something was last pressed.
        self._pressed_at = dict.fromkeys(ALLOWING, _NEVER)
        self._held: Key | None = None
        self._settled_at = 0.0
        self._ready: deque[Key] = deque()
        self._dropped: Dropped | None = None

    def shown(self, now: float) -> None:
        """A question is complete on the screen since now."""
        # A key from before was not meant for what is there now.
        self._held = None
        self._start_silence(now)

    def changed(self, now: float) -> None:
        """A question left the screen without a key; one pressed now may be meant for it."""
        self._armed_at = max(self._armed_at, now + self._quiet * _CHANGE_FACTOR)

    def typed_ahead(self, data: bytes, now: float) -> None:
        """What was typed before the question; none of it counts, but it may be a held key."""
        self._held = self._dropped = None
        self._ready.clear()
        if data:
            self._drop(None, now)
            self._note_pressed([classify(press) for press in self._reader.feed(data, now)], now)

    def used_elsewhere(self, data: bytes, now: float) -> None:
        """Keys went to something else than a question; one that is held down is known as such."""
        self._drop(None, now)
        self._note_pressed([classify(press) for press in KeyReader().feed(data, now)], now)

    def feed(self, data: bytes, now: float) -> None:
        """Bytes came at this time."""
        if data:
            self._take_in(self._reader.feed(data, now), now)

    def take(self, now: float) -> Key | None:
        """The next key that counts, once."""
        if presses := self._reader.flush(now):
            self._take_in(presses, now)
        if self._ready:
            return self._ready.popleft()
        if self._held is None or now < self._settled_at:
            return None
        key, self._held = self._held, None
        self._start_silence(now)
        return key

    def take_dropped(self, now: float) -> Dropped | None:
        """Why keys were ignored, once they stop coming."""
        if self._dropped is None or now < self._settled_at:
            return None
        dropped, self._dropped = self._dropped, None
        return dropped

    def due(self) -> float | None:
        """When there may be something to take without a further key."""
        times = [self._settled_at] if self._held or self._dropped or self._ready else []
        waiting = self._reader.due()
        return min([*times, *([] if waiting is None else [waiting])], default=None)

    def _take_in(self, presses: list[bytes], now: float) -> None:
        keys = [classify(press) for press in presses]
        if not keys:
            return
        self._settled_at = now + SETTLE_SECONDS
        if self._held is not None:
            self._drop(Dropped.SEVERAL, now)
        elif all(key in MOVING for key in keys):
            self._ready.extend(key for key in keys if key is not Key.NOTHING)
            self._start_silence(now)
        elif len(keys) > 1:
            self._drop(Dropped.SEVERAL, now)
        elif now < self._armed_at:
            self._drop(Dropped.EARLY, now)
        elif now < self._pressed_at.get(keys[0], _NEVER) + self._quiet * _REPEAT_FACTOR:
            self._drop(Dropped.HELD, now)
        else:
            self._held = keys[0]
        self._note_pressed(keys, now)

    def _note_pressed(self, keys: list[Key], now: float) -> None:
        for key in ALLOWING & set(keys):
            self._pressed_at[key] = now

    def _drop(self, why: Dropped | None, now: float) -> None:
        self._held = None
        self._dropped = why
        self._start_silence(now)

    def _start_silence(self, now: float) -> None:
        self._armed_at = max(self._armed_at, now + self._quiet)
