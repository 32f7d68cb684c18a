"""`AsyncRuns`: starts runs and follows them, through dropped connections too.

async with AsyncRuns() as runs:
    run = await runs.run("hello", "world")
    async for event in run:
        print(event)
"""

import asyncio
from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from contextlib import suppress
from types import TracebackType
from typing import Final, Literal, Self

from msgspec import UNSET, UnsetType

from stringd.client.daemon import port_from_environment
from stringd.client.identity import working_directory
from stringd.client.runs import (
    RequestFailedError,
    RunsChannel,
    RunsClient,
    RunsError,
    UnreachableError,
)
from stringd.client.tools import AnyStrategy, ClientSideTool, ClientTools, offered
from stringd.wire.runs import messages as m
from stringd.wire.runs import requests as r
from stringd.wire.runs.catalog import DiscoveredStrategy
from stringd.wire.runs.names import is_called
from stringd.wire.runs.session import RunsSession
from stringd.wire.runs.types import RunOverview

Decision = Literal["allow", "deny", "allow-session", "deny-session"]
SteerMode = Literal["call", "steer"]
RETRY_SECONDS: Final = 0.2
FILE_ENDINGS: Final = (".yaml", ".yml", ".json", ".jsonc")


class RunFailedError(Exception):
    """A run ended without a result; `code` says how."""

    def __init__(self, code: str, message: str) -> None:
        super().__init__(message)
        self.code = code


class AsyncRuns:
    """One connection to the runs, opened again when it breaks; for `patience` seconds it tries.

    A request is sent once. If the connection breaks before its answer, `UnreachableError` is
    raised and the caller decides; only the following of runs is taken up again by itself.
    """

    def __init__(
        self,
        port: int | None = None,
        *,
        patience: float = 30.0,
        connect: Callable[[], RunsChannel] | None = None,
    ) -> None:
        """`connect` makes connections to something else than the daemon at a port."""
        number = port_from_environment() if port is None and connect is None else port or 0
        self._connect = connect or (lambda: RunsClient(number))
        self._patience = patience
        self._tools = ClientTools(self._send_quietly)
        self._session = RunsSession("a")
        self._answers: dict[str, asyncio.Future[m.DaemonMessage]] = {}
        self._handles: list[RunHandle] = []
        self._client: RunsChannel
        self._reading: asyncio.Task[None]

    async def __aenter__(self) -> Self:
        self._client = await self._connect().__aenter__()
        self._reading = asyncio.create_task(self._read())
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._reading.cancel()
        with suppress(asyncio.CancelledError):
            await self._reading
        await self._tools.close()
        await self._client.__aexit__(kind, error, trace)

    async def prepare(
        self,
        strategy: AnyStrategy | None = None,
        *,
        run_id: str | None = None,
        cwd: str | None = None,
        model: str | None = None,
        manifest: str | None = None,
        tools: Sequence[ClientSideTool] = (),
        budget: r.Budget | None = None,
    ) -> m.RunPrepared:
        """Load a strategy for a new run, or an earlier run by its id. Raises `RunsError`.

        A strategy is a file, the name of one that `strategies` lists, what a file would say, or
        the agents and flows of a program.
        `tools` are carried out here, when an agent that names one calls it.
        """
        directory = cwd or (working_directory() if run_id is None else None)
        if strategy is not None and not isinstance(strategy, str | Mapping):
            tools = [*strategy.tools, *tools]
            strategy = strategy.to_dict()
        name = strategy if isinstance(strategy, str) else None
        inline = strategy if isinstance(strategy, Mapping) else None
        found = await self._called(name, directory) if name else None
        answer = await self.ask(
            r.PrepareRun(
                run_id=run_id or UNSET,
                strategy_path=(found.path if found else name) or UNSET,
                cwd=directory or UNSET,
                model_override=model or UNSET,
                manifest_path=manifest or (found.manifest_path if found else UNSET),
                budget=budget or UNSET,
                strategy=UNSET if inline is None else dict(inline),
                tools=[offered(each) for each in tools] or UNSET,
            )
        )
        assert isinstance(answer, m.RunPrepared)
        self._tools.belong_to(answer.run_id, tools)
        return answer

    async def start(self, run_id: str, input: str = "") -> "RunHandle":  # noqa: A002
        """Start a prepared run. Raises `RunsError`."""
        return await self._begin(run_id, r.StartRun(run_id=run_id, input=input))

    async def continue_run(
        self,
        run_id: str,
        input: str = "",  # noqa: A002 - the protocol's word
        *,
        resume: bool = False,
        tools: Sequence[ClientSideTool] = (),
    ) -> "RunHandle":
        """Go on with a finished run, or resume one that was cut off. Raises `RunsError`."""
        await self.prepare(run_id=run_id, tools=tools)
        return await self._begin(run_id, r.ContinueRun(run_id=run_id, input=input, resume=resume))

    async def run(
        self,
        strategy: AnyStrategy,
        input: str = "",  # noqa: A002 - the protocol's word
        *,
        cwd: str | None = None,
        model: str | None = None,
        tools: Sequence[ClientSideTool] = (),
        budget: r.Budget | None = None,
    ) -> "RunHandle":
        """Prepare and start in one step. Raises `RunsError`."""
        prepared = await self.prepare(strategy, cwd=cwd, model=model, tools=tools, budget=budget)
        return await self.start(prepared.run_id, input)

    async def follow(self, run_id: str, *, from_seq: int = 1) -> "RunHandle":
        """Watch a run of this daemon from one of its events on. Raises `RunsError`."""
        handle = RunHandle(self, run_id, from_seq)
        self._handles.append(handle)
        try:
            await self._tell(r.Subscribe(run_id=run_id, from_seq=from_seq))
        except BaseException:
            self.forget(handle)
            raise
        return handle

    async def steer(self, run_id: str, text: str, mode: SteerMode = "call") -> None:
        """Give a running run a text for its next agent call. Raises `RunsError`.

        With the mode `steer` a call that is under way reads it too, between two round-trips.
        """
        await self._tell(r.SteerRun(run_id=run_id, text=text, mode=mode))

    async def answer(self, prompt: m.RequestInput | m.RequestQuestion, text: str) -> None:
        """Give the text a run waits for. Raises `RunsError`."""
        run_id = prompt.run_id
        if isinstance(prompt, m.RequestInput):
            await self._tell(r.UserInput(run_id=run_id, agent_name=prompt.agent_name, text=text))
        else:
            wanted = str(prompt.request_id)
            await self._tell(
                r.QuestionResponse(run_id=run_id, question_request_id=wanted, response=text)
            )

    async def decide(
        self, prompt: m.RequestPermission, decision: Decision, reason: str | None = None
    ) -> None:
        """Grant or refuse what a run asks permission for. Raises `RunsError`.

        The agent reads the reason of a refusal.
        """
        wanted = str(prompt.request_id)
        await self._tell(
            r.PermissionDecision(
                run_id=prompt.run_id,
                permission_request_id=wanted,
                decision=decision,
                reason=reason or UNSET,
            )
        )

    async def stop(self, run_id: str) -> None:
        """Stop a run. One that does not run is left alone."""
        await self._tell(r.StopRun(run_id=run_id))

    async def strategies(self, cwd: str | None = None) -> list[DiscoveredStrategy]:
        """What can be run from a directory, by default the working directory."""
        answer = await self.ask(r.DiscoverStrategies(cwd=cwd or working_directory() or UNSET))
        assert isinstance(answer, m.DiscoveredStrategies)
        return answer.strategies

    async def runs(self, cwd: str | None = None) -> list[RunOverview]:
        """Every run on disk, newest first; those of one directory when given."""
        answer = await self.ask(r.ListRuns(cwd=cwd or UNSET))
        assert isinstance(answer, m.RunList)
        return answer.runs

    async def timeline(self, run_id: str) -> m.RunTimeline:
        """What was said in a run. Raises `RunsError`."""
        answer = await self.ask(r.GetTimeline(run_id=run_id))
        assert isinstance(answer, m.RunTimeline)
        return answer

    async def delete(self, run_id: str) -> None:
        """Forget a run that is not live, its history included. Raises `RunsError`."""
        await self.ask(r.DeleteRun(run_id=run_id))

    async def ask(self, request: r.ClientMessage) -> m.DaemonMessage:
        """Send any request and wait for its answer. Raises `RunsError`."""
        if not hasattr(self, "_client"):
            raise RunsError("not connected: use `async with AsyncRuns() as runs:`")
        request_id, sent = self._session.ask(request)
        future: asyncio.Future[m.DaemonMessage] = asyncio.get_running_loop().create_future()
        self._answers[request_id] = future
        try:
            await self._client.send(sent)
            answer = await future
        finally:
            self._session.forget(request_id)
            del self._answers[request_id]
        if isinstance(answer, m.Error):
            raise RequestFailedError(answer.code, answer.message, answer.trust or None)
        return answer

    def forget(self, handle: "RunHandle") -> None:
        """Stop telling a handle about its run."""
        if handle in self._handles:
            self._handles.remove(handle)

    async def _called(self, name: str, cwd: str | None) -> DiscoveredStrategy | None:
        """The strategy of that name; None for the path of a file."""
        if "/" in name or name.endswith(FILE_ENDINGS):
            return None
        try:
            found = await self.strategies(cwd)
        except RequestFailedError:
            # Other daemons do not tell what there is.
            return None
        return next((each for each in found if is_called(each, name)), None)

    async def _begin(self, run_id: str, request: r.StartRun | r.ContinueRun) -> "RunHandle":
        # It listens before the run starts, so that the first event is not missed.
        handle = RunHandle(self, run_id, UNSET if isinstance(request, r.ContinueRun) else 1)
        self._handles.append(handle)
        try:
            await self.ask(request)
        except BaseException:
            self.forget(handle)
            raise
        return handle

    async def _tell(self, request: r.ClientMessage) -> None:
        """Send what is only answered when it goes wrong: with the pong, the verdict is in."""
        telling = asyncio.ensure_future(self.ask(request))
        await asyncio.sleep(0)
        try:
            await self.ask(r.Ping())
            if telling.done():
                telling.result()
        finally:
            telling.cancel()
            await asyncio.gather(telling, return_exceptions=True)

    async def _read(self) -> None:
        while True:
            try:
                async for message in self._client.messages():
                    self._take(message)
            except UnreachableError as error:
                self._fail_answers(error)
                try:
                    await self._reconnect(error)
                except UnreachableError as final:
                    for handle in self._handles:
                        handle.put(final)
                    return

    async def _send_quietly(self, request: r.ClientMessage) -> None:
        # The daemon knows that a client is gone, and tells its agents.
        with suppress(UnreachableError):
            await self._client.send(request)

    def _take(self, message: m.DaemonMessage) -> None:
        if isinstance(message, m.ToolAsked):
            self._tools.asked(message)
            return
        future = self._answers.get(self._session.answered(message) or "")
        if future is not None and not future.done():
            future.set_result(message)
        for handle in list(self._handles):
            if isinstance(message, m.RunBroadcast) and message.run_id == handle.run_id:
                handle.put(message)
            elif isinstance(message, m.Error) and message.request_id == handle.subscription_id:
                handle.put(RequestFailedError(message.code, message.message))

    def _fail_answers(self, error: UnreachableError) -> None:
        for future in self._answers.values():
            if not future.done():
                future.set_exception(error)

    async def _reconnect(self, error: UnreachableError) -> None:
        loop = asyncio.get_running_loop()
        end = loop.time() + self._patience
        while loop.time() < end:
            client = self._connect()
            try:
                await client.__aenter__()
                for handle in self._handles:
                    await client.send(handle.subscription())
            except UnreachableError:
                await asyncio.sleep(RETRY_SECONDS)
            else:
                self._client = client
                return
        raise error


class RunHandle:
    """A run that is followed: iterate over its events, or wait for its `result`."""

    def __init__(self, runs: AsyncRuns, run_id: str, next_seq: int | UnsetType) -> None:
        self.run_id = run_id
        self.next_seq = next_seq
        self._runs = runs
        self._news: asyncio.Queue[m.RunBroadcast | RunsError] = asyncio.Queue()
        self._ended = False

    @property
    def subscription_id(self) -> str:
        return f"follow-{id(self)}"

    def subscription(self) -> r.Subscribe:
        """The request that takes the following up again where it stopped."""
        return r.Subscribe(
            run_id=self.run_id, from_seq=self.next_seq, request_id=self.subscription_id
        )

    async def __aiter__(self) -> AsyncIterator[m.RunBroadcast]:
        """Events in order, none twice, none left out; the last one says how the run ended.

        Raises `UnreachableError` when the daemon stays away, and `RequestFailedError` when it came
        back without this run: then `continue_run(..., resume=True)` takes it up again.
        """
        while not self._ended:
            event = await self._news.get()
            if isinstance(event, RunsError):
                raise event
            if isinstance(event, m.StrategyCompleted | m.StrategyError):
                self._ended = True
                self._runs.forget(self)
            yield event

    async def result(self) -> str:
        """The run's result, once it has one. Raises `RunFailedError` when it will have none."""
        async for event in self:
            if isinstance(event, m.StrategyCompleted):
                return event.result
            if isinstance(event, m.StrategyError):
                raise RunFailedError(event.error.code, event.error.message)
        raise RunFailedError("ENDED", "the run's events were read to the end already")

    async def steer(self, text: str, mode: SteerMode = "call") -> None:
        """Give the run a text, as `AsyncRuns.steer` does."""
        await self._runs.steer(self.run_id, text, mode)

    async def stop(self) -> None:
        """Stop the run."""
        await self._runs.stop(self.run_id)

    def put(self, event: m.RunBroadcast | RunsError) -> None:
        """Take an event from the connection, unless it was here before."""
        if isinstance(event, m.RunBroadcast) and event.seq is not UNSET:
            if self.next_seq is not UNSET and event.seq < self.next_seq:
                return
            self.next_seq = event.seq + 1
        self._news.put_nowait(event)
