"""The runs of a daemon and the clients that follow them, from its start to its stop."""

import asyncio
import logging
from collections.abc import Callable, Iterator
from typing import Final

from msgspec import UNSET

from stringd.runs.agents.templates import Templates
from stringd.runs.engine.config import RunsConfig
from stringd.runs.engine.executor import RunExecutor
from stringd.runs.engine.live_runs import LiveRuns
from stringd.runs.engine.pruning import Pruning
from stringd.runs.engine.services import RunServices
from stringd.runs.engine.slots import RunSlots
from stringd.runs.errors import PrepareError, RefusedError
from stringd.runs.handlers.answers import Answers
from stringd.runs.handlers.archive import RunArchive
from stringd.runs.handlers.client import ClientKind, ConnectedClient
from stringd.runs.handlers.control import RunControl
from stringd.runs.handlers.dispatch import Dispatcher, Handlers
from stringd.runs.handlers.forks import Forks
from stringd.runs.handlers.hub import HubHandlers
from stringd.runs.handlers.mcp_servers import McpHandlers
from stringd.runs.handlers.prepare import Preparation
from stringd.runs.handlers.providers import ProviderHandlers
from stringd.runs.handlers.strategies import StrategyHandlers
from stringd.runs.handlers.subscriptions import join, leave, replay
from stringd.runs.handlers.trash import TrashHandlers
from stringd.runs.mcp.servers import McpPool, RunServers
from stringd.runs.models.directory import ProviderDirectory
from stringd.runs.models.resolve import Models
from stringd.runs.record.file_store import FileRunStore
from stringd.runs.record.store import RunStore, check_run_id
from stringd.runs.tools.output import ToolOutput
from stringd.system.lineage import Speaker
from stringd.wire.runs import messages, requests
from stringd.wire.runs.types import RunSummary

log = logging.getLogger(__name__)

# How long a shutdown waits for runs to settle, and then for clients to read what is left.
_DRAIN_SECONDS: Final = 2.0


class RunService:
    """One per daemon. `start` it before the first client, `stop` it after the last."""

    def __init__(
        self, config: RunsConfig, store: RunStore | None = None, models: Models | None = None
    ) -> None:
        self._config = config
        self._directory = (models.directory if models else None) or ProviderDirectory(
            config.data_dir, use_keyring=config.use_keyring, catalog_url=config.catalog_url
        )
        self._services = RunServices(
            config,
            store or FileRunStore(config.data_dir / "runs"),
            models or Models(directory=self._directory),
            Templates(config.template_filters),
            McpPool((config.data_dir,), config.ports.fetcher),
        )
        self.models = self._services.models
        self._store = self._services.store
        self._slots = RunSlots(config.max_running)
        self._known = LiveRuns()
        self._clients: dict[ConnectedClient, None] = {}
        executor = RunExecutor(self._services, self._slots)
        self._answers = Answers(self._known, self._services)
        self._preparation = Preparation(self._known, self._services)
        self._control = RunControl(self._known, executor, self._store, self._answers)
        self._pruning = Pruning(self._store, self._known, config.keep_events)
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
        """Repair what a crash left behind, and begin to forget what is old."""
        interrupted = await asyncio.to_thread(self._store.repair)
        if interrupted:
            log.warning("interrupted runs that can be resumed: %d", len(interrupted))
            await asyncio.to_thread(self._answers.read_interrupted, interrupted)
            self._answers.announce_interrupted()
        self._pruner = asyncio.create_task(self._pruning.forever(), name="prune run events")

    async def stop(self) -> None:
        """Stop every run, wait until all is settled, then let clients go.

        Watchers hear what they would hear of `stop_run`.
        """
        if self._preparation.closed:
            return
        self._preparation.closed = True
        for run in self._known:
            self._control.interrupt(run)
        self._services.pool.stop_opening()
        tasks = [run.task for run in self._known if run.task is not None]
        tasks += [task for client in self._clients for task in client.tasks]
        if tasks:
            await asyncio.wait(tasks, timeout=_DRAIN_SECONDS)
        await self._hang_up()
        if self._pruner is not None:
            self._pruner.cancel()
            await asyncio.wait([self._pruner])
        await self._services.pool.close()
        await self._directory.close()
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
        wake_later: Callable[[], None] | None = None,
        speaker: Speaker | None = None,
        kind: ClientKind = "human",
        **limits: int,
    ) -> ConnectedClient:
        """A new client; `wake` is called when it has frames to take.

        `wake_later` is called instead when all of them are broadcasts of runs.
        `speaker` is asked who decides. Without one it is this process itself.
        """
        self._directory.renew_catalog()
        client = ConnectedClient(
            self._dispatcher, wake, wake_later=wake_later, speaker=speaker, kind=kind, **limits
        )
        self._clients[client] = None
        return client

    def disconnect(self, client: ConnectedClient) -> None:
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

    def pieces(self, run_id: str) -> Iterator[bytes] | None:
        """Everything a run has broadcast as lines, in pieces; None for a run nobody knows.

        Reads files as it goes: not on the loop.
        """
        run = self._known.get(run_id)
        if run is not None:
            return run.pieces()
        try:
            check_run_id(run_id)
        except PrepareError:
            return None
        if not self._store.exists(run_id):
            return None
        return self._store.broadcast_pieces(run_id)

    def _handlers(self) -> Handlers:
        control, answers, config = self._control, self._answers, self._config
        archive = RunArchive(self._known, self._store, answers, config.observer)
        beside = (
            ProviderHandlers(self._directory),
            TrashHandlers(config.data_dir, config.project_dir),
            StrategyHandlers(config),
            HubHandlers(config),
            McpHandlers(config, self._store, self._servers_of),
        )
        return Handlers(
            now={
                requests.Ping: lambda _request, _client: messages.Pong(),
                requests.StartRun: control.start,
                requests.ContinueRun: control.continue_,
                requests.StopRun: lambda request, _client: control.stop(request.run_id),
                requests.SteerRun: control.steer,
                requests.UpdatePolicy: lambda request, _client: control.update_policy(request),
                requests.ListDecisions: lambda request, _client: control.decisions(request),
                requests.RevokeDecision: lambda request, _client: control.revoke(request),
                requests.UserInput: answers.user_input,
                requests.QuestionResponse: answers.question_response,
                requests.PermissionDecision: answers.permission_decision,
                requests.ToolAnswer: _tool_answer,
                requests.Subscribe: self._subscribe,
                requests.Unsubscribe: self._unsubscribe,
                requests.ListStrategies: lambda _request, _client: messages.StrategyList(
                    runs=self.summaries()
                ),
            },
            later={
                requests.PrepareRun: self._preparation,
                requests.ListRuns: archive.runs,
                requests.GetTimeline: archive.run,
                requests.DeleteRun: archive.delete,
                requests.ForkRun: Forks(self._known, self._store),
                **{kind: each for group in beside for kind, each in group.handlers().items()},
            },
        )

    def _subscribe(self, request: requests.Subscribe, client: ConnectedClient) -> None:
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

    def _unsubscribe(self, request: requests.Unsubscribe, client: ConnectedClient) -> None:
        """Stop following; never an error."""
        leave(request.run_id, self._known.get(request.run_id), client)

    def _servers_of(self, run_id: str) -> RunServers | None:
        run = self._known.get(run_id)
        return run.servers if run else None


def _tool_answer(request: requests.ToolAnswer, client: ConnectedClient) -> None:
    """Take what a client's tool came to. Raises `RefusedError`."""
    if not client.tool_calls.answer(request.call_id, ToolOutput(request.output, ok=request.ok)):
        message = f"No pending tool call {request.call_id} for run {request.run_id}"
        raise RefusedError("NO_PENDING_TOOL_CALL", message)
