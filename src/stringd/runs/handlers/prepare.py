"""`prepare_run`: a run becomes ready to start, or its watcher joins it while it runs."""

import asyncio
from pathlib import Path
from typing import Any
from uuid import uuid4

from msgspec import UNSET

from stringd.runs.engine.executor import CANCELLED
from stringd.runs.engine.live_runs import LiveRuns
from stringd.runs.engine.loading import prepare, prepare_remembered
from stringd.runs.engine.run import Prepared, Run
from stringd.runs.engine.services import RunServices
from stringd.runs.errors import PrepareError
from stringd.runs.guard.guards import RunGuards
from stringd.runs.handlers.client import ConnectedClient
from stringd.runs.handlers.endings import untold_ending
from stringd.runs.handlers.subscriptions import follow, join, leave
from stringd.runs.record.store import check_run_id
from stringd.runs.record.views import conversation
from stringd.runs.tools.offered import ClientTool
from stringd.wire.runs import messages, requests


class Preparation:
    """`closed` is set when the daemon stops: nothing new is prepared from then on."""

    def __init__(self, known: LiveRuns, services: RunServices) -> None:
        self.closed = False
        self._known = known
        self._config = services.config
        self._store = services.store
        self._pool = services.pool

    async def __call__(self, request: requests.PrepareRun, client: ConnectedClient) -> None:
        """Load a run, or attach to it when it is running, and tell the client what it is."""
        run_id = request.run_id or str(uuid4())
        check_run_id(run_id)
        earlier = await self._settled(run_id)
        if earlier is not None and earlier.status == "running" and earlier.prepared is not None:
            await self._attach(earlier, client, request.request_id)
            return
        taken = earlier is not None and (earlier.live or not earlier.persistent)
        if self.closed or taken:
            raise PrepareError(f"Run already exists: {run_id}")
        await self._prepare(request, run_id, earlier, client)

    async def _settled(self, run_id: str) -> Run | None:
        """The run of that id, once an ending that is under way has been recorded and told."""
        while True:
            run = self._known.get(run_id)
            if run is None or run.live or run.task is None:
                return run
            await asyncio.wait([run.task])

    async def _prepare(
        self,
        request: requests.PrepareRun,
        run_id: str,
        earlier: Run | None,
        client: ConnectedClient,
    ) -> None:
        seq = earlier.seq if earlier else self._store.last_seq(run_id)
        observer = self._config.observer
        run = Run(run_id, request.strategy_path or "", self._store, seq=seq, observer=observer)
        if seq:
            run.persist()
        run.subscribers = dict(earlier.subscribers) if earlier else {}
        self._known.add(run)
        followed = run_id in client.runs
        follow(run, client)
        try:
            if seq and earlier is None:
                await self._tell_ending(run)
            prepared = await self._loaded(request, run_id, client, earlier, new=not seq)
            await self._connect(run, prepared)
            if not run.live:
                raise PrepareError(CANCELLED.message)
            self._settle_in(run, prepared)
        except BaseException:
            # What was prepared after this one was stopped counts, not what was there before.
            if self._known.get(run_id) is run:
                if not followed and client in run.subscribers:
                    leave(run_id, run, client)
                self._restore(run, earlier)
            raise
        observer.prepared(run_id, run.strategy_name)
        client.reply(_prepared_message(run, prepared, request.request_id))

    async def _loaded(
        self,
        request: requests.PrepareRun,
        run_id: str,
        client: ConnectedClient,
        earlier: Run | None,
        *,
        new: bool,
    ) -> Prepared:
        """What a run needs: remembered where that is enough, else read from files in a thread."""
        if new and earlier is None:
            remembered = prepare_remembered(request, run_id, self._config, self._store)
            if remembered is not None:
                return remembered
        return await asyncio.to_thread(
            prepare,
            request,
            run_id,
            self._config,
            self._store,
            in_memory=earlier is not None,
            tools=[ClientTool(each, client.tool_calls) for each in request.tools or ()],
        )

    async def _tell_ending(self, run: Run) -> None:
        """A daemon killed after it recorded an ending has told it to nobody."""
        ending = await untold_ending(self._store, run.id)
        if ending is not None:
            run.recall(ending)

    async def _connect(self, run: Run, prepared: Prepared) -> None:
        """Connect to the MCP servers its agents name; one that fails is only reported."""
        cwd, chosen = Path(prepared.settings.cwd), prepared.selection
        prepared.mcp = await self._pool.connect(prepared.servers, prepared.strategy, cwd, chosen)
        if run.live:
            run.servers = prepared.mcp
        else:
            prepared.mcp.close()
            if prepared.kind == "new" and self._known.get(run.id) is run:
                self._store.drop_selection(run.id)

    def _settle_in(self, run: Run, prepared: Prepared) -> None:
        run.prepared = prepared
        run.strategy_name = prepared.strategy.name
        defaults = self._config.guard_defaults(Path(prepared.settings.cwd))
        run.policies = RunGuards(defaults)
        if prepared.kind == "continuation":
            run.persist()

    def _restore(self, run: Run, earlier: Run | None) -> None:
        """A failed preparation leaves things as they were; a stopped one stays stopped."""
        if not run.live and earlier is None:
            return
        if earlier is None:
            self._known.remove(run.id)
            return
        earlier.subscribers, earlier.seq = run.subscribers, run.seq
        self._known.add(earlier)

    async def _attach(self, run: Run, client: ConnectedClient, request_id: Any) -> None:
        prepared = run.prepared
        if prepared is None:
            raise PrepareError(f"Run already exists: {run.id}")
        # Counted while it runs: an ending up to here is an earlier segment's.
        seq = run.seq
        record = await asyncio.to_thread(self._store.timeline, run.id)
        message = _prepared_message(run, prepared, request_id)
        message.conversation = conversation(record)
        message.last_seq = seq or UNSET
        client.reply(message)
        join(run, client)


def _prepared_message(run: Run, prepared: Prepared, request_id: Any) -> messages.RunPrepared:
    return messages.RunPrepared(
        run_id=run.id,
        strategy_name=prepared.strategy.name,
        agents=list(prepared.strategy.agents),
        flow_tree=prepared.strategy.flow_tree,
        conversation=prepared.conversation,
        mcp_servers=prepared.mcp.statuses() if prepared.mcp else [],
        last_seq=run.seq or UNSET,
        request_id=request_id,
    )
