"""One command from its question to its answer: ask, record, run, report.

Every failure on the way becomes a response here; what fails before, in `requests.py`.
"""

import time
from collections.abc import Callable, Mapping
from contextlib import ExitStack
from dataclasses import dataclass
from typing import Final

from stringd import __version__
from stringd.gate.arguments import changeable_files
from stringd.gate.audit import AuditLog
from stringd.gate.callers import CallerId, Callers
from stringd.gate.console import CALLER_WENT_AWAY, Approver
from stringd.gate.decide import Approval, Event, KeyAnswer, State
from stringd.gate.display import Style, line
from stringd.gate.environment import account, plain_environment
from stringd.gate.errors import CallerGoneError, RefusalError, StoppingError, TroubleError
from stringd.gate.execute import Executor, OverrunError
from stringd.gate.pipeline import Outcome
from stringd.gate.program import ShownProgram
from stringd.gate.question import AskingPeer, Question
from stringd.gate.refusals import Ration
from stringd.gate.report import (
    command_fields,
    error_line,
    is_large,
    outcome_fields,
    outcome_lines,
    program_fields,
    received_fields,
    recorded_id,
    refusal_line,
)
from stringd.gate.resolve import hold, release
from stringd.gate.running import RunningCommands
from stringd.gate.validate import ValidatedRequest
from stringd.gate.watch import Watch
from stringd.wire.gate import Response, Status

# Each is held open while it is asked about.
MAX_PROGRAMS: Final = 100
HELD_OFF: Final = "everything this program asks is denied for now"

Reply = Callable[[Response], None]


@dataclass(frozen=True, slots=True)
class GateCaller:
    """The connection a request came from."""

    peer: AskingPeer
    watch: Watch
    reply: Reply
    arrived_ns: int


@dataclass(frozen=True, slots=True)
class Workshop:
    """What a request is decided and run with."""

    approver: Approver
    executor: Executor
    audit: AuditLog
    # What commands may be given of ours, and where sudo is looked for.
    env: Mapping[str, str]
    sudo: Callable[[], ShownProgram]
    callers: Callers
    running: RunningCommands
    ration: Ration
    columns: Callable[[], int]


class Case:
    """One exec request on its way through the approval machine."""

    def __init__(
        self,
        request: ValidatedRequest,
        caller: GateCaller,
        who: CallerId,
        shop: Workshop,
        programs: ExitStack,
    ) -> None:
        self._request = request
        self._caller = caller
        self._who = who
        self._shop = shop
        self._programs = programs
        self._approver = shop.approver
        self._approval = Approval(request)
        self._is_received = False
        self._asked_at = time.monotonic()

    def run(self) -> None:
        """Go the whole way and answer. Raises `CallerGoneError` when nobody is left to answer."""
        with ExitStack() as turn:
            try:
                self._receive()
                answer = self._decide(turn)
                outcome = self._execute(answer)
            except CallerGoneError:
                self._abandon()
                raise
            except StoppingError as error:
                self._end(Event.SHUTDOWN, str(error))
                self._caller.reply(error_response(self._request.id, str(error)))
                return
            except RefusalError as error:
                self._end(Event.TROUBLE, str(error))
                self._announce_trouble(error)
                self._caller.reply(error_response(self._request.id, str(error)))
                return
            if outcome is not None:
                self._record("finished", outcome_fields(outcome), required=False)
                if self._request.privileged:
                    # While we still hold the turn: the lines come before the next question.
                    self._echo(outcome)
        # Without the turn: a caller slow to read its answer keeps nobody from being asked.
        self._answer(answer, outcome)
        if outcome is not None and not self._request.privileged:
            self._echo(outcome)

    def _echo(self, outcome: Outcome) -> None:
        columns = self._shop.columns()
        self._approver.announce(list(outcome_lines(self._request, outcome, columns)))

    def _receive(self) -> None:
        """Record the request, unless so many come that only those somebody decides are recorded."""
        if (missed := self._shop.ration.admit()) is not None:
            self._record_received({"unrecorded": missed} if missed else {})

    def _record_received(self, more: dict[str, object]) -> None:
        self._is_received = True
        self._record("received", received_fields(self._request, self._caller.peer) | more)

    def _decide(self, turn: ExitStack) -> KeyAnswer:
        if not self._is_held_off:
            turn.enter_context(self._approver.turn(self._caller.watch, self._who))
            self._caller.watch.check()
        if self._is_held_off:
            # Also for those that were in the queue when the person had enough of this caller.
            self._approval.advance(Event.TURN)
            answer = KeyAnswer(Event.NO, note=HELD_OFF)
        else:
            answer = self._approver.ask(self._question(), self._caller.watch)
        self._approval.advance(answer.event)
        if answer.denies_caller:
            self._shop.callers.hold_off(self._who)
        if not self._request.privileged:
            # Only sudo may need the terminal again; everyone else lets the next question come.
            turn.close()
        return answer

    @property
    def _is_held_off(self) -> bool:
        return self._shop.callers.is_held_off(self._who)

    def _question(self) -> Question:
        """Look up what would run, and hold it from now on."""
        request = self._request
        sudo = self._shop.sudo() if request.privileged else None
        programs = self._hold_programs()
        self._approval.show(programs, sudo)
        plain = {} if request.privileged else plain_environment(request, self._shop.env)
        return Question(
            request,
            programs,
            self._caller.peer,
            account()[0],
            sudo,
            changeable_files(request.pipeline, programs, as_root=request.privileged),
            plain,
        )

    def _hold_programs(self) -> tuple[ShownProgram, ...]:
        """What each stage will run; a name that comes again is looked up once."""
        names = dict.fromkeys(stage[0] for stage in self._request.pipeline)
        if len(names) > MAX_PROGRAMS:
            raise RefusalError(f"more than {MAX_PROGRAMS} different programs in one pipeline")
        held: dict[str, ShownProgram] = {}
        for name in names:
            held[name] = hold(name, as_root=self._request.privileged)
            self._programs.callback(release, held[name])
        return tuple(held[stage[0]] for stage in self._request.pipeline)

    def _execute(self, answer: KeyAnswer) -> Outcome | None:
        approved = self._approval.state is State.APPROVED
        if answer.note != HELD_OFF or self._is_received:
            self._record_decision(answer, approved)
        if not approved:
            return None
        self._caller.watch.check()
        with self._shop.running.command() as ending:
            outcome = self._shop.executor.run(
                self._approval.spend(), self._caller.watch.with_abort(ending), self._approver.lend
            )
        self._approval.advance(Event.END)
        return outcome

    def _record_decision(self, answer: KeyAnswer, approved: bool) -> None:
        if not self._is_received:
            self._record_received({})
        fields: dict[str, object] = {
            "decision": _DECISIONS[self._approval.state],
            "by": answer.by,
            "note": answer.note,
            "latency_ms": round((time.monotonic() - self._asked_at) * 1000),
        }
        if approved:
            fields |= program_fields(self._approval.programs, self._approval.sudo)
            fields |= command_fields(self._request) if is_large(self._request) else {}
        self._record("decided", fields, sync=approved, required=None if approved else False)

    def _answer(self, answer: KeyAnswer, outcome: Outcome | None) -> None:
        if outcome is None:
            status = _STATUSES[self._approval.state]
            self._caller.reply(
                Response(
                    self._request.id,
                    status,
                    version=__version__,
                    decided_by=answer.by if status is Status.DENIED else None,
                    decision_note=answer.note or None,
                )
            )
            return
        self._caller.reply(
            Response(
                self._request.id,
                Status.OK,
                stages=outcome.stages(),
                stdout=outcome.stdout.blob(),
                stdout_truncated=outcome.stdout.truncated,
                version=__version__,
                stdout_open=outcome.stdout.is_open,
                duration_ms=outcome.duration_ms,
                decided_by=answer.by,
            )
        )

    def _abandon(self) -> None:
        if self._approval.state is State.APPROVED:
            # The question is off the screen already, and what it says there is not what happened.
            columns = self._shop.columns()
            self._approver.announce([refusal_line(self._request, CALLER_WENT_AWAY, columns)])
        self._end(Event.HANGUP, "caller gone")

    def _end(self, event: Event, why: str) -> None:
        """Nothing more will run for this request; the log says why."""
        self._approval.advance(event)
        if self._is_received:
            self._record(_ENDINGS[self._approval.state], {"message": why}, required=False)

    def _announce_trouble(self, error: RefusalError) -> None:
        lines = [error_line(self._request, str(error), self._shop.columns())]
        if isinstance(error, OverrunError) and error.survivors:
            pids = " ".join(map(str, error.survivors))
            lines.append(line(f"Still running as root: end it with sudo kill -9 {pids}"))
        self._approver.announce(lines)

    def _record(
        self,
        event: str,
        fields: dict[str, object],
        *,
        sync: bool = False,
        required: bool | None = None,
    ) -> None:
        """Write to the audit log; a privileged command does not go on without it."""
        try:
            fields = {"id": recorded_id(self._request.id)} | fields
            self._shop.audit.append(event, fields, sync=sync)
        except TroubleError as error:
            if self._request.privileged if required is None else required:
                raise
            self._approver.announce([line(str(error), Style.BOLD)])


_DECISIONS: Final = {
    State.APPROVED: "approved",
    State.DENIED: "denied",
    State.TIMED_OUT: "timeout",
}
_STATUSES: Final = {State.DENIED: Status.DENIED, State.TIMED_OUT: Status.TIMEOUT}
_ENDINGS: Final = {
    State.CALLER_GONE: "abandoned",
    State.STOPPED: "stopped",
    State.FAILED: "failed",
}


def error_response(request_id: str, message: str) -> Response:
    return Response(request_id, Status.ERROR, message=message, version=__version__)
