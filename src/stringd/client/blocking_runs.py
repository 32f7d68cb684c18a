"""`Runs`: starts runs and follows them, without `await`.

with Runs() as runs:
    run = runs.run("hello", "world")
    for event in run:
        print(event)
"""

import asyncio
from collections.abc import AsyncIterator, Coroutine, Iterator, Sequence
from concurrent.futures import CancelledError
from threading import Thread
from types import TracebackType
from typing import Any, Final, Self, TypeVar, overload

from stringd.client.async_runs import AsyncRuns, Decision, RunHandle, SteerMode
from stringd.client.runs import RunsError
from stringd.client.tools import AnyStrategy, ClientSideTool, StrategyObject
from stringd.wire.runs import messages as m
from stringd.wire.runs import requests as r
from stringd.wire.runs.catalog import DiscoveredStrategy
from stringd.wire.runs.types import RunOverview

_T = TypeVar("_T")
_CLOSED: Final = "the connection was closed: use it inside its `with` block"


class _LoopThread:
    """An event loop in a thread of its own: it works where another loop runs, as in notebooks."""

    def __init__(self) -> None:
        self._loop = asyncio.new_event_loop()
        self._thread = Thread(target=self._loop.run_forever, name="stringd-runs", daemon=True)
        self._thread.start()

    def wait(self, work: Coroutine[Any, Any, _T]) -> _T:
        """What a coroutine returns; it is cancelled when the caller is interrupted.

        Raises `RunsError` after the end.
        """
        if self._loop.is_closed():
            work.close()
            raise RunsError(_CLOSED)
        future = asyncio.run_coroutine_threadsafe(work, self._loop)
        try:
            return future.result()
        except CancelledError as error:
            raise RunsError(_CLOSED) from error
        except BaseException:
            future.cancel()
            raise

    def end(self) -> None:
        """Cancel what other threads still wait for, and stop."""
        asyncio.run_coroutine_threadsafe(_cancel_others(), self._loop).result()
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join()
        self._loop.close()


async def _cancel_others() -> None:
    others = asyncio.all_tasks() - {asyncio.current_task()}
    for task in others:
        task.cancel()
    await asyncio.gather(*others, return_exceptions=True)


class Runs:
    """What `AsyncRuns` does, each call returning when it is done. Threads may share it.

    The connection is opened again when it breaks; for `patience` seconds it tries. A request is
    sent once: if the connection breaks before its answer, `UnreachableError` is raised.
    """

    def __init__(self, port: int | None = None, *, patience: float = 30.0) -> None:
        self._port = port
        self._runs = AsyncRuns(port, patience=patience)
        self._thread: _LoopThread | None = None

    def __enter__(self) -> Self:
        self._thread = _LoopThread()
        try:
            self._wait(self._runs.__aenter__())
        except BaseException:
            self._end()
            raise
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        try:
            self._wait(self._runs.__aexit__(kind, error, trace))
        finally:
            self._end()

    def prepare(
        self,
        strategy: AnyStrategy | None = None,
        *,
        run_id: str | None = None,
        cwd: str | None = None,
        model: str | None = None,
        manifest: str | None = None,
        tools: Sequence[ClientSideTool] = (),
    ) -> m.RunPrepared:
        """Load a strategy for a new run, or an earlier run by its id. Raises `RunsError`.

        A strategy is a file, the name of one that `strategies` lists, what a file would say, or
        the agents and flows of a program. `tools` are carried out here.
        """
        return self._wait(
            self._runs.prepare(
                strategy, run_id=run_id, cwd=cwd, model=model, manifest=manifest, tools=tools
            )
        )

    def start(self, run_id: str, input: str = "") -> "FollowedRun":  # noqa: A002
        """Start a prepared run. Raises `RunsError`."""
        return self._followed(self._runs.start(run_id, input))

    def continue_run(
        self,
        run_id: str,
        input: str = "",  # noqa: A002 - the protocol's word
        *,
        resume: bool = False,
    ) -> "FollowedRun":
        """Go on with a finished run, or resume one that was cut off. Raises `RunsError`."""
        return self._followed(self._runs.continue_run(run_id, input, resume=resume))

    def run(
        self,
        strategy: AnyStrategy,
        input: str = "",  # noqa: A002 - the protocol's word
        *,
        cwd: str | None = None,
        tools: Sequence[ClientSideTool] = (),
    ) -> "FollowedRun":
        """Prepare and start in one step. Raises `RunsError`."""
        return self._followed(self._runs.run(strategy, input, cwd=cwd, tools=tools))

    @overload
    def follow(self, run_id: str, *, from_seq: int = 1) -> "FollowedRun": ...

    @overload
    def follow(self, run_id: StrategyObject, input: str = "") -> "NewRun": ...

    def follow(
        self,
        run_id: str | StrategyObject,
        input: str = "",  # noqa: A002 - the protocol's word
        *,
        from_seq: int = 1,
    ) -> "FollowedRun | NewRun":
        """Watch a run of this daemon from one of its events on. Raises `RunsError`.

        With agents and flows of a program in place of the id, a new run of them, to be read with
        `for` or `async for`; that needs no `with`.
        """
        if isinstance(run_id, str):
            return self._followed(self._runs.follow(run_id, from_seq=from_seq))
        return NewRun(run_id, input, self._port)

    def steer(self, run_id: str, text: str, mode: SteerMode = "call") -> None:
        """Give a running run a text for its next agent call. Raises `RunsError`.

        With the mode `steer` a call that is under way reads it too, between two round-trips.
        """
        self._wait(self._runs.steer(run_id, text, mode))

    def answer(self, prompt: m.RequestInput | m.RequestQuestion, text: str) -> None:
        """Give the text a run waits for. Raises `RunsError`."""
        self._wait(self._runs.answer(prompt, text))

    def decide(self, prompt: m.RequestPermission, decision: Decision) -> None:
        """Grant or refuse what a run asks permission for. Raises `RunsError`."""
        self._wait(self._runs.decide(prompt, decision))

    def stop(self, run_id: str) -> None:
        """Stop a run. One that does not run is left alone."""
        self._wait(self._runs.stop(run_id))

    def strategies(self, cwd: str | None = None) -> list[DiscoveredStrategy]:
        """What can be run from a directory, by default the working directory."""
        return self._wait(self._runs.strategies(cwd))

    def runs(self, cwd: str | None = None) -> list[RunOverview]:
        """Every run on disk, newest first; those of one directory when given."""
        return self._wait(self._runs.runs(cwd))

    def timeline(self, run_id: str) -> m.RunTimeline:
        """What was said in a run. Raises `RunsError`."""
        return self._wait(self._runs.timeline(run_id))

    def delete(self, run_id: str) -> None:
        """Forget a run that is not live, its history included. Raises `RunsError`."""
        self._wait(self._runs.delete(run_id))

    def ask(self, request: r.ClientMessage) -> m.DaemonMessage:
        """Send any request and wait for its answer. Raises `RunsError`."""
        return self._wait(self._runs.ask(request))

    def _followed(self, starting: Coroutine[Any, Any, RunHandle]) -> "FollowedRun":
        handle = self._wait(starting)
        assert self._thread is not None
        return FollowedRun(handle, self._thread)

    def _wait(self, work: Coroutine[Any, Any, _T]) -> _T:
        if self._thread is None:
            work.close()
            raise RunsError("not connected: use `with Runs() as runs:`")
        return self._thread.wait(work)

    def _end(self) -> None:
        if self._thread is not None:
            self._thread.end()
            self._thread = None


class NewRun:
    """A run that starts when its events are read, over a connection of its own."""

    def __init__(self, strategy: StrategyObject, message: str, port: int | None) -> None:
        self._strategy = strategy
        self._message = message
        self._port = port

    async def __aiter__(self) -> AsyncIterator[m.RunBroadcast]:
        """Events in order up to the one that says how the run ended. Raises `RunsError`."""
        async with AsyncRuns(self._port) as runs:
            async for event in await runs.run(self._strategy, self._message):
                yield event

    def __iter__(self) -> Iterator[m.RunBroadcast]:
        """The same without `await`."""
        with Runs(self._port) as runs:
            yield from runs.run(self._strategy, self._message)


class FollowedRun:
    """A run that is followed: iterate over its events, or wait for its `result`."""

    def __init__(self, handle: RunHandle, thread: _LoopThread) -> None:
        self.run_id = handle.run_id
        self._handle = handle
        self._thread = thread

    def __iter__(self) -> Iterator[m.RunBroadcast]:
        """Events in order, none twice, none left out; the last one says how the run ended.

        Raises `UnreachableError` when the daemon stays away, and `RequestFailedError` when it came
        back without this run: then `continue_run(..., resume=True)` takes it up again.
        """
        events = aiter(self._handle)

        async def next_event() -> m.RunBroadcast | None:
            return await anext(events, None)

        while (event := self._thread.wait(next_event())) is not None:
            yield event

    def result(self) -> str:
        """The run's result, once it has one. Raises `RunFailedError` when it will have none."""
        return self._thread.wait(self._handle.result())

    def steer(self, text: str, mode: SteerMode = "call") -> None:
        """Give the run a text, as `Runs.steer` does."""
        self._thread.wait(self._handle.steer(text, mode))

    def stop(self) -> None:
        """Stop the run."""
        self._thread.wait(self._handle.stop())
