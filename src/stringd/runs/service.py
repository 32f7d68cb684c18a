"""The runs of this daemon: prepared, started, watched, steered, stopped, resumed."""

import asyncio
import logging
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any, Final, Literal
from uuid import uuid4

from msgspec import UNSET

from stringd.runs import timeline
from stringd.runs.audience import Client
from stringd.runs.clock import timestamp
from stringd.runs.dispatch import Dispatcher
from stringd.runs.equipment import Equipment, human_decided
from stringd.runs.errors import PrepareError, RefusedError, StartError
from stringd.runs.execution import CANCELLED, Executor
from stringd.runs.files import FileRunStore
from stringd.runs.guard.guards import RunGuards
from stringd.runs.mcp.handlers import McpHandlers
from stringd.runs.mcp.servers import RunServers
from stringd.runs.models.providers import ProviderDirectory
from stringd.runs.models.registry import Models
from stringd.runs.prepare import Surroundings, check_run_id, load, prepare
from stringd.runs.registry import Registry
from stringd.runs.run import Prepared, Run, RunSettings
from stringd.runs.sideline import Sideline
from stringd.runs.steering import Steer
from stringd.runs.store import RunStore
from stringd.runs.strategy.definition import Strategy
from stringd.runs.strategy.templates import Templates
from stringd.runs.subscriptions import follow, join, leave, replay
from stringd.wire.runs import messages, requests
from stringd.wire.runs.types import PolicyName, RunOverview, RunSummary

log = logging.getLogger(__name__)

# Finished runs stay listed; past this many the oldest are only on disk.
MAX_FINISHED: Final = 10_000
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
    ) -> None:
        self.models = models or Models(
            directory=ProviderDirectory(data_dir, use_keyring=use_keyring)
        )
        self.registry = registry or Registry()
        self._around = Surroundings(
            data_dir, project_dir, self.registry, equipment or Equipment(data_dir), model_override
        )
        self._store: RunStore = store or FileRunStore(data_dir / "runs")
        self._executor = Executor(
            self._store,
            self.models,
            Templates(frozenset(template_filters)),
            concurrent_broadcast=concurrent_broadcast,
        )
        self._runs: dict[str, Run] = {}
        self._clients: dict[Client, None] = {}
        self._mcp = self._around.equipment.pool
        self._dispatcher = Dispatcher(self)
        directory = self.models.directory or ProviderDirectory(data_dir)
        mcp = McpHandlers(data_dir, project_dir, self._store, self._servers_of, self._load)
        sideline = Sideline(data_dir, project_dir, directory)
        for request, answer in (sideline.handlers() | mcp.handlers()).items():
            self._dispatcher.handle(request, answer)
        self._stopping = False

    @property
    def active_runs(self) -> int:
        """Runs prepared or running."""
        return sum(run.live for run in self._runs.values())

    @property
    def connected_clients(self) -> int:
        return len(self._clients)

    async def start(self) -> None:
        """Mend what a crash left behind."""
        repaired = await asyncio.to_thread(self._store.repair)
        if repaired:
            log.warning("%d interrupted runs can be resumed", len(repaired))

    async def stop(self) -> None:
        """Stop every run as `stop_run` would, wait until all is settled, then let clients go."""
        if self._stopping:
            return
        self._stopping = True
        for run in list(self._runs.values()):
            self.stop_run(run.id)
        tasks = [run.task for run in self._runs.values() if run.task is not None]
        tasks += [task for client in self._clients for task in client.tasks]
        if tasks:
            await asyncio.wait(tasks, timeout=_DRAIN_SECONDS)
        await self._hang_up()
        await self._mcp.close()
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

    def connect(self, wake: Callable[[], None], **limits: int) -> Client:
        """A new client; `wake` is called when it has frames to take."""
        client = Client(self._dispatcher, wake, **limits)
        self._clients[client] = None
        return client

    def disconnect(self, client: Client) -> None:
        """Take a client off every run; the runs go on."""
        self._clients.pop(client, None)
        for run_id in client.runs:
            run = self._runs.get(run_id)
            if run is not None:
                run.subscribers.pop(client, None)

    async def prepare_run(self, request: requests.PrepareRun, client: Client) -> None:
        """Load a run, or attach to it when it is running, and tell the client what it is."""
        run_id = request.run_id or str(uuid4())
        check_run_id(run_id)
        earlier = await self._settled(run_id)
        if earlier is not None and earlier.status == "running" and earlier.prepared is not None:
            await self._attach(earlier, client, request.request_id)
            return
        taken = earlier is not None and (earlier.live or not earlier.persistent)
        if self._stopping or taken:
            raise PrepareError(f"Run already exists: {run_id}")
        await self._prepare(request, run_id, earlier, client)

    async def _settled(self, run_id: str) -> Run | None:
        """The run of that id, once an ending that is under way has been recorded and told."""
        while True:
            run = self._runs.get(run_id)
            if run is None or run.live or run.task is None:
                return run
            await asyncio.wait([run.task])

    async def _prepare(
        self, request: requests.PrepareRun, run_id: str, earlier: Run | None, client: Client
    ) -> None:
        seq = earlier.seq if earlier else self._store.last_seq(run_id)
        run = Run(run_id, request.strategy_path or "", self._store, seq=seq)
        if seq:
            run.persist()
        run.subscribers = dict(earlier.subscribers) if earlier else {}
        self._runs.pop(run_id, None)
        self._runs[run_id] = run
        followed = run_id in client.runs
        follow(run, client)
        try:
            prepared = await asyncio.to_thread(
                prepare, request, run_id, self._around, self._store, in_memory=earlier is not None
            )
            await self._connect(run, prepared)
            if not run.live:
                raise PrepareError(CANCELLED.message)
            self._settle_in(run, prepared)
        except BaseException:
            if not followed and client in run.subscribers:
                self.unsubscribe(run_id, client)
            self._restore(run, earlier)
            raise
        client.reply(self._prepared_message(run, prepared, request.request_id))

    def _servers_of(self, run_id: str) -> RunServers | None:
        run = self._runs.get(run_id)
        return run.servers if run else None

    def _load(self, path: str, cwd: Path) -> Strategy:
        settings = RunSettings(path, str(cwd), "demo/echo")
        return load(settings, self.registry, self._around)

    async def _connect(self, run: Run, prepared: Prepared) -> None:
        """Connect to the MCP servers its agents name; one that fails is only reported."""
        cwd, chosen = Path(prepared.settings.cwd), prepared.selection
        prepared.mcp = await self._mcp.connect(prepared.servers, prepared.strategy, cwd, chosen)
        if run.live:
            run.servers = prepared.mcp
            if chosen is None:
                self._store.save_selection(run.id, list(prepared.mcp.enabled))
        else:
            prepared.mcp.close()

    def _settle_in(self, run: Run, prepared: Prepared) -> None:
        run.prepared = prepared
        run.strategy_name = prepared.strategy.name
        defaults = prepared.equipment.guard_defaults(Path(prepared.settings.cwd))
        run.policies = RunGuards(defaults)
        if prepared.kind == "continuation":
            run.persist()

    def _restore(self, run: Run, earlier: Run | None) -> None:
        """A failed preparation leaves things as they were; a stopped one stays stopped."""
        if not run.live and earlier is None:
            return
        del self._runs[run.id]
        if earlier is not None:
            earlier.subscribers, earlier.seq = run.subscribers, run.seq
            self._runs[run.id] = earlier

    async def _attach(self, run: Run, client: Client, request_id: Any) -> None:
        prepared = run.prepared
        if prepared is None:
            raise PrepareError(f"Run already exists: {run.id}")
        events = await asyncio.to_thread(self._store.timeline, run.id)
        message = self._prepared_message(run, prepared, request_id)
        message.conversation = timeline.conversation(events)
        client.reply(message)
        join(run, client)

    @staticmethod
    def _prepared_message(run: Run, prepared: Prepared, request_id: Any) -> messages.RunPrepared:
        return messages.RunPrepared(
            run_id=run.id,
            strategy_name=prepared.strategy.name,
            agents=list(prepared.strategy.agents),
            flow_tree=prepared.strategy.flow_tree,
            conversation=prepared.conversation,
            mcp_servers=prepared.mcp.statuses() if prepared.mcp else [],
            request_id=request_id,
        )

    def start_run(self, request: requests.StartRun, client: Client) -> None:
        """Begin a new run's first segment. Raises `StartError`."""
        run, prepared = self._startable(request.run_id, "new")
        self._begin(run, prepared, client, request, resume=False)

    def continue_run(self, request: requests.ContinueRun, client: Client) -> None:
        """Begin a later segment: anew, or from where the last one ended. Raises `StartError`."""
        run, prepared = self._startable(request.run_id, "continuation")
        if request.resume and prepared.journal.finished:
            message = f"Run has nothing left to resume: {run.id}"
            raise StartError("CONTINUE_FAILED", message)
        self._begin(run, prepared, client, request, resume=request.resume)

    def _startable(self, run_id: str, kind: Literal["new", "continuation"]) -> tuple[Run, Prepared]:
        code = "START_FAILED" if kind == "new" else "CONTINUE_FAILED"
        run = self._runs.get(run_id)
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
        client: Client,
        request: requests.StartRun | requests.ContinueRun,
        *,
        resume: bool,
    ) -> None:
        self._forget_oldest()
        follow(run, client)
        run.request_id = request.request_id
        self._executor.begin(run, prepared, request.input, resume=resume)

    def stop_run(self, run_id: str) -> None:
        """Stop a live run at once; anything else is left alone."""
        run = self._runs.get(run_id)
        if run is None or not run.live:
            log.info("stop_run: %s is not live", run_id)
            return
        self._executor.stop(run)

    def steer_run(self, request: requests.SteerRun, client: Client) -> None:
        """Queue a text for the run's next agent call. Raises `RefusedError`."""
        run = self._runs.get(request.run_id)
        if run is None or not run.live or run.prepared is None:
            raise RefusedError(
                "RUN_NOT_STEERABLE", f"Cannot steer run {request.run_id}: not running"
            )
        if run.mailbox.full:
            message = f"Cannot steer run {run.id}: too many texts are waiting for its next call"
            raise RefusedError("RUN_NOT_STEERABLE", message)
        if run.started:
            self._executor.record_steering(run, request.text)
        run.mailbox.put(Steer(request.text, _receipt(request, client)))
        queued = messages.SteerQueued(run_id=run.id, text=request.text)
        queued.request_id = request.request_id
        run.publish(queued)

    def user_input(self, request: requests.UserInput) -> None:
        """Answer the oldest `request_input` of that agent. Raises `RefusedError`."""
        run = self._runs.get(request.run_id)
        if run is None or not run.prompts.answer_input(request.agent_name, request.text):
            message = (
                f"No pending input request for run {request.run_id} agent {request.agent_name}"
            )
            raise RefusedError("NO_PENDING_INPUT", message)
        event = timeline.UserInput(ts=timestamp(), agent_name=request.agent_name, text=request.text)
        self._store.append(run.id, event)

    def question_response(self, request: requests.QuestionResponse) -> None:
        run, question = self._runs.get(request.run_id), request.question_request_id
        if run is None or not run.prompts.answer_question(question, request.response):
            message = f"No pending question request {question} for run {request.run_id}"
            raise RefusedError("NO_PENDING_QUESTION", message)

    def permission_decision(self, request: requests.PermissionDecision, client: Client) -> None:
        """Settle a permission request, once. Raises `RefusedError`."""
        run, wanted = self._runs.get(request.run_id), request.permission_request_id
        prompt = run.prompts.permission(wanted) if run else None
        if run is not None and prompt is not None:
            self._store.append(run.id, human_decided(prompt, request.decision, client.id))
        if run is None or not run.prompts.decide_permission(wanted, request.decision):
            message = f"No pending permission request {wanted} for run {request.run_id}"
            raise RefusedError("NO_PENDING_PERMISSION", message)

    def update_policy(self, request: requests.UpdatePolicy) -> None:
        """Change path policies and show each changed chain. Raises `RefusedError`."""
        run = self._runs.get(request.run_id)
        if run is None or not run.live or run.prepared is None:
            message = f"No active run found for runId {request.run_id}"
            raise RefusedError("RUN_NOT_FOUND", message)
        changed = run.policies.update(
            request.tool or None,
            request.mode,
            allow=request.allow or (),
            deny=request.deny or (),
            default=request.default or None,
        )
        for tool, chain in changed:
            policies = [PolicyName(name=name) for name in chain]
            run.publish(messages.PolicyUpdated(run_id=run.id, tool=tool, policies=policies))

    def subscribe(self, request: requests.Subscribe, client: Client) -> None:
        """Follow a run this process knows. Raises `RefusedError`."""
        run = self._runs.get(request.run_id)
        if run is None:
            raise RefusedError("SUBSCRIBE_ERROR", f"Run not found: {request.run_id}")
        if client not in self._clients:
            raise RefusedError("SUBSCRIBE_ERROR", f"Client not found: {client.id}")
        if request.from_seq is UNSET:
            join(run, client)
        else:
            leave(run, client)
            self._dispatcher.background(client, replay(run, client, request.from_seq))

    def unsubscribe(self, run_id: str, client: Client) -> None:
        """Stop following; never an error."""
        run = self._runs.get(run_id)
        client.runs.discard(run_id)
        if run is not None:
            run.subscribers.pop(client, None)

    def summaries(self) -> list[RunSummary]:
        """Runs of this process, in the order they were prepared."""
        return [run.summary() for run in self._runs.values()]

    async def overviews(self, cwd: str | None) -> list[RunOverview]:
        """Runs on disk, newest first; those of one working directory when given."""
        found = await asyncio.to_thread(self._store.overviews)
        return [each for each in found if cwd is None or each.cwd == cwd]

    async def timeline(self, run_id: str) -> messages.RunTimeline:
        """The history of a run on disk. Raises `RefusedError`."""
        check_run_id(run_id)
        events = await asyncio.to_thread(self._store.timeline, run_id)
        overview = timeline.overview(run_id, events)
        if overview is None:
            raise RefusedError("RUN_NOT_FOUND", f"Run not found: {run_id}")
        return messages.RunTimeline(
            run=overview,
            conversation=timeline.conversation(events),
            error=timeline.last_error(events) or UNSET,
        )

    def _forget_oldest(self) -> None:
        if len(self._runs) <= MAX_FINISHED:
            return
        finished = [run_id for run_id, run in self._runs.items() if not run.live]
        for run_id in finished[: max(0, len(finished) - MAX_FINISHED)]:
            del self._runs[run_id]


def _receipt(request: requests.SteerRun, client: Client) -> Any:
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
