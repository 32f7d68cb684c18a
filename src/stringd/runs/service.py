"""The runs of a daemon and the clients that follow them, from its start to its stop."""

import asyncio
import logging
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Final

from msgspec import UNSET

from stringd.runs.agents.extensions import Registry
from stringd.runs.agents.templates import Templates
from stringd.runs.engine.config import Equipment, Surroundings
from stringd.runs.engine.executor import RunExecutor
from stringd.runs.engine.live_runs import LiveRuns
from stringd.runs.engine.loading import load
from stringd.runs.engine.pruning import KEEP_EVENTS, Pruning
from stringd.runs.engine.run import RunSettings
from stringd.runs.engine.slots import RunSlots
from stringd.runs.errors import RefusedError
from stringd.runs.handlers.answers import Answers
from stringd.runs.handlers.archive import RunArchive
from stringd.runs.handlers.client import ClientKind, RunsClient
from stringd.runs.handlers.control import RunControl
from stringd.runs.handlers.dispatch import Dispatcher, Handlers
from stringd.runs.handlers.mcp_servers import McpHandlers
from stringd.runs.handlers.prepare import Preparation
from stringd.runs.handlers.subscriptions import join, leave, replay
from stringd.runs.mcp.servers import RunServers
from stringd.runs.models.directory import ProviderDirectory
from stringd.runs.models.resolve import Models
from stringd.runs.record.events import PromptAsked
from stringd.runs.record.file_store import FileRunStore
from stringd.runs.record.resume import read_journal
from stringd.runs.record.store import RunStore
from stringd.runs.sideline import Sideline
from stringd.runs.strategy.definition import Strategy
from stringd.system.lineage import Speaker
from stringd.wire.runs import messages, requests
from stringd.wire.runs.types import RunSummary

log = logging.getLogger(__name__)

# How long a shutdown waits for runs to settle, and then for clients to read what is left.
_DRAIN_SECONDS: Final = 2.0


class RunService:
    """One per daemon. `start` it before the first client, `stop` it after the last."""

    def __init__(
        self,
        data_dir: Path,
        project_dir: Path,
        *,
        store: RunStore | None = None,
        models: Models | None = None,
        registry: Registry | None = None,
        model_override: str | None = None,
        template_filters: Iterable[str] = (),
        concurrent_broadcast: bool = False,
        equipment: Equipment | None = None,
        use_keyring: bool = False,
        keep_events: int = KEEP_EVENTS,
        catalog_url: str | None = None,
        max_running: int | None = None,
    ) -> None:
        self.models = models or Models(
            directory=ProviderDirectory(data_dir, use_keyring=use_keyring, catalog_url=catalog_url)
        )
        self.registry = registry or Registry()
        self._around = Surroundings(
            data_dir, project_dir, self.registry, equipment or Equipment(data_dir), model_override
        )
        self._store: RunStore = store or FileRunStore(data_dir / "runs")
        self._slots = RunSlots(max_running)
        executor = RunExecutor(
            self._store,
            self.models,
            Templates(frozenset(template_filters)),
            concurrent_broadcast=concurrent_broadcast,
            slots=self._slots,
        )
        self._known = LiveRuns()
        self._clients: dict[RunsClient, None] = {}
        self._preparation = Preparation(self._known, self._around, self._store)
        self._conduct = RunControl(self._known, executor, self._store)
        self._pruning = Pruning(self._store, self._known, keep_events)
        self._pruner: asyncio.Task[None] | None = None
        self._dispatcher = Dispatcher(self._handlers(), self.disconnect)

    @property
    def active_runs(self) -> int:
        """Runs prepared or running."""
        return self._known.active

    @property
    def connected_clients(self) -> int:
        return len(self._clients)

    async def start(self) -> None:
        """Mend what a crash left behind, and begin to forget what is old."""
        interrupted = await asyncio.to_thread(self._store.repair)
        if interrupted:
            log.warning("interrupted runs that can be resumed: %d", len(interrupted))
            self._known.interrupted = await asyncio.to_thread(self._unanswered, interrupted)
        self._pruner = asyncio.create_task(self._pruning.forever(), name="prune run events")

    def _unanswered(self, run_ids: Iterable[str]) -> dict[str, list[PromptAsked]]:
        journals = {run_id: read_journal(self._store.timeline(run_id)) for run_id in run_ids}
        asked = {run_id: journal.unfinished.unanswered for run_id, journal in journals.items()}
        return {run_id: prompts for run_id, prompts in asked.items() if prompts}

    async def stop(self) -> None:
        """Stop every run as `stop_run` would, wait until all is settled, then let clients go."""
        if self._preparation.closed:
            return
        self._preparation.closed = True
        for run in self._known:
            self._conduct.stop(run.id)
        tasks = [run.task for run in self._known if run.task is not None]
        tasks += [task for client in self._clients for task in client.tasks]
        if tasks:
            await asyncio.wait(tasks, timeout=_DRAIN_SECONDS)
        await self._hang_up()
        if self._pruner is not None:
            self._pruner.cancel()
            await asyncio.wait([self._pruner])
        await self._around.equipment.pool.close()
        if self.models.directory is not None:
            await self.models.directory.close()
        self._store.close()

    async def _hang_up(self) -> None:
        clients = list(self._clients)
        for client in clients:
            client.hang_up()
        waits = [asyncio.create_task(client.finished.wait()) for client in clients]
        if waits:
            _, late = await asyncio.wait(waits, timeout=_DRAIN_SECONDS)
            for task in late:
                task.cancel()

    def connect(
        self,
        wake: Callable[[], None],
        *,
        speaker: Speaker | None = None,
        kind: ClientKind = "human",
        **limits: int,
    ) -> RunsClient:
        """A new client; `wake` is called when it has frames to take.

        `speaker` is asked who decides. Without one it is this process itself.
        """
        if self.models.directory is not None:
            self.models.directory.renew_catalog()
        client = RunsClient(self._dispatcher, wake, speaker=speaker, kind=kind, **limits)
        self._clients[client] = None
        return client

    def disconnect(self, client: RunsClient) -> None:
        """Take a client off every run; the runs go on."""
        self._clients.pop(client, None)
        for run_id in client.runs:
            run = self._known.get(run_id)
            if run is not None:
                run.subscribers.pop(client, None)

    def summaries(self) -> list[RunSummary]:
        """Runs of this process, in the order they were prepared."""
        found, waiting = self._known.summaries(), self._slots.positions()
        for summary in found:
            summary.queue_position = waiting.get(summary.run_id, UNSET)
        return found

    def _handlers(self) -> Handlers:
        conduct, answers = self._conduct, Answers(self._known, self._store)
        around, history = self._around, RunArchive(self._known, self._store)
        directory = self.models.directory or ProviderDirectory(around.data_dir)
        sideline = Sideline(around.data_dir, around.project_dir, directory)
        mcp = McpHandlers(
            around.data_dir, around.project_dir, self._store, self._servers_of, self._load
        )
        return Handlers(
            now={
                requests.Ping: lambda _request, _client: messages.Pong(),
                requests.StartRun: conduct.start,
                requests.ContinueRun: conduct.go_on,
                requests.StopRun: lambda request, _client: conduct.stop(request.run_id),
                requests.SteerRun: conduct.steer,
                requests.UpdatePolicy: lambda request, _client: conduct.update_policy(request),
                requests.UserInput: answers.user_input,
                requests.QuestionResponse: answers.question_response,
                requests.PermissionDecision: answers.permission_decision,
                requests.Subscribe: self._subscribe,
                requests.Unsubscribe: self._unsubscribe,
                requests.ListStrategies: lambda _request, _client: messages.StrategyList(
                    runs=self.summaries()
                ),
            },
            later={
                requests.PrepareRun: self._preparation,
                requests.ListRuns: history.runs,
                requests.GetTimeline: history.run,
                requests.DeleteRun: history.delete,
                **sideline.handlers(),
                **mcp.handlers(),
            },
        )

    def _subscribe(self, request: requests.Subscribe, client: RunsClient) -> None:
        """Follow a run this process knows. Raises `RefusedError`."""
        run = self._known.get(request.run_id)
        if run is None:
            raise RefusedError("SUBSCRIBE_ERROR", f"Run not found: {request.run_id}")
        if client not in self._clients:
            raise RefusedError("SUBSCRIBE_ERROR", f"Client not found: {client.id}")
        if request.from_seq is UNSET:
            join(run, client)
        else:
            replay(self._known, request.run_id, client, request.from_seq)

    def _unsubscribe(self, request: requests.Unsubscribe, client: RunsClient) -> None:
        """Stop following; never an error."""
        leave(request.run_id, self._known.get(request.run_id), client)

    def _servers_of(self, run_id: str) -> RunServers | None:
        run = self._known.get(run_id)
        return run.servers if run else None

    def _load(self, path: str, cwd: Path) -> Strategy:
        settings = RunSettings(path, str(cwd), "demo/echo")
        return load(settings, self.registry, self._around)
