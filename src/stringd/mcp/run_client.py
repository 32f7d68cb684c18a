"""A client of the runs for one tool call: asks, follows a run, and says where it is."""

import asyncio
from collections import deque
from dataclasses import dataclass, field
from types import TracebackType
from typing import Final, Self
from uuid import uuid4

from msgspec import UNSET

from stringd.mcp.outcome import ToolError
from stringd.mcp.ports import RunsConnection, RunsPort
from stringd.system.lineage import Speaker
from stringd.wire.runs import messages as m
from stringd.wire.runs import requests as r
from stringd.wire.runs.session import RunsSession

Prompt = m.RequestInput | m.RequestQuestion | m.RequestPermission
FINISHED: Final = ("completed", "error", "cancelled")


@dataclass
class RunProgress:
    """How far a run is. `status` is one of the protocol's, `result` or `error` once it ended."""

    run_id: str
    status: str = "running"
    strategy: str = ""
    result: str = ""
    error: str = ""
    doing: str = ""
    prompts: list[Prompt] = field(default_factory=list)

    @property
    def finished(self) -> bool:
        return self.status in FINISHED

    @property
    def waits(self) -> bool:
        """Whether the run needs somebody before it can continue."""
        return not self.finished and bool(self.prompts)


class RunClient:
    """One connection, used as `async with`."""

    def __init__(self, runs: RunsPort, speaker: Speaker | None = None) -> None:
        self._runs = runs
        self._speaker = speaker
        # Broadcasts echo the id of whoever caused them: ours must be nobody else's.
        self._session = RunsSession(f"mcp-{uuid4().hex}-")
        self._waiting: deque[m.DaemonMessage] = deque()
        self._connection: RunsConnection

    async def __aenter__(self) -> Self:
        self._connection = await self._runs.connect(self._speaker)
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._connection.close()

    async def ask(self, request: r.ClientMessage) -> m.DaemonMessage:
        """Send and wait for the answer. Raises `ToolError` when it is an error."""
        request_id, sent = self._session.ask(request)
        self._connection.send(sent)
        while True:
            message = await self._connection.receive()
            if self._session.answered(message) != request_id:
                self._waiting.append(message)
            elif isinstance(message, m.Error):
                raise ToolError(f"ERROR({message.code}): {message.message}")
            else:
                return message

    async def tell(self, request: r.ClientMessage) -> None:
        """Send what is only answered when it goes wrong. Raises `ToolError` when it did."""
        request_id, sent = self._session.ask(request)
        self._connection.send(sent)
        # Requests of one client are handled in order: with the pong, the verdict is in.
        await self.ask(r.Ping())
        for message in self._waiting:
            if isinstance(message, m.Error) and message.request_id == request_id:
                raise ToolError(f"ERROR({message.code}): {message.message}")

    async def progress(self, run_id: str) -> RunProgress:
        """Where the run is now; afterwards its events are heard. Raises `ToolError`."""
        # Listening comes first, so that no ending falls between the look and the listening.
        self._connection.send(r.Subscribe(run_id=run_id))
        listed = await self.ask(r.ListStrategies())
        assert isinstance(listed, m.StrategyList)
        summary = next((run for run in listed.runs if run.run_id == run_id), None)
        if summary is None or summary.status in FINISHED:
            return await self._history(run_id)
        progress = RunProgress(run_id, summary.status, summary.strategy_name)
        while self._waiting:
            self._take(progress, self._waiting.popleft())
        return progress

    async def follow(self, progress: RunProgress, seconds: float) -> None:
        """Hear what the run does until it ends, waits for somebody, or the time is over."""
        try:
            async with asyncio.timeout(seconds):
                while not progress.finished and not progress.waits:
                    message = (
                        self._waiting.popleft()
                        if self._waiting
                        else await self._connection.receive()
                    )
                    if self._take(progress, message):
                        return
        except TimeoutError:
            return

    async def _history(self, run_id: str) -> RunProgress:
        told = await self.ask(r.GetTimeline(run_id=run_id))
        assert isinstance(told, m.RunTimeline)
        records = [each for each in told.conversation.records if each.status != "superseded"]
        error = "" if told.error is UNSET else f"{told.error.code}: {told.error.message}"
        said_last = records[-1].text if records else ""
        result = said_last if told.result is UNSET else told.result
        return RunProgress(run_id, told.run.status, told.run.strategy_name, result, error)

    def _take(self, progress: RunProgress, message: m.DaemonMessage) -> bool:
        """Note a message; True when it is news worth reporting."""
        if getattr(message, "run_id", None) != progress.run_id:
            return False
        match message:
            case m.StrategyCompleted():
                progress.status, progress.result = "completed", message.result
            case m.StrategyError():
                cancelled = message.error.code == "CANCELLED"
                progress.status = "cancelled" if cancelled else "error"
                progress.error = f"{message.error.code}: {message.error.message}"
            case m.RequestInput() | m.RequestQuestion() | m.RequestPermission():
                progress.prompts.append(message)
            case m.StepStarted():
                progress.doing = message.step_name
                return True
            case m.AgentOutput():
                progress.doing = f"{message.agent_name} answered"
                return True
            case _:
                pass
        return False
