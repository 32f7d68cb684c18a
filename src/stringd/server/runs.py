"""The runs room, loaded beside the first requests: the daemon answers before it is there."""

import asyncio
from pathlib import Path
from typing import TYPE_CHECKING

from stringd.server.deliveries import Deliveries

if TYPE_CHECKING:
    from collections.abc import Callable

    from stringd.runs import DaemonPorts, RunObserver, RunService
    from stringd.server.gate_answers import GateAnswers
    from stringd.server.http.budget import Place
    from stringd.server.http.rounds import Rounds
    from stringd.server.settings import RunsSettings
    from stringd.system.lineage import Speaker
    from stringd.wire.runs.types import RunSummary


class RunsEndpoint:
    """Owns the run service from `start` to `stop`; upgrades that come early wait for it."""

    def __init__(
        self,
        data_dir: Path,
        project_dir: Path,
        settings: "RunsSettings",
        ports: "Callable[[], DaemonPorts] | None" = None,
        *,
        observer: "Callable[[], RunObserver]",
    ) -> None:
        self._observer = observer
        self._ports = ports
        self._settings = settings
        self._data_dir = data_dir
        self._project_dir = project_dir
        self._service: RunService | None = None
        self._gate: GateAnswers | None = None
        self._started = asyncio.Event()
        self._waiting: set[asyncio.Task[None]] = set()
        self._deliveries: Deliveries | None = None

    @property
    def active_runs(self) -> int:
        return self._service.active_runs if self._service else 0

    @property
    def connected_clients(self) -> int:
        return self._service.connected_clients if self._service else 0

    def summaries(self) -> "list[RunSummary]":
        """The runs of this daemon's life, in the order they were prepared."""
        return self._service.summaries() if self._service else []

    async def start(self) -> None:
        """Load the room and repair what a crash left behind."""
        service = await asyncio.to_thread(self._load)
        await service.start()
        self._service = service
        self._started.set()

    async def service(self) -> "RunService":
        """The service, as soon as it is there."""
        await self._started.wait()
        assert self._service is not None
        return self._service

    async def stop(self) -> None:
        """Settle every run and hang up."""
        for task in self._waiting:
            task.cancel()
        if self._gate is not None:
            await self._gate.close()
        if self._service is not None:
            await self._service.stop()

    def take_over(
        self,
        transport: asyncio.Transport,
        request: bytes,
        speaker: "Speaker | None",
        place: "Place",
        rounds: "Rounds | None" = None,
    ) -> None:
        """Make an upgrading connection a client of the runs."""
        if self._service is not None:
            self._upgrade(self._service, transport, request, speaker, place, rounds)
            return
        transport.pause_reading()
        waiting = self._upgrade_later(transport, request, speaker, place, rounds)
        task = asyncio.get_running_loop().create_task(waiting)
        self._waiting.add(task)
        task.add_done_callback(self._waiting.discard)

    async def _upgrade_later(
        self,
        transport: asyncio.Transport,
        request: bytes,
        speaker: "Speaker | None",
        place: "Place",
        rounds: "Rounds | None" = None,
    ) -> None:
        await self._started.wait()
        assert self._service is not None
        if not transport.is_closing():
            self._upgrade(self._service, transport, request, speaker, place, rounds)
            transport.resume_reading()

    def _upgrade(
        self,
        service: "RunService",
        transport: asyncio.Transport,
        request: bytes,
        speaker: "Speaker | None",
        place: "Place",
        rounds: "Rounds | None" = None,
    ) -> None:
        from stringd.server.ws import take_over

        if self._deliveries is None:
            self._deliveries = Deliveries(asyncio.get_running_loop())
        take_over(service, transport, request, speaker, place, rounds, self._deliveries)

    def _load(self) -> "RunService":
        # The first client would hold up the loop if it had to load this.
        import stringd.server.ws  # noqa: F401
        from stringd.client.gate import default_socket
        from stringd.runs import DaemonPorts, RunLimits, RunsConfig, RunService
        from stringd.server.gate_answers import GateAnswers
        from stringd.system.sandbox import Level

        self._gate = GateAnswers(self._observer(), self.service, default_socket())
        settings = self._settings
        return RunService(
            RunsConfig(
                self._data_dir,
                self._project_dir,
                ports=self._ports() if self._ports else DaemonPorts(),
                limits=RunLimits(
                    tokens=settings.max_tokens,
                    tool_calls=settings.max_tool_calls,
                    seconds=settings.max_seconds,
                ),
                model_override=settings.model_override,
                template_filters=frozenset(settings.template_filters),
                concurrent_broadcast=settings.concurrent_broadcast,
                approve_commands=settings.approve_commands,
                prompt_seconds=settings.prompt_seconds,
                max_running=settings.max_running,
                keep_events=settings.keep_events,
                use_keyring=settings.use_keyring,
                catalog_url=settings.catalog_url,
                sandbox=Level(settings.sandbox),
                observer=self._gate,
                parallel_tools=settings.parallel_tools,
            )
        )
