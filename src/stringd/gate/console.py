"""Asks one question at a time on the approver's terminal, and says how each one ended."""

import threading
import time
from collections import deque
from collections.abc import Callable, Hashable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager, nullcontext, suppress
from typing import TYPE_CHECKING, Final, Protocol

from stringd.gate.arming import ARMING_SECONDS, Arming
from stringd.gate.asking import Around, Asking, PromptSettings
from stringd.gate.board import Board
from stringd.gate.decide import BY_PASSKEY, Event, KeyAnswer
from stringd.gate.display import Line, Style, fitted, line
from stringd.gate.errors import CallerGoneError, GateError, StoppingError, TroubleError
from stringd.gate.question import Question
from stringd.gate.subject import answered_elsewhere, subject
from stringd.gate.terminal import Terminal
from stringd.gate.turns import Turns
from stringd.gate.watch import READABLE, Signal, Watch, wait_for

if TYPE_CHECKING:
    from stringd.gate.passkeys.desk import PasskeyDesk

MAX_NOTICES: Final = 1000
# So long after a question left by itself its successor says that it is another one.
_CHANGE_SECONDS: Final = 10.0
CALLER_WENT_AWAY: Final = "→ caller went away, nothing was run"
ALLOWED: Final = "→ Allowed"
NO_TERMINAL: Final = "prompt error: No such device or address (os error 6)"
WITHDRAWN: Final = "The question changed: the one before was withdrawn."
OVERDUE: Final = "The question changed: the one before timed out."


class Approver(Protocol):
    """Whoever answers questions. The gate talks to the terminal only through this."""

    @property
    def waiting(self) -> int: ...

    def turn(self, watch: Watch, caller: Hashable = None) -> AbstractContextManager[None]:
        """Hold the approver's attention; one request at a time."""

    def ask(self, question: Question, watch: Watch) -> KeyAnswer:
        """Put the question. Only while holding a turn."""

    def lend(self, group: int) -> AbstractContextManager[None]:
        """Give the terminal to a process group. Only while holding a turn."""

    def announce(self, lines: Sequence[Line]) -> None:
        """Show lines as soon as no question is in the way."""


class Console:
    """The `Approver` at a terminal; without a terminal every question ends in a prompt error."""

    def __init__(
        self,
        terminal: Terminal | None,
        settings: PromptSettings,
        arming: float = ARMING_SECONDS,
        running: Callable[[], int] = lambda: 0,
        board: Board | None = None,
        make_desk: "Callable[[], PasskeyDesk] | None" = None,
    ) -> None:
        self.terminal = terminal
        self._settings = settings
        self._free = Signal()
        self._turns = Turns(self._free)
        self.board = Board() if board is None else board
        self._arming = Arming(arming)
        self._resized = Signal()
        self._make_desk = make_desk
        self.passkeys: PasskeyDesk | None = None
        """None until there is one, or somebody wants to add one."""
        self._around = Around(
            lambda: self._turns.waiting, running, self._resized, self.board, lambda: self.page
        )
        self._notices: deque[Line] = deque(maxlen=MAX_NOTICES)
        self._notices_lock = threading.Lock()
        self._change: tuple[str, float] = "", 0.0
        self.is_asking = False

    @property
    def waiting(self) -> int:
        return self._turns.waiting

    @property
    def page(self) -> str:
        """Where browsers can answer by a passkey; empty if they cannot."""
        return "" if self.passkeys is None else self.passkeys.address

    @contextmanager
    def turn(self, watch: Watch, caller: Hashable = None) -> Iterator[None]:
        with self._turns.take(watch, caller):
            try:
                yield
            finally:
                self._show_notices()

    def ask(self, question: Question, watch: Watch) -> KeyAnswer:
        if self.terminal is None:
            raise TroubleError(NO_TERMINAL)
        if self._settings.hook is not None:
            self._settings.hook.fire(question.request.session)
        self.is_asking = True
        try:
            answer = self._put(self.terminal, question, watch)
        except GateError as error:
            if isinstance(error, CallerGoneError):
                self._note_change(WITHDRAWN)
            ending = _ENDINGS.get(type(error), f"→ {error}")
            if question.request.is_decision and isinstance(error, CallerGoneError):
                ending = answered_elsewhere(watch.last_words())
            self._tell(question, ending)
            raise
        finally:
            self.is_asking = False
        if answer.event is Event.SILENCE:
            self._note_change(OVERDUE)
        note = f", with the note: {answer.note}" if answer.note else ""
        held = ", and all else this caller asks for 5 minutes" if answer.denies_caller else ""
        verdict = _VERDICTS[answer.event]
        if question.request.is_decision and answer.event is Event.YES:
            verdict = ALLOWED
        if answer.by.startswith(BY_PASSKEY):
            verdict += f", by the passkey {answer.by.removeprefix(BY_PASSKEY)}"
        self._tell(question, f"{verdict}{held}{note}")
        return answer

    def _put(self, terminal: Terminal, question: Question, watch: Watch) -> KeyAnswer:
        """Ask here, and where a passkey counts in browsers too."""
        desk = self.passkeys
        opened = nullcontext() if desk is None else desk.open(question, self._settings.timeout)
        with opened as offer:
            asking = Asking(
                terminal, self._settings, self._arming, self._around, question, watch, offer
            )
            return asking.run(self._what_changed())

    def watch_keys(self, stopping: Signal) -> None:
        """Open the list whenever Enter is pressed and nothing is asked. Until `stopping` is set."""
        terminal = self.terminal
        if terminal is None or terminal.is_dumb:
            return
        while not stopping.is_set:
            wait_for([self._free, stopping])
            wait_for([terminal.keys, stopping])
            with self._turns.borrow() as wanted:
                if wanted is not None and not stopping.is_set:
                    self._browse(terminal, wanted, stopping)
            self._show_what_waited()

    def _browse(self, terminal: Terminal, wanted: Signal, stopping: Signal) -> None:
        def wait(keys: Mapping[int, int], seconds: float) -> Mapping[int, int]:
            ready = wait_for([*keys, wanted, stopping], seconds)
            return {key: READABLE for key in keys if key in ready}

        from stringd.gate.browse import Browser  # when somebody looks

        is_over = lambda: wanted.is_set or stopping.is_set  # noqa: E731
        try:
            with terminal.raw() as typed:
                self._arming.typed_ahead(typed, time.monotonic())
                show = lambda: self._show_passkeys(terminal, stopping)  # noqa: E731
                passkeys = None if self._make_desk is None else show
                Browser(terminal, self.board, self._arming, wait, is_over, passkeys).run()
        except TroubleError:
            # In the background, or gone: whoever looks around notices, and we look again later.
            wait_for([wanted, stopping], _CHANGE_SECONDS)

    def _show_passkeys(self, terminal: Terminal, stopping: Signal) -> None:
        """Let the person add and revoke passkeys; who asks meanwhile waits for them to finish."""

        def wait(keys: Mapping[int, int], seconds: float) -> Mapping[int, int]:
            return dict.fromkeys(wait_for([*keys, stopping], seconds), READABLE)

        from stringd.gate.passkeys.screen import PasskeyScreen  # when somebody looks

        if self.passkeys is None and self._make_desk is not None:
            self.passkeys = self._make_desk()
        if self.passkeys is not None:
            is_over = lambda: stopping.is_set  # noqa: E731
            PasskeyScreen(terminal, self.passkeys, self._arming, wait, is_over).run()

    def _show_what_waited(self) -> None:
        self._turns.when_free(self._show_notices)

    def lend(self, group: int) -> AbstractContextManager[None]:
        return nullcontext() if self.terminal is None else self.terminal.lent_to(group)

    def announce(self, lines: Sequence[Line]) -> None:
        with self._notices_lock:
            self._notices.extend(lines)
        self._turns.when_free(self._show_notices)

    def resized(self) -> None:
        """The window has another size."""
        self._resized.set()

    def _note_change(self, what: str) -> None:
        now = time.monotonic()
        self._arming.changed(now)
        self._change = what, now

    def _what_changed(self) -> str:
        what, when = self._change
        return what if what and time.monotonic() - when < _CHANGE_SECONDS else ""

    def _tell(self, question: Question, verdict: str) -> None:
        """How a question ended, in the history: when, what and which command."""
        if self.terminal is None:
            return
        request = question.request
        rank = "" if not question.as_root else "as root " if request.is_remote else "as root: "
        row = f"{time.strftime('%H:%M:%S')} {verdict}  {rank}{subject(request)}"
        # The screen may be what went away; why the question ended matters more.
        with suppress(TroubleError):
            self.terminal.show(line(fitted(row, self.terminal.size.columns), Style.BOLD))

    def _show_notices(self) -> None:
        with self._notices_lock:
            lines = list(self._notices)
            self._notices.clear()
        if self.terminal is not None and lines:
            # A screen that is gone shows nothing; what happened is on record all the same.
            with suppress(TroubleError):
                self.terminal.show(*lines)


_VERDICTS: Final = {
    Event.YES: "→ Approved, running (Ctrl-C ends it)",
    Event.NO: "→ Denied",
    Event.SILENCE: "→ Timeout",
}
_ENDINGS: Final[dict[type[GateError], str]] = {
    CallerGoneError: CALLER_WENT_AWAY,
    StoppingError: "→ stringd gate is stopping, nothing was run",
}
