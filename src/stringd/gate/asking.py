"""One question on the screen, from its first row to its answer, always in the same place."""

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from enum import Enum, auto
from typing import TYPE_CHECKING, Final

from stringd.gate.arming import Arming
from stringd.gate.board import Board
from stringd.gate.decide import BY_PASSKEY, Event, KeyAnswer
from stringd.gate.display import Line, Style, line
from stringd.gate.errors import CallerGoneError, StoppingError, TroubleError
from stringd.gate.grant_view import grant_pages
from stringd.gate.keys import Key
from stringd.gate.note import NoteLine, note_row
from stringd.gate.notify import Hook
from stringd.gate.question import Question, Size, compose, details, prompt
from stringd.gate.terminal import BELL, Terminal
from stringd.gate.watch import READABLE, Signal, Watch

if TYPE_CHECKING:
    from stringd.gate.passkeys.open_question import OpenQuestion

# Long enough to start typing a reason, short enough that a bare `n` is still a quick no.
NOTE_SECONDS: Final = 1.5
HANGUP_SECONDS: Final = 3.0
# In a smaller window a part of the question would be out of sight.
MIN_SIZE: Final = Size(30, 10)
TOO_SMALL: Final = "Window too small: y works at 30x10."
_WIDE: Final = 78


@dataclass(frozen=True, slots=True)
class PromptSettings:
    timeout: int = 60
    bell: bool = True
    hook: Hook | None = None


@dataclass(frozen=True, slots=True)
class Around:
    """What a question needs to know of the rest of the gate."""

    waiting: Callable[[], int]
    running: Callable[[], int]
    # Set when the window has another size.
    resized: Signal
    board: Board
    # Where browsers can answer by a passkey; empty if they cannot.
    page: Callable[[], str] = lambda: ""


class Face(Enum):
    """What of a question is on the screen."""

    QUESTION = auto()
    DETAILS = auto()
    GRANT = auto()


class Asking:
    """Draws a question, reads keys, and gives the answer."""

    def __init__(
        self,
        terminal: Terminal,
        settings: PromptSettings,
        arming: Arming,
        around: Around,
        question: Question,
        watch: Watch,
        offer: "OpenQuestion | None" = None,
    ) -> None:
        self._terminal = terminal
        self._settings = settings
        self._arming = arming
        self._around = around
        self._question = question
        self._watch = watch
        self._offer = offer
        self._message = ""
        self._view = Face.QUESTION
        self._page = 0
        self._seen: set[Face] = set()
        self._size = terminal.size
        self._composed: tuple[object, list[list[Line]]] = None, []
        self._deadline = 0.0
        self._shown_waiting = 0

    def run(self, message: str = "") -> KeyAnswer:
        """Ask. Raises what `Watch` raises, and `TroubleError` when the terminal fails."""
        self._message = message
        with self._terminal.raw() as typed_ahead:
            now = time.monotonic()
            self._arming.typed_ahead(typed_ahead, now)
            self._deadline = now + self._settings.timeout
            self._around.resized.clear()
            try:
                if self._settings.bell:
                    self._terminal.write(BELL)
                self._show()
                return self._answer()
            except (CallerGoneError, StoppingError):
                raise
            except TroubleError:
                self._expect_hangup()
                raise

    def _answer(self) -> KeyAnswer:
        while True:
            match self._key():
                case Key.SILENCE:
                    return self._decided(KeyAnswer(Event.SILENCE))
                case Key.NO:
                    return self._decided(KeyAnswer(Event.NO))
                case Key.NOTE:
                    answer = self._decided(KeyAnswer(Event.NO))
                    return replace(answer, note=self._note()) if _denies(answer) else answer
                case Key.DENY_CALLER:
                    return self._decided(KeyAnswer(Event.NO, denies_caller=True))
                case Key.YES if self._may_approve:
                    return self._decided(KeyAnswer(Event.YES))
                case Key.GRANT if self._may_approve and self._grants():
                    return self._decided(KeyAnswer(Event.YES, grants=True))
                case Key.GRANT if self._may_approve:
                    pass
                case Key.YES | Key.GRANT:
                    self._show("Not yet: Space reads on, and y works on the last page.")
                case Key.NEXT:
                    self._turn_page(1)
                case Key.BACK:
                    self._turn_page(-1)
                case Key.LIST:
                    self._browse()
                case Key.DETAILS:
                    self._open(Face.QUESTION if self._view is Face.DETAILS else Face.DETAILS)

    def _decided(self, answer: KeyAnswer) -> KeyAnswer:
        """This answer, unless a browser has given one before; from now on none can."""
        name = None if self._offer is None else self._offer.close()
        return answer if name is None else KeyAnswer(Event.YES, by=f"{BY_PASSKEY}{name}")

    @property
    def _is_answered(self) -> bool:
        return self._offer is not None and self._offer.answered.is_set

    @property
    def _may_approve(self) -> bool:
        return Face.QUESTION in self._seen and not self._is_too_small

    def _grants(self) -> bool:
        """Whether this press of the key confirms a grant; the first one shows what it would be."""
        if self._question.no_grant:
            self._show(self._question.no_grant)
        elif self._view is not Face.GRANT:
            self._open(Face.GRANT, "Press g again to allow all of this, y to run it once.")
        elif Face.GRANT not in self._seen:
            self._show("Not yet: Space reads on, and g works on the last page.")
        else:
            return True
        return False

    def _browse(self) -> None:
        """Show what waits and runs; the question's time goes on meanwhile."""
        if self._terminal.is_dumb:
            self._show("This terminal cannot show the list.")
            return
        from stringd.gate.browse import Browser  # when somebody looks

        is_over = lambda: time.monotonic() >= self._deadline or self._is_answered  # noqa: E731
        Browser(self._terminal, self._around.board, self._arming, self._watch.wait, is_over).run()
        self._terminal.forget_screen()
        self._show("")

    def _open(self, view: Face, message: str | None = None) -> None:
        self._view, self._page = view, 0
        self._show(message)

    def _key(self) -> Key:
        """The next key that counts, or SILENCE when none came in time."""
        while True:
            now = time.monotonic()
            self._around.resized.clear()
            if self._terminal.take_resumed() or self._terminal.size != self._size:
                # Other things were on the screen, or the rows have moved: the eye starts over.
                self._terminal.forget_screen()
                self._page = 0
                self._show()
            if (key := self._arming.take(now)) is not None:
                return key
            if now >= self._deadline or self._is_answered:
                return Key.SILENCE
            if (dropped := self._arming.take_dropped(now)) is not None:
                self._show(dropped.value)
            self._refresh()
            due = self._arming.due()
            until = min(self._deadline, now + 1.0, *([] if due is None else [due]))
            if not self._feed(until - now):
                return Key.SILENCE

    def _feed(self, seconds: float) -> bool:
        """Wait for keys; False at the end of input."""
        wanted = {self._terminal.keys: READABLE, self._around.resized.fileno(): READABLE}
        if self._offer is not None:
            wanted[self._offer.answered.fileno()] = READABLE
        if self._terminal.keys not in self._watch.wait(wanted, seconds):
            return True
        data = self._read()
        self._arming.feed(data, time.monotonic())
        return bool(data)

    def _read(self) -> bytes:
        data = self._terminal.read()
        if not data:
            self._expect_hangup()
        return data

    def _expect_hangup(self) -> None:
        """A terminal that closes also sends us a signal, which says what to tell the caller."""
        self._watch.wait({}, HANGUP_SECONDS)

    @property
    def _is_too_small(self) -> bool:
        return self._size.columns < MIN_SIZE.columns or self._size.rows < MIN_SIZE.rows

    def _pages(self) -> list[list[Line]]:
        size = self._size
        if self._composed[0] != (self._view, size):
            self._composed = (self._view, size), _VIEWS[self._view](self._question, size)
        return self._composed[1]

    def _turn_page(self, step: int) -> None:
        pages = self._pages()
        self._page = min(max(self._page + step, 0), len(pages) - 1)
        self._show("")

    def _show(self, message: str | None = None) -> None:
        """Draw all of it, and take no key before it could be read."""
        if message is not None:
            self._message = message
        self._size = self._terminal.size
        pages = self._pages()
        self._page = min(self._page, len(pages) - 1)
        if not self._is_too_small and self._page == len(pages) - 1:
            # Pages are only turned one by one, so whoever is at the last one saw the others.
            self._seen.add(self._view)
        self._shown_waiting = self._around.waiting()
        self._terminal.draw(self._rows(pages))
        self._arming.shown(time.monotonic())

    def _refresh(self) -> None:
        """Bring the state up to date: whole when others come or go, else just its own row."""
        waiting = self._around.waiting()
        came_or_went, self._shown_waiting = waiting != self._shown_waiting, waiting
        self._terminal.draw(
            self._rows(self._pages()), whole=came_or_went and not self._terminal.is_dumb
        )

    def _rows(self, pages: Sequence[list[Line]]) -> list[Line]:
        size = self._size
        if self._is_too_small:
            return [line(TOO_SMALL[: size.columns], Style.BOLD)]
        rows = [*pages[self._page], line(self._message[: size.columns], Style.BOLD)]
        rows += self._hints(len(pages), size.columns)
        style = Style.ELSEWHERE if self._question.elsewhere else Style.BOLD
        return [
            *rows,
            line(self._state()[: size.columns], Style.DIM),
            line(f"{prompt(self._question, self._settings.timeout)} ", style),
        ]

    def _hints(self, pages: int, columns: int) -> list[Line]:
        keys = line(_keys(columns, self._question), Style.DIM)
        place = f"{self._page + 1} of {pages}"
        if self._view is Face.DETAILS:
            text = f"Details {place}. Space reads on, ? goes back."
            return [line(text[:columns], Style.BOLD), keys]
        if pages == 1:
            return [keys]
        if self._page < pages - 1:
            way = f"Page {place}. Space reads on; y works at the end."
        else:
            way = f"Page {place}: the end of the command. y works now."
        return [line(way[:columns], Style.BOLD), keys]

    def _state(self) -> str:
        left = max(0, round(self._deadline - time.monotonic()))
        parts = [f"{left} s left"]
        if waiting := self._shown_waiting:
            parts.append(f"{waiting} more waiting")
        if running := self._around.running():
            parts.append(f"{running} running")
        if self._offer is not None:
            parts.append(f"or by passkey at {self._around.page()}")
        return "   ".join(parts)

    def _note(self) -> str:
        """A line typed for the caller: nothing if typing does not start soon, or on Escape."""
        note = NoteLine()
        while not note.is_done:
            rows = self._rows(self._pages())
            rows[-1] = note_row(note.text, self._size.columns)
            self._terminal.draw(rows)
            patience = self._settings.timeout if note.text else NOTE_SECONDS
            ready = self._watch.wait({self._terminal.keys: READABLE}, patience)
            data = self._read() if ready else b""
            if not data:
                break
            note.feed(data)
        return note.text.strip()


def _denies(answer: KeyAnswer) -> bool:
    return answer.event is Event.NO


def _keys(columns: int, question: Question) -> str:
    if question.request.is_decision:
        return "y allow  n deny with a note  d deny caller  ? more"[:columns]
    if columns >= _WIDE:
        return "y run   g grant   n deny with a note   d deny this caller   l list   ? details"
    return "y run  n deny+note  d deny caller  ? more"[:columns]


_VIEWS: Final[dict[Face, Callable[[Question, Size], list[list[Line]]]]] = {
    Face.QUESTION: compose,
    Face.DETAILS: details,
    Face.GRANT: grant_pages,
}
