"""What clients do to a prepared or running run: start it, stop it, steer it, change its policy."""

import logging
from collections.abc import Callable
from typing import Literal

from stringd.runs.agents.steering import Steer
from stringd.runs.engine.executor import RunExecutor
from stringd.runs.engine.live_runs import LiveRuns
from stringd.runs.engine.run import Prepared, Run
from stringd.runs.errors import NotRecordedError, RefusedError, StartError
from stringd.runs.guard.permissions import OPERATIONS
from stringd.runs.handlers.answers import Answers
from stringd.runs.handlers.client import ConnectedClient
from stringd.runs.handlers.subscriptions import follow
from stringd.runs.record.events import INTERRUPTED
from stringd.runs.record.store import RunStore
from stringd.wire.runs import messages, requests
from stringd.wire.runs.catalog import StandingDecision
from stringd.wire.runs.types import PolicyName

log = logging.getLogger(__name__)


class RunControl:
    def __init__(
        self, known: LiveRuns, executor: RunExecutor, store: RunStore, answers: Answers
    ) -> None:
        self._known = known
        self._executor = executor
        self._store = store
        self._answers = answers

    def start(self, request: requests.StartRun, client: ConnectedClient) -> None:
        """Begin a new run's first segment. Raises `StartError`."""
        run, prepared = self._startable(request.run_id, "new")
        self._begin(run, prepared, client, request, resume=False)

    def continue_(self, request: requests.ContinueRun, client: ConnectedClient) -> None:
        """Begin a later segment, from the start or the last ending. Raises `StartError`."""
        run, prepared = self._startable(request.run_id, "continuation")
        if request.resume and prepared.journal.finished:
            message = f"Run has nothing left to resume: {run.id}"
            raise StartError("CONTINUE_FAILED", message)
        self._begin(run, prepared, client, request, resume=request.resume)

    def _startable(self, run_id: str, kind: Literal["new", "continuation"]) -> tuple[Run, Prepared]:
        code = "START_FAILED" if kind == "new" else "CONTINUE_FAILED"
        run = self._known.get(run_id)
        prepared = run.prepared if run else None
        if run is None or prepared is None:
            raise StartError(code, f"Prepared run not found: {run_id}")
        if prepared.kind != kind:
            was = "was" if kind == "new" else "was not"
            raise StartError(code, f"Run {was} prepared for continuation: {run_id}")
        if run.started or run.status != "pending":
            raise StartError(code, f"Run already started: {run_id}")
        return run, prepared

    def _begin(
        self,
        run: Run,
        prepared: Prepared,
        client: ConnectedClient,
        request: requests.StartRun | requests.ContinueRun,
        *,
        resume: bool,
    ) -> None:
        code = "START_FAILED" if prepared.kind == "new" else "CONTINUE_FAILED"
        try:
            if not self._store.claim(run.id):
                raise StartError(code, f"Run is running in another daemon: {run.id}")
            self._executor.record_start(run, prepared, request.input, resume=resume)
        except NotRecordedError as error:
            self._store.release(run.id)
            raise StartError(
                code,
                f"Run not started, nothing was done: its start cannot be recorded ({error.why}). "
                f"Make room in the data directory and start it again: {run.id}",
            ) from error
        self._known.forget_oldest()
        self._answers.forget(run.id)
        follow(run, client)
        run.request_id = request.request_id
        self._executor.begin(run, prepared, request.input, resume=resume)

    def stop(self, run_id: str) -> None:
        """Stop a live run at once; anything else is left alone."""
        run = self._known.get(run_id)
        if run is None or not run.live:
            log.info("stop_run: %s is not live", run_id)
            return
        self._executor.stop(run)

    def interrupt(self, run: Run) -> None:
        """Stop a run because the daemon ends: what it asked can be answered when one is back."""
        if run.live:
            self._executor.stop(run, INTERRUPTED)

    def steer(self, request: requests.SteerRun, client: ConnectedClient) -> None:
        """Queue a text for the next agent call or round-trip. Raises `RefusedError`."""
        run = self._known.get(request.run_id)
        if run is None or not run.live or run.prepared is None:
            raise RefusedError(
                "RUN_NOT_STEERABLE", f"Cannot steer run {request.run_id}: not running"
            )
        if run.mailbox.full:
            message = f"Cannot steer run {run.id}: too many texts are waiting for its next call"
            raise RefusedError("RUN_NOT_STEERABLE", message)
        if run.started:
            self._executor.record_steering(run, request.text, client.by)
        between = request.mode == "steer"
        run.mailbox.put(Steer(request.text, client.by, _receipt(request, client), between))
        queued = messages.SteerQueued(run_id=run.id, text=request.text)
        queued.request_id = request.request_id
        run.publish(queued)

    def update_policy(self, request: requests.UpdatePolicy) -> None:
        """Change path policies and show each changed chain. Raises `RefusedError`."""
        run = self._live(request.run_id)
        changed = run.policies.update(
            request.tool or None,
            request.mode,
            allow=request.allow or (),
            deny=request.deny or (),
            default=request.default or None,
        )
        for tool, chain in changed:
            _show_chain(run, tool, chain)

    def decisions(self, request: requests.ListDecisions) -> messages.DecisionList:
        """What was decided for the rest of a live run. Raises `RefusedError`."""
        return _decisions(self._live(request.run_id))

    def revoke(self, request: requests.RevokeDecision) -> messages.DecisionList:
        """Take a decision back; what it settled is asked or judged again. Raises `RefusedError`."""
        run = self._live(request.run_id)
        changed = run.policies.revoke(request.decision_id)
        if changed is None:
            message = f"No decision {request.decision_id} counts in run {run.id}"
            raise RefusedError("NOT_FOUND", message)
        _show_chain(run, *changed)
        return _decisions(run)

    def _live(self, run_id: str) -> Run:
        run = self._known.get(run_id)
        if run is None or not run.live or run.prepared is None:
            raise RefusedError("RUN_NOT_FOUND", f"No active run found for runId {run_id}")
        return run


def _show_chain(run: Run, tool: str, chain: list[str]) -> None:
    policies = [PolicyName(name=name) for name in chain]
    run.publish(messages.PolicyUpdated(run_id=run.id, tool=tool, policies=policies))


def _decisions(run: Run) -> messages.DecisionList:
    found = [
        StandingDecision(
            decision_id=each.id,
            tool_name=each.tool,
            decision=each.verdict,
            operation=OPERATIONS[each.direction],
            resource=each.resource,
            kind=each.kind,
        )
        for each in run.policies.standing
    ]
    return messages.DecisionList(run_id=run.id, decisions=found)


def _receipt(
    request: requests.SteerRun, client: ConnectedClient
) -> Callable[[str | None], None] | None:
    if not request.receipt:
        return None

    def tell(agent_name: str | None) -> None:
        message: messages.Message
        if agent_name is None:
            message = messages.SteerUndelivered(run_id=request.run_id, text=request.text)
        else:
            message = messages.SteerDelivered(
                run_id=request.run_id, text=request.text, agent_name=agent_name
            )
        message.request_id = request.request_id
        client.reply(message)

    return tell
