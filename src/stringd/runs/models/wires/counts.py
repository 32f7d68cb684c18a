"""How many tokens a server says it counted, however often it says so."""

from typing import Any, NamedTuple

from stringd.runs.models.port import Tokens


class Count(NamedTuple):
    """One report. The input includes what was read from and written to a cache."""

    input: int
    output: int
    read: int
    written: int
    thought: int

    def tokens(self) -> Tokens:
        """Zeros mean that the server said nothing."""
        if not (self.input or self.output):
            return Tokens()
        read, written, thought = self.read or None, self.written or None, self.thought or None
        cached = read is not None or written is not None
        return Tokens(
            input=self.input,
            output=self.output,
            no_cache=max(0, self.input - self.read - self.written) if cached else None,
            cache_read=read,
            cache_write=written,
            text=None if thought is None else max(0, self.output - self.thought),
            reasoning=thought,
        )


NOTHING = Count(0, 0, 0, 0, 0)


class Counted:
    """Reports of one answer.

    Where they only grow each one is the total so far, and the last one counts; where they do not,
    each is what was added.
    """

    def __init__(self) -> None:
        self._last = self._sum = NOTHING
        self._grew = True

    def take(self, count: Count) -> None:
        if not any(count):
            return
        last = self._last
        self._grew = self._grew and count.input >= last.input and count.output >= last.output
        self._sum = Count(*map(sum, zip(self._sum, count, strict=True)))
        self._last = count

    def tokens(self) -> Tokens:
        return (self._last if self._grew else self._sum).tokens()


def whole(value: Any) -> int:
    """A count, or 0 for anything that is none."""
    return max(0, int(value)) if isinstance(value, int | float) and value == value else 0


def fields(value: Any) -> dict[str, Any]:
    return value if isinstance(value, dict) else {}
