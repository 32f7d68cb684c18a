"""Runs on disk: listed, looked into, deleted."""

import asyncio

from msgspec import UNSET, UnsetType, structs

from stringd.runs.engine.human import asked_for
from stringd.runs.engine.live_runs import LiveRuns
from stringd.runs.engine.observer import RunObserver
from stringd.runs.errors import PrepareError, RefusedError
from stringd.runs.handlers.answers import Answers
from stringd.runs.handlers.client import ConnectedClient
from stringd.runs.handlers.endings import untold_ending
from stringd.runs.record.activity import activity
from stringd.runs.record.events import AnyEvent, PromptAsked
from stringd.runs.record.fork import completed_steps
from stringd.runs.record.resume import read_journal
from stringd.runs.record.store import RunStore, check_run_id
from stringd.runs.record.views import conversation, fork_origin, last_error, overview
from stringd.wire.runs import messages, requests
from stringd.wire.runs.catalog import WaitingPrompt
from stringd.wire.runs.codec import decode_message
from stringd.wire.runs.types import RunOverview


class RunArchive:
    def __init__(
        self, known: LiveRuns, store: RunStore, answers: Answers, observer: RunObserver
    ) -> None:
        self._known = known
        self._store = store
        self._answers = answers
        self._observer = observer

    async def runs(self, request: requests.ListRuns, _client: ConnectedClient) -> messages.Message:
        """Newest first; those of one working directory when given."""
        found = await asyncio.to_thread(self._store.overviews)
        cwd = request.cwd
        runs = [each for each in found if cwd is UNSET or each.cwd == cwd]
        if not request.details:
            runs = [structs.replace(each, usage=UNSET, last=UNSET) for each in runs]
        return messages.RunList(runs=runs)

    async def run(
        self, request: requests.GetTimeline, _client: ConnectedClient
    ) -> messages.Message:
        """What was said in a run. Raises `RefusedError`."""
        events = await self._events(request.run_id)
        seen = overview(request.run_id, events)
        if seen is None:
            raise _unknown(request.run_id)
        return messages.RunTimeline(
            run=seen,
            conversation=conversation(events),
            waiting=[_waiting(each) for each in read_journal(events).unanswered],
            result=await self._result(seen),
            error=last_error(events) or UNSET,
            steps=completed_steps(events),
            forked_from=fork_origin(events) or UNSET,
            activity=activity(events) if request.activity else UNSET,
        )

    async def delete(
        self, request: requests.DeleteRun, _client: ConnectedClient
    ) -> messages.Message:
        """Forget a run for good, unless it is live. Raises `RefusedError`."""
        run_id = request.run_id
        kept = bool(await self._events(run_id))
        run = self._known.get(run_id)
        if run is None and not kept:
            raise _unknown(run_id)
        busy = run is not None and (run.live or run.task is not None)
        if busy or (kept and not self._store.claim(run_id)):
            raise RefusedError("RUN_ACTIVE", f"Run is active: {run_id}. Stop it first.")
        self._known.remove(run_id)
        self._answers.forget(run_id)
        self._store.delete(run_id)
        self._observer.deleted(run_id)
        return messages.RunDeleted(run_id=run_id)

    async def _result(self, run: RunOverview) -> str | UnsetType:
        """What the last broadcast says; a run of another daemon may have none."""
        if run.status != "completed":
            return UNSET
        frame = await asyncio.to_thread(self._store.last_frame, run.run_id)
        last = decode_message(frame) if frame is not None else None
        if not isinstance(last, messages.StrategyCompleted):
            last = await untold_ending(self._store, run.run_id)
        return last.result if isinstance(last, messages.StrategyCompleted) else UNSET

    async def _events(self, run_id: str) -> list[AnyEvent]:
        try:
            check_run_id(run_id)
        except PrepareError:
            raise _unknown(run_id) from None
        return await asyncio.to_thread(self._store.timeline, run_id)


def _waiting(asked: PromptAsked) -> WaitingPrompt:
    prompt = WaitingPrompt(
        kind=asked.kind, request_id=asked.request_id, agent_name=asked.agent_name
    )
    if asked.kind == "question":
        prompt.question = asked.about
    elif asked.kind == "permission":
        wish = asked_for(asked)
        prompt.tool_name, prompt.operation = wish.tool_name, wish.operation
        prompt.resource = wish.resource
        prompt.details = dict(wish.details) if wish.details else UNSET
    return prompt


def _unknown(run_id: str) -> RefusedError:
    return RefusedError("RUN_NOT_FOUND", f"Run not found: {run_id}")
