"""Text and thoughts of a stream: told apart, characters whole, each thought begun and ended."""

from typing import Final

from stringd.formats.surrogates import HalfJoiner, paired
from stringd.runs.models.port import (
    ModelEvent,
    TextDelta,
    ThinkingDelta,
    ThinkingEnded,
    ThinkingStarted,
)

_OPEN: Final = "<think>"
_CLOSE: Final = "</think>"


class Prose:
    """Turns pieces into events. Only one thought is open at a time."""

    def __init__(self) -> None:
        self._text = HalfJoiner()
        self._thought = HalfJoiner()
        self._open: str | None = None
        self._thoughts = 0

    def say(self, piece: str) -> list[ModelEvent]:
        """Text; a thought that is open ends."""
        if not piece:
            return []
        text = self._text.feed(piece)
        return [*self.close(), *([TextDelta(text)] if text else [])]

    def think(self, piece: str) -> list[ModelEvent]:
        """A piece of a thought, which begins if none is open."""
        if not piece:
            return []
        found = self.open()
        assert self._open is not None
        text = self._thought.feed(piece)
        return [*found, ThinkingDelta(self._open, text)] if text else found

    def open(self) -> list[ModelEvent]:
        if self._open is not None:
            return []
        self._thoughts += 1
        self._open = f"thinking-{self._thoughts}"
        return [ThinkingStarted(self._open)]

    def close(self, signature: str | None = None, *, redacted: bool = False) -> list[ModelEvent]:
        """End the thought that is open, if there is one."""
        if self._open is None:
            return []
        name, self._open = self._open, None
        rest = self._thought.rest()
        found: list[ModelEvent] = [ThinkingDelta(name, rest)] if rest else []
        signed = paired(signature) if signature else None
        return [*found, ThinkingEnded(name, signed, redacted)]

    def end(self) -> list[ModelEvent]:
        """What is left when nothing more arrives."""
        rest = self._text.rest()
        return [*self.close(), *([TextDelta(rest)] if rest else [])]


class TagSplitter:
    """Finds thoughts that a server leaves in the text, as `<think>…</think>` before the answer.

    Such tags later in a text are text: somebody writes about them.
    """

    def __init__(self, prose: Prose) -> None:
        self._prose = prose
        self._held = ""
        self._thinking = False
        self._answering = False
        self._thought = False

    def feed(self, piece: str) -> list[ModelEvent]:
        if self._answering:
            return self._prose.say(piece)
        self._held += piece
        found: list[ModelEvent] = []
        before = None
        while before != (before := (self._held, self._thinking)):
            found += self._inside() if self._thinking else self._before()
        return found

    def end(self) -> list[ModelEvent]:
        """What is left when nothing more arrives."""
        held, self._held = self._held, ""
        return self._prose.think(held) if self._thinking else self._prose.say(held)

    def _before(self) -> list[ModelEvent]:
        """Before a thought or the answer; what could be half a tag is held back."""
        stripped = self._held.lstrip()
        if stripped.startswith(_OPEN):
            self._held = stripped[len(_OPEN) :]
            self._thinking = self._thought = True
            return []
        if _OPEN.startswith(stripped):
            return []
        # The blank lines behind a thought belong to its tags.
        text, self._held = stripped if self._thought else self._held, ""
        self._answering = True
        return self._prose.say(text)

    def _inside(self) -> list[ModelEvent]:
        thought, tag, after = self._held.partition(_CLOSE)
        if tag:
            self._held, self._thinking = after, False
            return [*self._prose.think(thought), *self._prose.close()]
        kept = next(n for n in range(len(_CLOSE) - 1, -1, -1) if thought.endswith(_CLOSE[:n]))
        self._held = thought[len(thought) - kept :]
        return self._prose.think(thought[: len(thought) - kept])
