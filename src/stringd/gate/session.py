"""One request from its line to its answer: decode, validate, admit, ask, run, report.

Every step hands the next one a narrower type, and every failure becomes a response here and
nowhere else.
"""

import threading
import time
import uuid
from collections.abc import Callable
from contextlib import ExitStack
from dataclasses import dataclass, field, replace
from typing import Final

from stringd import __version__
from stringd.gate.audit import AuditLog
from stringd.gate.console import CALLER_WENT_AWAY, Approver
from stringd.gate.decide import Answer, Approval, AskAlways, Event, Policy, State
from stringd.gate.display import Style, clipped, line
from stringd.gate.errors import (
    BusyError,
    CallerGoneError,
    RefusalError,
    StoppingError,
    TroubleError,
)
from stringd.gate.execute import Executor, Outcome, OverrunError
from stringd.gate.program import Program
from stringd.gate.question import MAX_NAME, MAX_REASON, Peer, Question
from stringd.gate.refusals import RefusalRecords
from stringd.gate.replay import ReplayMemory
from stringd.gate.report import (
    command_fields,
    error_line,
    is_large,
    log_line,
    outcome_fields,
    outcome_lines,
    received_fields,
    recorded_id,
    refusal_line,
)
from stringd.gate.resolve import resolve
from stringd.gate.validate import ValidatedRequest
from stringd.gate.watch import Watch
from stringd.wire.gate import Request, RequestAction, Response, Status, decode_request
from stringd.wire.jsonlines import JsonError

MAX_IN_FLIGHT: Final = 64
# A full line of many short words takes fifty times its size once it is read.
MAX_LARGE_IN_FLIGHT: Final = 8
_LARGE_LINE: Final = 65_536

Reply = Callable[[Response], None]


@dataclass(slots=True)
class Slots:
    """How many requests are being decided or run."""

    limit: int = MAX_IN_FLIGHT
    taken: int = 0
    _lock: threading.Lock = field(default_factory=threading.Lock)

    @property
    def are_full(self) -> bool:
        return self.taken >= self.limit

    def take(self) -> Callable[[], None]:
        """A place, as the call that gives it back; giving it back twice is harmless.

        Raises `BusyError` when there is none left.
        """
        with self._lock:
            if self.are_full:
                raise BusyError
            self.taken += 1
        held = [True]

        def free() -> None:
            with self._lock:
                self.taken -= len(held)
                held.clear()

        return free


@dataclass(frozen=True, slots=True)
class Caller:
    """The connection a request came from."""

    peer: Peer
    watch: Watch
    reply: Reply
    arrived_ns: int


class Sessions:
    """Handles requests; one call of `handle` per line, from any thread."""

    def __init__(
        self,
        approver: Approver,
        executor: Executor,
        audit: AuditLog,
        *,
        max_future: int,
        allow_stop_busy: bool = False,
        stop: Callable[[], None] = lambda: None,
        log: Callable[[str], None] = lambda _: None,
        policy: Policy | None = None,
        columns: Callable[[], int] = lambda: 80,
    ) -> None:
        self._approver = approver
        self._executor = executor
        self._audit = audit
        self._max_future = max_future
        self._allow_stop_busy = allow_stop_busy
        self._stop = stop
        self._log = log
        self._policy = AskAlways() if policy is None else policy
        self._columns = columns
        self._replay = ReplayMemory(max_future)
        self._decoding = threading.Lock()
        self.refusals = RefusalRecords(audit)
        self._large = Slots(MAX_LARGE_IN_FLIGHT)
        self.slots = Slots()

    def handle(self, text: bytes, caller: Caller) -> None:
        """Answer one line. Raises `CallerGoneError` when nobody is left to answer."""
        if len(text) < _LARGE_LINE:
            self._handle(text, caller)
            return
        try:
            free = self._large.take()
        except BusyError as error:
            caller.reply(_error("", str(error)))
            return
        try:
            self._handle(text, replace(caller, reply=_after(free, caller.reply)))
        finally:
            free()

    def _handle(self, text: bytes, caller: Caller) -> None:
        try:
            request = self._decode(text)
        except JsonError as error:
            self._refuse("", f"invalid JSON: {error}", caller)
            return
        request_id = str(uuid.uuid4()) if request.id is None else request.id
        try:
            validated = ValidatedRequest(
                request, fresh_id=request_id, now=caller.arrived_ns, max_future=self._max_future
            )
            self._dispatch(validated, caller)
        except BusyError as error:
            caller.reply(_error("", str(error)))
        except RefusalError as error:
            self._refuse(request_id, str(error), caller)

    def _refuse(self, request_id: str, message: str, caller: Caller) -> None:
        """Answer a request that nobody will be asked about."""
        self._log(f"[{clipped(request_id, MAX_NAME)}] refused: {clipped(message, MAX_REASON)}")
        self.refusals.add(caller.peer, request_id, message)
        caller.reply(_error(request_id, message))

    def _decode(self, text: bytes) -> Request:
        if len(text) < _LARGE_LINE:
            return decode_request(text)
        # One large line at a time, so that small ones never queue for the interpreter behind many.
        with self._decoding:
            return decode_request(text)

    def _dispatch(self, request: ValidatedRequest, caller: Caller) -> None:
        if request.action is RequestAction.EXEC:
            self._handle_exec(request, caller)
            return
        self._admit(request)
        if request.action is RequestAction.PING:
            caller.reply(Response(request.id, Status.OK, message="pong", version=__version__))
        else:
            self._handle_stop(request, caller)

    def _admit(self, request: ValidatedRequest) -> None:
        self._replay.admit(request.id, time.monotonic())

    def _handle_stop(self, request: ValidatedRequest, caller: Caller) -> None:
        if (busy := self.slots.taken) and not self._allow_stop_busy:
            raise RefusalError(f"busy: {busy} request(s) in progress")
        caller.reply(Response(request.id, Status.OK, message="stopping", version=__version__))
        self._approver.announce([line("stringd gate stops: a client asked for it.", Style.BOLD)])
        self._stop()

    def _handle_exec(self, request: ValidatedRequest, caller: Caller) -> None:
        # The place comes first: a caller told to come back later may do so with the same id.
        free = self.slots.take()
        try:
            self._admit(request)
            question = Question(request, _programs(request), caller.peer)
            self._log(log_line(question))
            caller = replace(caller, reply=_after(free, caller.reply))
            case = _Case(question, caller, self._approver, self._executor, self._audit)
            case.run(self._policy, self._columns())
        finally:
            free()


class _Case:
    """One exec request on its way through the approval machine."""

    def __init__(
        self,
        question: Question,
        caller: Caller,
        approver: Approver,
        executor: Executor,
        audit: AuditLog,
    ) -> None:
        self._question = question
        self._request = question.request
        self._caller = caller
        self._approver = approver
        self._executor = executor
        self._audit = audit
        self._approval = Approval(question.request, question.programs)
        self._asked_at = time.monotonic()

    def run(self, policy: Policy, columns: int) -> None:
        """Go the whole way and answer. Raises `CallerGoneError` when nobody is left to answer."""
        with ExitStack() as turn:
            try:
                self._record("received", received_fields(self._question))
                answer = self._decide(policy, turn)
                outcome = self._execute(answer)
            except CallerGoneError:
                self._abandon()
                raise
            except StoppingError as error:
                self._end(Event.SHUTDOWN, str(error))
                self._caller.reply(_error(self._request.id, str(error)))
                return
            except RefusalError as error:
                self._end(Event.TROUBLE, str(error))
                self._announce_trouble(error)
                self._caller.reply(_error(self._request.id, str(error)))
                return
            if outcome is not None:
                self._record("finished", outcome_fields(outcome), required=False)
                if self._request.privileged:
                    # While we still hold the turn: the lines come before the next question.
                    self._echo(outcome, columns)
        # Without the turn: a caller slow to read its answer keeps nobody from being asked.
        self._answer(answer, outcome)
        if outcome is not None and not self._request.privileged:
            self._echo(outcome, columns)

    def _echo(self, outcome: Outcome, columns: int) -> None:
        self._approver.announce(list(outcome_lines(self._request.id, outcome, columns)))

    def _decide(self, policy: Policy, turn: ExitStack) -> Answer:
        answer = policy.consider(self._request)
        if answer is None:
            turn.enter_context(self._approver.turn(self._caller.watch))
            self._caller.watch.check()
            self._approval.advance(Event.TURN)
            answer = self._approver.ask(self._question, self._caller.watch)
        else:
            self._approval.advance(Event.TURN)
        self._approval.advance(answer.event)
        if (echo := _ECHOES.get(self._approval.state)) is not None:
            self._approver.announce([refusal_line(self._request.id, echo)])
        if not self._request.privileged:
            # Only sudo may need the terminal again; everyone else lets the next question come.
            turn.close()
        return answer

    def _execute(self, answer: Answer) -> Outcome | None:
        approved = self._approval.state is State.APPROVED
        whole = command_fields(self._question) if approved and is_large(self._question) else {}
        self._record(
            "decided",
            {
                "decision": _DECISIONS[self._approval.state],
                "by": answer.by,
                "note": answer.note,
                "latency_ms": round((time.monotonic() - self._asked_at) * 1000),
            }
            | whole,
            sync=approved,
            required=None if approved else False,
        )
        if not approved:
            return None
        self._caller.watch.check()
        outcome = self._executor.run(
            self._approval.spend(), self._caller.watch, self._approver.lend
        )
        self._approval.advance(Event.END)
        return outcome

    def _answer(self, answer: Answer, outcome: Outcome | None) -> None:
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
            self._approver.announce([refusal_line(self._request.id, CALLER_WENT_AWAY)])
        self._end(Event.HANGUP, "caller gone")

    def _end(self, event: Event, why: str) -> None:
        """Nothing more will run for this request; the log says why."""
        self._approval.advance(event)
        self._record(_ENDINGS[self._approval.state], {"message": why}, required=False)

    def _announce_trouble(self, error: RefusalError) -> None:
        lines = [error_line(self._request.id, str(error))]
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
            self._audit.append(event, {"id": recorded_id(self._request.id)} | fields, sync=sync)
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
_ECHOES: Final = {State.DENIED: "denied", State.TIMED_OUT: "timeout"}
_ENDINGS: Final = {
    State.CALLER_GONE: "abandoned",
    State.STOPPED: "stopped",
    State.FAILED: "failed",
}


def _programs(request: ValidatedRequest) -> tuple[Program, ...]:
    """What each stage will run; a name that comes again is looked up once."""
    names = {stage[0] for stage in request.pipeline}
    found = {name: resolve(name, as_root=request.privileged) for name in names}
    return tuple(found[stage[0]] for stage in request.pipeline)


def _after(first: Callable[[], None], reply: Reply) -> Reply:
    """Reply once something is done: whoever reads the answer finds it done."""

    def do(response: Response) -> None:
        first()
        reply(response)

    return do


def _error(request_id: str, message: str) -> Response:
    return Response(request_id, Status.ERROR, message=message, version=__version__)
