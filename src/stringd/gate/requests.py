"""One request from its line to its question: decode, validate, admit. `case.py` does the rest.

Every step hands the next one a narrower type, and every failure becomes a response here or there
and nowhere else.
"""

import os
import threading
import time
from collections.abc import Callable, Mapping
from contextlib import ExitStack
from dataclasses import replace
from typing import Final

from stringd import __version__
from stringd.gate.audit import AuditLog
from stringd.gate.board import Board
from stringd.gate.callers import CallerId, Callers, agent_of, caller_of, program_of
from stringd.gate.case import Case, GateCaller, Reply, Workshop, error_response
from stringd.gate.console import Approver
from stringd.gate.display import Style, clipped, line
from stringd.gate.errors import BusyError, RefusalError
from stringd.gate.execute import Executor
from stringd.gate.hints import split_form
from stringd.gate.machines import Machines
from stringd.gate.peers import executable_of
from stringd.gate.policy import StandingPolicy
from stringd.gate.program import ShownProgram
from stringd.gate.question import MAX_NAME, MAX_REASON, AskingPeer
from stringd.gate.refusals import Ration, RefusalRecords
from stringd.gate.replay import MAX_CONTROL_IDS, ReplayMemory
from stringd.gate.report import log_line
from stringd.gate.resolve import resolve
from stringd.gate.running import RunningCommands
from stringd.gate.sudo import find_sudo
from stringd.gate.validate import ASKED, ValidatedRequest
from stringd.wire.gate import (
    Blob,
    Request,
    RequestAction,
    Response,
    Status,
    decode_request,
    fresh_id,
)
from stringd.wire.jsonlines import JsonError

# A full line of many short words takes fifty times its size once it is read.
MAX_LARGE_IN_FLIGHT: Final = 8
_LARGE_LINE: Final = 65_536

_EVERYONE: Final = CallerId(0, 0)


class RequestHandler:
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
        columns: Callable[[], int] = lambda: 80,
        env: Mapping[str, str] = os.environ,
        sudo: Callable[[], ShownProgram] | None = None,
        running: RunningCommands | None = None,
        machines: Machines | None = None,
        identify: Callable[[int, int], CallerId] = caller_of,
        policy: StandingPolicy | None = None,
        board: Board | None = None,
        page: Callable[[], str] = lambda: "",
    ) -> None:
        self.places = Callers()
        self._shop = Workshop(
            approver,
            executor,
            audit,
            env,
            (lambda: find_sudo(env)) if sudo is None else sudo,
            self.places,
            RunningCommands() if running is None else running,
            Ration(),
            columns,
            StandingPolicy() if policy is None else policy,
            Board() if board is None else board,
            machines,
            page,
        )
        self._approver = approver
        self._max_future = max_future
        self._allow_stop_busy = allow_stop_busy
        self._stop = stop
        self._log = log
        self._identify = identify
        self._replay = ReplayMemory(max_future)
        self._control_replay = ReplayMemory(max_future, MAX_CONTROL_IDS, forgets_oldest=True)
        self._decoding = threading.Lock()
        self.refusals = RefusalRecords(audit)
        self._large = Callers(MAX_LARGE_IN_FLIGHT, MAX_LARGE_IN_FLIGHT)
        self.stopped_by: AskingPeer | None = None

    @property
    def unrecorded(self) -> int:
        """How many requests that nobody decided are not in the audit log."""
        return self.refusals.unrecorded + self._shop.ration.unrecorded

    def handle(self, text: bytes, caller: GateCaller) -> None:
        """Answer one line. Raises `CallerGoneError` when nobody is left to answer."""
        if len(text) < _LARGE_LINE:
            self._handle(text, caller)
            return
        try:
            free = self._large.take(_EVERYONE)
        except BusyError as error:
            caller.reply(error_response("", str(error)))
            return
        try:
            self._handle(text, replace(caller, reply=_after(free, caller.reply)))
        finally:
            free()

    def _handle(self, text: bytes, caller: GateCaller) -> None:
        try:
            request = self._decode(text)
        except JsonError as error:
            self._refuse("", f"invalid JSON: {error}", caller)
            return
        request_id = fresh_id(os.urandom(16)) if request.id is None else request.id
        try:
            validated = ValidatedRequest(
                request, fresh_id=request_id, now=caller.arrived_ns, max_future=self._max_future
            )
            self._dispatch(validated, caller)
        except BusyError as error:
            caller.reply(error_response("", str(error)))
        except RefusalError as error:
            self._refuse(request_id, str(error), caller)

    def _refuse(self, request_id: str, message: str, caller: GateCaller) -> None:
        """Answer a request that nobody will be asked about."""
        self._log(f"[{clipped(request_id, MAX_NAME)}] refused: {clipped(message, MAX_REASON)}")
        self.refusals.add(caller.peer, request_id, message)
        caller.reply(error_response(request_id, message))

    def _decode(self, text: bytes) -> Request:
        if len(text) < _LARGE_LINE:
            return decode_request(text)
        # One large line at a time, so that small ones never queue for the interpreter behind many.
        with self._decoding:
            return decode_request(text)

    def _dispatch(self, request: ValidatedRequest, caller: GateCaller) -> None:
        if request.action in ASKED:
            self._handle_exec(request, caller)
            return
        # Apart from commands: however many pings there are, a command finds room for its id.
        self._control_replay.admit(request.id, time.monotonic())
        if request.action is RequestAction.PING:
            caller.reply(
                Response(request.id, Status.OK, stdout=Blob(), message="pong", version=__version__)
            )
        elif request.action is RequestAction.STOP:
            self._handle_stop(request, caller)
        else:
            self._handle_inquiry(request, caller)

    def _handle_inquiry(self, request: ValidatedRequest, caller: GateCaller) -> None:
        from stringd.gate.inquiry import explain_response, grants_response, revoke  # seldom

        policy, peer = self._shop.policy, caller.peer
        if request.action is RequestAction.GRANTS:
            caller.reply(grants_response(request, policy))
        elif request.action is RequestAction.REVOKE:
            ended, response = revoke(request, policy)
            if ended:
                self.refusals.revoked(peer, ended)
                text = f"Grants ended by {clipped(peer.exe, MAX_NAME)}: {' '.join(map(str, ended))}"
                self._approver.announce([line(text, Style.BOLD)])
            caller.reply(response)
        else:
            who = self._identify(peer.pid, peer.uid)
            caller.reply(explain_response(request, who, peer, policy))

    def _handle_stop(self, request: ValidatedRequest, caller: GateCaller) -> None:
        if (busy := self.places.taken) and not self._allow_stop_busy:
            raise RefusalError(f"busy: {busy} request(s) in progress")
        caller.reply(
            Response(request.id, Status.OK, stdout=Blob(), message="stopping", version=__version__)
        )
        peer = self.stopped_by = caller.peer
        who = f"{clipped(peer.exe, MAX_NAME)} (pid {peer.pid})"
        self._approver.announce(
            [line(f"stringd gate stops: a client asked for it, {who}.", Style.BOLD)]
        )
        self._stop()

    def _handle_exec(self, request: ValidatedRequest, caller: GateCaller) -> None:
        _refuse_single_words(request)
        who = self._identify(caller.peer.pid, caller.peer.uid)
        if who.pid != caller.peer.pid:
            origin = f"{executable_of(who.pid)} (pid {who.pid})"
            caller = replace(caller, peer=replace(caller.peer, origin=origin))
        agent, behind = agent_of(caller.peer.pid), program_of(request.client_pid, caller.peer.uid)
        if agent or behind:
            caller = replace(caller, peer=replace(caller.peer, agent=agent, behind=behind))
        # The place comes first: a caller told to come back later may do so with the same id.
        free = self.places.take(who)
        try:
            self._replay.admit(request.id, time.monotonic())
            self._log(log_line(request))
            caller = replace(caller, reply=_after(free, caller.reply))
            with ExitStack() as programs:
                Case(request, caller, who, self._shop, programs).run()
        finally:
            free()


def _refuse_single_words(request: ValidatedRequest) -> None:
    """Refuse a command that was sent as one word: nobody has to be asked to see that it fails."""
    if request.is_remote or request.is_decision:
        return
    for index, stage in enumerate(request.pipeline):
        word = stage[0]
        if len(stage) > 1 or not any(map(str.isspace, word.strip())):
            continue
        if resolve(word, as_root=request.privileged).path is None:
            raise RefusalError(
                f"pipeline[{index}] is one word with blanks, and no program has that name; there "
                f"is no shell here: send its words apart, {split_form(request.pipeline, index)}"
            )


def _after(first: Callable[[], None], reply: Reply) -> Reply:
    """Reply once something is done: whoever reads the answer finds it done."""

    def do(response: Response) -> None:
        first()
        reply(response)

    return do
