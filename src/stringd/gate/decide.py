"""Who may go from asking to running: the approval machine, as a table. Pure.

A request waits for its turn, is asked about, is approved, runs and ends. The table lists every
step there is; an event it does not list for a state is a bug and raises. Two things follow from
the table alone, and the tests explore it to show them: RUNNING is entered only by START from
APPROVED, and APPROVED only by YES from ASKED, or by PERMITTED from WAITING, which is what a rule or
a grant of the person says. `Approval` walks the table for one request and hands out the single
`Permit` the executor accepts.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from enum import Enum, auto
from typing import Final

from stringd.gate.program import Route, ShownProgram
from stringd.gate.validate import ValidatedRequest


class State(Enum):
    WAITING = auto()
    ASKED = auto()
    APPROVED = auto()
    RUNNING = auto()
    FINISHED = auto()
    DENIED = auto()
    TIMED_OUT = auto()
    CALLER_GONE = auto()
    FAILED = auto()
    STOPPED = auto()


class Event(Enum):
    TURN = auto()
    YES = auto()
    NO = auto()
    SILENCE = auto()
    HANGUP = auto()
    TROUBLE = auto()
    SHUTDOWN = auto()
    START = auto()
    END = auto()
    # A rule or a grant decided, so that nobody is asked.
    PERMITTED = auto()
    FORBIDDEN = auto()


Table = Mapping[tuple[State, Event], State]

TRANSITIONS: Final[Table] = {
    (State.WAITING, Event.TURN): State.ASKED,
    (State.WAITING, Event.PERMITTED): State.APPROVED,
    (State.WAITING, Event.FORBIDDEN): State.DENIED,
    (State.WAITING, Event.HANGUP): State.CALLER_GONE,
    (State.WAITING, Event.TROUBLE): State.FAILED,
    (State.WAITING, Event.SHUTDOWN): State.STOPPED,
    (State.ASKED, Event.YES): State.APPROVED,
    (State.ASKED, Event.NO): State.DENIED,
    (State.ASKED, Event.SILENCE): State.TIMED_OUT,
    (State.ASKED, Event.HANGUP): State.CALLER_GONE,
    (State.ASKED, Event.TROUBLE): State.FAILED,
    (State.ASKED, Event.SHUTDOWN): State.STOPPED,
    (State.APPROVED, Event.START): State.RUNNING,
    (State.APPROVED, Event.HANGUP): State.CALLER_GONE,
    (State.APPROVED, Event.TROUBLE): State.FAILED,
    (State.APPROVED, Event.SHUTDOWN): State.STOPPED,
    # A started command runs to its end, with or without its caller.
    (State.RUNNING, Event.HANGUP): State.RUNNING,
    (State.RUNNING, Event.END): State.FINISHED,
    (State.RUNNING, Event.TROUBLE): State.FAILED,
    (State.RUNNING, Event.SHUTDOWN): State.STOPPED,
}

ENDINGS: Final = frozenset(State) - {source for source, _ in TRANSITIONS}


class IllegalStepError(Exception):
    """The program tried a step the table does not have."""


def step(state: State, event: Event, table: Table = TRANSITIONS) -> State:
    """The next state. Raises `IllegalStepError`."""
    try:
        return table[state, event]
    except KeyError:
        raise IllegalStepError(f"{event.name} is not possible in {state.name}") from None


BY_PASSKEY: Final = "passkey:"
"""In front of the name of the passkey that decided."""


@dataclass(frozen=True, slots=True)
class KeyAnswer:
    """How a request was decided, by whom, and their note to the caller.

    `YES`, `NO` and `SILENCE` are a person's, by a key or a passkey; `PERMITTED` and
    `FORBIDDEN` are those of rules and grants.
    """

    event: Event
    by: str = "terminal"
    note: str = ""
    denies_caller: bool = False
    """Everything else this caller asks is denied too, for a while."""
    grants: bool = False
    """The same command of this caller needs no question, for a while."""


@dataclass(frozen=True, slots=True)
class Permit:
    """Permission to run exactly this request and these programs. Made by `Approval` alone."""

    request: ValidatedRequest
    programs: Sequence[ShownProgram]
    sudo: ShownProgram | None = None
    route: Route | None = None
    """To the machine it runs on, if that is another one."""


class Approval:
    """One request's walk through the table."""

    def __init__(
        self,
        request: ValidatedRequest,
        programs: Sequence[ShownProgram] = (),
        sudo: ShownProgram | None = None,
    ) -> None:
        self.request = request
        self.programs = programs
        self.sudo = sudo
        self.route: Route | None = None
        self.state = State.WAITING

    def permit(self, programs: Sequence[ShownProgram], sudo: ShownProgram | None) -> None:
        """A rule or a grant permits it, with these programs."""
        self.programs, self.sudo = programs, sudo

    def show(
        self,
        programs: Sequence[ShownProgram],
        sudo: ShownProgram | None,
        route: Route | None = None,
    ) -> None:
        """It is asked about now, with these programs."""
        self.programs, self.sudo, self.route = programs, sudo, route
        self.advance(Event.TURN)

    def advance(self, event: Event) -> State:
        self.state = step(self.state, event)
        return self.state

    def spend(self) -> Permit:
        """The permit, once: a second call, or one without a yes, raises `IllegalStepError`."""
        self.advance(Event.START)
        return Permit(self.request, self.programs, self.sudo, self.route)
