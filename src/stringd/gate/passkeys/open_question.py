"""The question at the terminal, as browsers may answer it: once, in its time, or not at all."""

import secrets
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Final

from stringd.gate.display import Line, render
from stringd.gate.passkeys.challenge import challenge
from stringd.gate.passkeys.passkey import PasskeyError
from stringd.gate.question import Question, Size, compose, prompt
from stringd.gate.watch import Signal

# Wide enough that few rows are cut, and as long as it takes: a browser scrolls.
_SHEET: Final = Size(100, 1_000_000)
# So many wrong answers are no accident; the terminal still takes the right one.
MAX_FAILURES: Final = 20
NO_LONGER_OPEN: Final = "the question is no longer open: nothing was approved by this"

Row = tuple[tuple[str, str], ...]
"""Pieces of text, each with the name of its style."""


class OpenQuestion:
    """One question. The first answer, here or at the terminal, is the only one."""

    def __init__(
        self, question: Question, seconds: float, clock: Callable[[], float] = time.monotonic
    ) -> None:
        self.number = secrets.token_hex(16)
        self.challenge = challenge(question, secrets.token_bytes(32))
        self.request_id = question.request.id
        self.rows: tuple[Row, ...] = tuple(
            row for page in compose(question, _SHEET) for row in map(_row, page)
        )
        self.asks = prompt(question, round(seconds)).partition(" [")[0]
        self.may_need_terminal = question.sudo is not None
        self.answered = Signal()
        """Set when a browser has answered."""
        self._clock = clock
        self._deadline = clock() + seconds
        self._lock = threading.Lock()
        self._is_closed = False
        self._by: str | None = None
        self._failures = 0

    @property
    def seconds_left(self) -> float:
        return max(0.0, self._deadline - self._clock())

    def check(self) -> None:
        """Raises `PasskeyError` when no answer counts any more."""
        if self._is_closed or self.seconds_left <= 0:
            raise PasskeyError(NO_LONGER_OPEN)
        if self._failures >= MAX_FAILURES:
            raise PasskeyError("too many wrong answers: this one is answered at the terminal")

    def failed(self) -> None:
        """An answer did not hold."""
        with self._lock:
            self._failures += 1

    def approve(self, name: str) -> None:
        """The passkey of this name approves. Raises `PasskeyError` if it comes too late."""
        with self._lock:
            self.check()
            self._is_closed, self._by = True, name
            self.answered.set()

    def close(self) -> str | None:
        """Nothing counts from now on; the passkey that had approved before, if one had."""
        with self._lock:
            self._is_closed = True
            return self._by


class OpenQuestions:
    """Which question is open to browsers now."""

    def __init__(self) -> None:
        self._changed = threading.Condition()
        self._current: OpenQuestion | None = None

    def get(self, number: str) -> OpenQuestion:
        """The open question of this number. Raises `PasskeyError`."""
        offer = self._current
        if offer is None or offer.number != number:
            raise PasskeyError(NO_LONGER_OPEN)
        return offer

    def wait(self, number: str, seconds: float) -> OpenQuestion | None:
        """The open question, once it is another one than that of this number or time is up."""
        with self._changed:
            self._changed.wait_for(lambda: self._number() != number, seconds)
            return self._current

    @contextmanager
    def open(self, question: Question, seconds: float) -> Iterator[OpenQuestion]:
        """Let browsers answer while the terminal asks."""
        offer = OpenQuestion(question, seconds)
        self._put(offer)
        try:
            yield offer
        finally:
            offer.close()
            self._put(None)
            offer.answered.close()

    def _number(self) -> str:
        return "" if self._current is None else self._current.number

    def _put(self, offer: OpenQuestion | None) -> None:
        with self._changed:
            self._current = offer
            self._changed.notify_all()


def _row(spans: Line) -> Row:
    return tuple((render(span.text), span.style.name.lower()) for span in spans)
