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
from stringd.gate.attempts import (
    attempt_of,
    gate_is_root,
    grant_objection,
    granted_caller,
    hold_programs,
)
from stringd.gate.audit import AuditLog
from stringd.gate.board import Board
from stringd.gate.callers import CallerId, Callers
from stringd.gate.console import CALLER_WENT_AWAY, Approver
from stringd.gate.decide import Approval, Event, KeyAnswer, State
from stringd.gate.display import Style, fitted, line
from stringd.gate.environment import account, plain_environment
from stringd.gate.errors import CallerGoneError, RefusalError, StoppingError, TroubleError
from stringd.gate.execute import Executor, OverrunError
from stringd.gate.judge import Attempt
from stringd.gate.machines import Machines
from stringd.gate.pipeline import Outcome
from stringd.gate.policy import StandingPolicy
from stringd.gate.program import ShownProgram
from stringd.gate.question import AskingPeer, Question
from stringd.gate.refusals import Ration
from stringd.gate.report import (
    command_fields,
    error_line,
    is_large,
    outcome_fields,
    outcome_lines,
    outcome_text,
    program_fields,
    received_fields,
    recorded_id,
    refusal_line,
    standing_line,
)
from stringd.gate.rules import Effect
from stringd.gate.running import RunningCommands
from stringd.gate.validate import ValidatedRequest
from stringd.gate.watch import Watch
from stringd.wire.gate import Response, Status

NOT_OURS: Final = "what agents do themselves is asked about each time"
NOT_HERE: Final = "commands on other machines are asked about each time"
HELD_OFF: Final = "everything this program asks is denied for now"
BY_RULE: Final = "a rule of this machine denies it; nobody was asked"

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
    policy: StandingPolicy
    board: Board
    machines: Machines | None
    # Where browsers can answer by a passkey; empty if they cannot.
    page: Callable[[], str]


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
        self._attempt: Attempt | None = None
        self._on_record: dict[str, object] = {}
        as_root = request.privileged or gate_is_root()
        self._entry = shop.board.arrived(request, as_root=as_root)

    def run(self) -> None:
        """Go the whole way and answer. Raises `CallerGoneError` when nobody is left to answer."""
        try:
            self._go()
        finally:
            # Whatever happened, it is not open any more.
            self._shop.board.ended(self._entry, "failed")

    def _go(self) -> None:
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
                self._shop.board.ended(self._entry, outcome_text(outcome), outcome)
                if self._may_need_terminal:
                    # While we still hold the turn: the lines come before the next question.
                    self._echo(outcome)
        # Without the turn: a caller slow to read its answer keeps nobody from being asked.
        self._answer(answer, outcome)
        if outcome is not None and not self._may_need_terminal:
            self._echo(outcome)

    @property
    def _may_need_terminal(self) -> bool:
        """Whether sudo may ask here; on another machine it asks nothing."""
        return self._request.privileged and not self._request.is_remote

    def _echo(self, outcome: Outcome) -> None:
        columns = self._shop.columns()
        self._approver.announce(list(outcome_lines(self._request, outcome, columns)))

    def _receive(self) -> None:
        """Record the request, unless so many come that only those somebody decides are recorded."""
        if (missed := self._shop.ration.admit()) is not None:
            self._record_received({"unrecorded": missed} if missed else {})

    def _record_received(self, more: dict[str, object]) -> None:
        self._is_received = True
        if page := self._shop.page():
            more |= {"page": page}
        self._record("received", received_fields(self._request, self._caller.peer) | more)

    def _decide(self, turn: ExitStack) -> KeyAnswer:
        answer = self._standing_answer()
        if answer is None or (answer.event is Event.PERMITTED and self._request.privileged):
            # sudo may need the terminal, whoever allowed it.
            turn.enter_context(self._approver.turn(self._caller.watch, self._who))
            self._caller.watch.check()
        if answer is None:
            # Those in the queue may have been denied, or granted, meanwhile.
            answer = self._standing_answer()
        if answer is None:
            answer = self._approver.ask(self._question(), self._caller.watch)
        self._approval.advance(answer.event)
        self._remember(answer)
        if not self._may_need_terminal:
            # Only sudo may need the terminal again; everyone else lets the next question come.
            turn.close()
        return answer

    def _standing_answer(self) -> KeyAnswer | None:
        """What the person has said before: about this caller, in a rule or in a grant."""
        if self._shop.callers.is_held_off(self._who):
            return KeyAnswer(Event.FORBIDDEN, note=HELD_OFF)
        policy = self._shop.policy
        if policy.is_empty or self._request.is_remote or self._request.is_decision:
            # Rules and grants are about programs of this machine.
            return None
        with ExitStack() as held:
            programs = hold_programs(self._request, held)
            ruling = policy.decide(self._attempt_with(programs))
            if ruling.effect is Effect.ASK:
                return None
            if ruling.effect is Effect.DENY:
                return KeyAnswer(Event.FORBIDDEN, by=ruling.by, note=BY_RULE)
            self._approval.permit(programs, self._shop.sudo() if self._request.privileged else None)
            self._programs.push(held.pop_all())
        return KeyAnswer(Event.PERMITTED, by=ruling.by)

    def _remember(self, answer: KeyAnswer) -> None:
        """Do what an answer says about later requests of this caller."""
        grants = self._shop.policy.grants
        if answer.denies_caller:
            self._shop.callers.hold_off(self._who)
        if answer.event is Event.NO and (revoked := grants.revoke_of(self._who)):
            self._on_record["revoked"] = revoked
            self._tell(f"Grants of this caller ended: {' '.join(map(str, revoked))}.")
        if answer.grants and self._attempt is not None:
            if (grant := grants.give(self._attempt.granted)) is None:
                self._tell("There are too many grants: this one counts once.")
                return
            self._on_record["grant"] = grant.number
            self._tell(f"Grant {grant.number}: the same needs no key for 10 minutes, 20 times.")

    def _tell(self, text: str) -> None:
        self._approver.announce([line(fitted(text, self._shop.columns()), Style.BOLD)])

    def _attempt_with(self, programs: tuple[ShownProgram, ...]) -> Attempt:
        request = self._request
        return attempt_of(
            request,
            programs,
            changeable_files(request.pipeline, programs, as_root=request.privileged),
            granted_caller(self._who, self._caller.peer, request),
            self._shop.policy.rules,
        )

    def _question(self) -> Question:
        """Look up what would run, and hold it from now on."""
        request = self._request
        if request.is_remote:
            route = self._machines.route(request.host)
            self._approval.show((), None, route)
            return Question(request, (), self._caller.peer, no_grant=NOT_HERE, route=route)
        if request.is_decision:
            self._approval.show((), None)
            return Question(request, (), self._caller.peer, no_grant=NOT_OURS)
        sudo = self._shop.sudo() if request.privileged else None
        programs = hold_programs(self._request, self._programs)
        self._approval.show(programs, sudo)
        plain = {} if request.privileged else plain_environment(request, self._shop.env)
        self._attempt = self._attempt_with(programs)
        return Question(
            request,
            programs,
            self._caller.peer,
            account()[0],
            sudo,
            changeable_files(request.pipeline, programs, as_root=request.privileged),
            plain,
            grant_objection(self._attempt) or self._shop.policy.says_ask(self._attempt),
            home="/root" if request.privileged else account()[1],
        )

    def _execute(self, answer: KeyAnswer) -> Outcome | None:
        approved = self._approval.state is State.APPROVED
        if answer.note != HELD_OFF or self._is_received:
            self._record_decision(answer, approved)
        if not approved:
            return None
        if answer.event is Event.PERMITTED:
            columns, when = self._shop.columns(), time.strftime("%H:%M:%S")
            self._approver.announce([standing_line(self._request, answer.by, when, columns)])
        self._caller.watch.check()
        if self._request.is_decision:
            # Spent like any other approval: what follows is the caller's.
            self._approval.spend()
            self._approval.advance(Event.END)
            return None
        with self._shop.running.command() as ending:
            self._shop.board.started(self._entry, ending)
            try:
                outcome = self._run(self._caller.watch.with_abort(ending))
            finally:
                self._shop.board.stopped(self._entry)
        self._approval.advance(Event.END)
        return outcome

    def _run(self, watch: Watch) -> Outcome:
        if (route := self._approval.route) is None:
            return self._shop.executor.run(self._approval.spend(), watch, self._approver.lend)
        agent = self._request.forward_agent
        connected = self._machines.connect(route, watch, agent=agent)
        # Connecting took its time, and nothing runs there before this.
        watch.check()
        return self._machines.run(self._approval.spend(), connected, watch)

    @property
    def _machines(self) -> Machines:
        if self._shop.machines is None:
            raise RefusalError("this gate reaches no other machines")
        return self._shop.machines

    def _record_decision(self, answer: KeyAnswer, approved: bool) -> None:
        if not self._is_received:
            self._record_received({})
        fields: dict[str, object] = {
            "decision": _DECISIONS[self._approval.state],
            "by": answer.by,
            "note": answer.note,
            "latency_ms": round((time.monotonic() - self._asked_at) * 1000),
        } | self._on_record
        if approved:
            shown = self._approval
            fields |= program_fields(shown.programs, shown.sudo, shown.route)
            fields |= command_fields(self._request) if is_large(self._request) else {}
        # What nobody sees coming has to be on record, whoever it runs as.
        required = True if answer.event is Event.PERMITTED else None
        self._record("decided", fields, sync=approved, required=required if approved else False)

    def _answer(self, answer: KeyAnswer, outcome: Outcome | None) -> None:
        if outcome is None:
            status = _STATUSES[self._approval.state]
            self._shop.board.ended(self._entry, str(status))
            self._caller.reply(
                Response(
                    self._request.id,
                    status,
                    message=_ALLOWED if status is Status.OK else None,
                    version=__version__,
                    decided_by=None if status is Status.TIMEOUT else answer.by,
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
        self._shop.board.ended(self._entry, why)
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
_STATUSES: Final = {
    State.DENIED: Status.DENIED,
    State.TIMED_OUT: Status.TIMEOUT,
    # Without an outcome: the caller may do it itself.
    State.FINISHED: Status.OK,
}
_ALLOWED: Final = "allowed"
_ENDINGS: Final = {
    State.CALLER_GONE: "abandoned",
    State.STOPPED: "stopped",
    State.FAILED: "failed",
}


def error_response(request_id: str, message: str) -> Response:
    return Response(request_id, Status.ERROR, message=message, version=__version__)
