"""Asks one question at a time on the approver's terminal, and tells them how each one ended."""

import codecs
import threading
import time
from collections import deque
from collections.abc import Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager, nullcontext, suppress
from dataclasses import dataclass
from typing import Final, Protocol

from stringd.gate.characters import is_clean, is_visible
from stringd.gate.decide import Answer, Event, Key, classify
from stringd.gate.display import Line, Style, line, width_of
from stringd.gate.errors import CallerGoneError, StoppingError, TroubleError
from stringd.gate.keys import ARMING_SECONDS, KeyFilter
from stringd.gate.notify import Hook
from stringd.gate.question import (
    Question,
    Screen,
    compose,
    more_lines,
    question_text,
    word_lines,
)
from stringd.gate.terminal import BELL, Terminal
from stringd.gate.turns import Turns
from stringd.gate.watch import READABLE, Watch

# Long enough to start typing a reason, short enough that a bare `n` is still a quick no.
NOTE_SECONDS: Final = 1.5
MAX_NOTE: Final = 200
MAX_NOTICES: Final = 1000
HANGUP_SECONDS: Final = 3.0
CALLER_WENT_AWAY: Final = "→ caller went away, nothing was run"
NO_TERMINAL: Final = "prompt error: No such device or address (os error 6)"


class Approver(Protocol):
    """Whoever answers questions. The gate talks to the terminal only through this."""

    @property
    def waiting(self) -> int: ...

    def turn(self, watch: Watch) -> AbstractContextManager[None]:
        """Hold the approver's attention; one request at a time."""

    def ask(self, question: Question, watch: Watch) -> Answer:
        """Put the question. Only while holding a turn."""

    def lend(self, group: int) -> AbstractContextManager[None]:
        """Give the terminal to a process group. Only while holding a turn."""

    def announce(self, lines: Sequence[Line]) -> None:
        """Show lines as soon as no question is in the way."""


@dataclass(frozen=True, slots=True)
class PromptSettings:
    timeout: int = 60
    arming: float = ARMING_SECONDS
    bell: bool = True
    hook: Hook | None = None


class Console:
    """The `Approver` at a terminal; without a terminal every question ends in a prompt error."""

    def __init__(self, terminal: Terminal | None, settings: PromptSettings) -> None:
        self.terminal = terminal
        self._settings = settings
        self._turns = Turns()
        self._notices: deque[Line] = deque(maxlen=MAX_NOTICES)
        self._notices_lock = threading.Lock()

    @property
    def waiting(self) -> int:
        return self._turns.waiting

    @contextmanager
    def turn(self, watch: Watch) -> Iterator[None]:
        with self._turns.take(watch):
            try:
                yield
            finally:
                self._show_notices()

    def ask(self, question: Question, watch: Watch) -> Answer:
        if self.terminal is None:
            raise TroubleError(NO_TERMINAL)
        if self._settings.hook is not None:
            self._settings.hook.fire(question.request.session)
        return _Asking(self.terminal, self._turns, self._settings, question, watch).run()

    def lend(self, group: int) -> AbstractContextManager[None]:
        return nullcontext() if self.terminal is None else self.terminal.lent_to(group)

    def announce(self, lines: Sequence[Line]) -> None:
        with self._notices_lock:
            self._notices.extend(lines)
        self._turns.when_free(self._show_notices)

    def _show_notices(self) -> None:
        with self._notices_lock:
            lines = list(self._notices)
            self._notices.clear()
        if self.terminal is not None and lines:
            # A screen that is gone shows nothing; what happened is on record all the same.
            with suppress(TroubleError):
                self.terminal.show(*lines)


class _Asking:
    """One question on the screen, from its first line to its answer."""

    def __init__(
        self,
        terminal: Terminal,
        turns: Turns,
        settings: PromptSettings,
        question: Question,
        watch: Watch,
    ) -> None:
        self._terminal = terminal
        self._turns = turns
        self._settings = settings
        self._question = question
        self._watch = watch
        self._screen = compose(question, terminal.size)
        self._pages_seen = 0
        self._all_seen = not self._screen.pages
        self._waiting_shown = 0

    def run(self) -> Answer:
        with self._terminal.raw():
            try:
                self._show_question()
                answer = self._answer()
            except CallerGoneError:
                self._close_in_passing(CALLER_WENT_AWAY)
                raise
            except StoppingError:
                self._close_in_passing("→ stringd gate is stopping, nothing was run")
                raise
            except TroubleError:
                self._expect_hangup()
                raise
            self._close(_VERDICTS[answer.event], answer.note)
            return answer

    def _answer(self) -> Answer:
        arming = time.monotonic() + self._settings.arming
        while True:
            match self._key(arming):
                case Key.SILENCE:
                    return Answer(Event.SILENCE)
                case Key.NO:
                    return Answer(Event.NO)
                case Key.NOTE:
                    return Answer(Event.NO, note=self._note())
                case Key.YES if self._all_seen:
                    return Answer(Event.YES)
                case Key.YES:
                    self._say("Not yet: press v until the end of the command.")
                case Key.VIEW:
                    self._show_page()
                case Key.WORDS:
                    self._show_words()

    def _key(self, arming: float) -> Key:
        """The next key that counts, or SILENCE when none came in time."""
        keys = KeyFilter(arming)
        deadline = time.monotonic() + self._settings.timeout
        while True:
            now = time.monotonic()
            if self._terminal.take_resumed():
                # Other things were on the screen meanwhile, and keys were meant for them.
                self._show_question()
                keys = KeyFilter(now + self._settings.arming)
            byte = keys.take(now)
            if byte is not None:
                return classify(byte)
            if now >= deadline:
                return Key.SILENCE
            if keys.burst_ended(now):
                self._say("Several keys at once are ignored.")
            self._show_waiting()
            if not self._feed(keys, min(keys.due() or deadline, deadline, now + 1.0) - now):
                return Key.SILENCE

    def _feed(self, keys: KeyFilter, seconds: float) -> bool:
        """Wait for keys; False at the end of input."""
        if not self._watch.wait({self._terminal.keys: READABLE}, seconds):
            return True
        data = self._read()
        keys.feed(data, time.monotonic())
        return bool(data)

    def _read(self) -> bytes:
        data = self._terminal.read()
        if not data:
            self._expect_hangup()
        return data

    def _expect_hangup(self) -> None:
        """A terminal that hangs up also sends us a signal, which says what to tell the caller."""
        self._watch.wait({}, HANGUP_SECONDS)

    def _show_question(self) -> None:
        if self._settings.bell:
            self._terminal.write(BELL)
        self._terminal.show(*self._screen.opening)
        self._waiting_shown = self._turns.waiting
        if self._waiting_shown:
            self._terminal.show(_waiting_line(self._waiting_shown))
        self._terminal.show(self._screen.hint)
        self._show_prompt()

    def _show_prompt(self) -> None:
        request = self._question.request
        text = question_text(privileged=request.privileged, timeout=self._settings.timeout)
        self._terminal.show_inline((*line(text, Style.BOLD), *line(" ")))

    def _show_waiting(self) -> None:
        waiting = self._turns.waiting
        if waiting != self._waiting_shown:
            self._waiting_shown = waiting
            self._terminal.erase_line()
            self._terminal.show(_waiting_line(waiting))
            self._show_prompt()

    def _say(self, text: str) -> None:
        self._terminal.erase_line()
        self._terminal.show(line(text, Style.DIM))
        self._show_prompt()

    def _show_page(self) -> None:
        self._terminal.erase_line()
        if self._pages_seen == len(self._screen.pages):
            # Again from the top; what was seen stays seen.
            self._pages_seen = 0
            self._terminal.show(*self._screen.opening)
        else:
            self._terminal.show(*self._screen.pages[self._pages_seen])
            self._pages_seen += 1
            self._terminal.show(_page_end(self._screen, self._pages_seen))
            self._all_seen = self._all_seen or self._pages_seen == len(self._screen.pages)
        self._show_prompt()

    def _show_words(self) -> None:
        self._terminal.erase_line()
        self._terminal.show(*word_lines(self._question, self._terminal.size.columns))
        self._show_prompt()

    def _note(self) -> str:
        """A line typed for the caller: nothing if typing does not start soon, or on Escape."""
        note = _NoteLine()
        while not note.is_done:
            self._terminal.erase_line()
            self._terminal.show_inline(_note_line(note.text, self._terminal.size.columns))
            patience = self._settings.timeout if note.text else NOTE_SECONDS
            ready = self._watch.wait({self._terminal.keys: READABLE}, patience)
            data = self._read() if ready else b""
            if not data:
                break
            note.feed(data)
        return note.text.strip()

    def _close_in_passing(self, verdict: str) -> None:
        # The screen may be what went away; why the question ended matters more.
        with suppress(TroubleError):
            self._close(verdict)

    def _close(self, verdict: str, note: str = "") -> None:
        self._terminal.erase_line()
        text = f"{verdict}, with the note: {note}" if note else verdict
        rule = "─" * min(self._terminal.size.columns, 40)
        self._terminal.show(line(text, Style.BOLD), line(rule, Style.DIM))


_VERDICTS: Final = {
    Event.YES: "→ Approved",
    Event.NO: "→ Denied",
    Event.SILENCE: "→ Timeout",
}


class _NoteLine:
    """A line editor as small as can be: text, backspace, Enter, Escape."""

    def __init__(self) -> None:
        self._decoder = codecs.getincrementaldecoder("utf-8")("ignore")
        self.text = ""
        self.is_done = False

    def feed(self, data: bytes) -> None:
        """Take typed bytes."""
        for character in self._decoder.decode(data):
            if character in "\r\n\x1b" or self.is_done:
                self.text = "" if character == "\x1b" else self.text
                self.is_done = True
                break
            if character in "\x7f\x08":
                self.text = self.text[:-1]
            elif is_visible(character) and is_clean(character) and len(self.text) < MAX_NOTE:
                self.text += character


def _note_line(text: str, columns: int) -> Line:
    """The note as far as it fits beside its label: the end of it, where one is typing."""
    label = "→ Denied. Why? (Enter: no note) "
    room = max(columns - len(label) - 1, 10)
    while width_of(text) > room:
        text = text[1:]
    return line(label + text)


def _waiting_line(count: int) -> Line:
    return line(f"{count} more waiting", Style.DIM)


def _page_end(screen: Screen, seen: int) -> Line:
    left = sum(map(len, screen.pages[seen:]))
    if left:
        return line(f"{more_lines(left)}: press v.", Style.BOLD)
    return line("End of the command.", Style.BOLD)
