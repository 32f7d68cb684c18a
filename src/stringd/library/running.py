"""`run`, `run_async` and `follow`: a strategy of a program, in this process or in the daemon."""

import asyncio
import inspect
from collections.abc import (
    AsyncGenerator,
    AsyncIterator,
    Awaitable,
    Callable,
    Coroutine,
    Mapping,
    Sequence,
)
from concurrent.futures import ThreadPoolExecutor
from contextlib import aclosing, asynccontextmanager
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypedDict, Unpack

from stringd.library.agents import Agent, Person
from stringd.library.flows import Flow, as_flow
from stringd.library.functions import FunctionTool
from stringd.library.results import RunResult
from stringd.wire.runs import messages as m
from stringd.wire.runs.requests import Budget

if TYPE_CHECKING:
    # The clients and the engine are loaded by the first run.
    from stringd.client import AsyncRuns, RunHandle
    from stringd.runs import Hooks

Prompt = m.RequestInput | m.RequestQuestion | m.RequestPermission
"""What a run asks a person: a text, the answer to a question, or a permission."""
Answer = Callable[[Prompt], str | Awaitable[str]]
"""Answers a prompt with a text. For a permission that is `allow`, `deny`, `allow-session`,
`deny-session`, or `deny` and a reason behind it."""
AnyStrategy = Flow | Agent | Person | Mapping[str, Any] | str | Path
NOBODY = "nobody is there to decide; the program can pass answer= to run()"


class RunOptions(TypedDict, total=False):
    """What all three take.

    `tools` are functions that files and mappings name; those of agents need not be repeated.
    `answer` is asked whatever the run asks a person; without it permissions are denied and
    questions end the run. With `daemon` the run belongs to the daemon, which keeps it; otherwise it
    is kept in `data_dir`, or nowhere.
    """

    tools: Sequence[FunctionTool[..., Any]]
    answer: Answer
    model: str
    cwd: str | Path
    budget: Budget
    hooks: "Hooks"
    data_dir: str | Path
    daemon: bool


def run(strategy: AnyStrategy, message: str = "", **options: Unpack[RunOptions]) -> RunResult:
    """Run a strategy to its end and return what came of it; works in notebooks too.

    A strategy is a flow, a single agent, a file, or a mapping with what a file would say. Options
    are those of `RunOptions`. Raises `RunFailedError`, `RunsError` or `ValueError`.
    """
    return _to_the_end(run_async(strategy, message, **options))


async def run_async(
    strategy: AnyStrategy, message: str = "", **options: Unpack[RunOptions]
) -> RunResult:
    """The same for programs with an event loop."""
    from stringd.client import RunFailedError

    async with aclosing(follow(strategy, message, **options)) as following:
        events = [event async for event in following]
    last = events[-1] if events else None
    if isinstance(last, m.StrategyCompleted):
        return RunResult(last.run_id, last.result, last.usage, events)
    if isinstance(last, m.StrategyError):
        raise RunFailedError(last.error.code, last.error.message)
    raise RunFailedError("ENDED", "the run ended without saying how")


async def follow(
    strategy: AnyStrategy, message: str = "", **options: Unpack[RunOptions]
) -> AsyncGenerator[m.RunBroadcast, None]:
    """Run a strategy and hear everything it says, up to `StrategyCompleted` or `StrategyError`.

    The run is stopped when the iteration is left early.
    """
    cwd, answer = options.get("cwd"), options.get("answer")
    said, offered = _spoken(strategy, options.get("tools", ()))
    async with _runs(options) as runs:
        handle = await runs.run(
            said,
            message,
            cwd=None if cwd is None else str(cwd),
            model=options.get("model"),
            tools=offered,
            budget=options.get("budget"),
        )
        ended = False
        try:
            async for event in handle:
                if isinstance(event, Prompt):
                    await _answer(runs, handle, event, answer)
                ended = isinstance(event, m.StrategyCompleted | m.StrategyError)
                yield event
        finally:
            if not ended:
                await handle.stop()


def _spoken(
    strategy: AnyStrategy, tools: Sequence[FunctionTool[..., Any]]
) -> tuple[str | Mapping[str, Any], list[FunctionTool[..., Any]]]:
    if isinstance(strategy, Flow | Agent | Person):
        flow = as_flow(strategy)
        return flow.to_dict(), [*flow.tools, *(each for each in tools if each not in flow.tools)]
    return (strategy if isinstance(strategy, Mapping) else str(strategy)), list(tools)


@asynccontextmanager
async def _runs(options: RunOptions) -> AsyncIterator["AsyncRuns"]:
    from stringd.client import AsyncRuns

    hooks, place = options.get("hooks"), options.get("data_dir")
    if options.get("daemon", False):
        if hooks is not None or place is not None:
            raise ValueError("hooks and data_dir are for runs in this process: no daemon=True")
        async with AsyncRuns() as runs:
            yield runs
        return
    from stringd.library.local import LocalConnection

    where = None if place is None else Path(place)
    async with AsyncRuns(connect=partial(LocalConnection, where, hooks)) as runs:
        yield runs


async def _answer(
    runs: "AsyncRuns", handle: "RunHandle", prompt: Prompt, answer: Answer | None
) -> None:
    if answer is None and not isinstance(prompt, m.RequestPermission):
        from stringd.client import RunFailedError

        await handle.stop()
        raise RunFailedError("NEEDS_ANSWER", f"{_question(prompt)} {NOBODY}")
    said = f"deny {NOBODY}" if answer is None else answer(prompt)
    text = await said if inspect.isawaitable(said) else said
    if isinstance(prompt, m.RequestPermission):
        await runs.decide(prompt, *_decision(text))
    else:
        await runs.answer(prompt, text)


def _decision(text: str) -> Any:
    word, _, reason = text.strip().partition(" ")
    known = ("allow", "deny", "allow-session", "deny-session")
    if word not in known:
        raise ValueError(f"{text!r} does not answer a permission; say one of {', '.join(known)}")
    return word, reason or None


def _question(prompt: m.RequestInput | m.RequestQuestion) -> str:
    if isinstance(prompt, m.RequestQuestion):
        return f"{prompt.agent_name} asks: {prompt.question}"
    return f"{prompt.agent_name} waits for a text."


def _to_the_end(work: Coroutine[Any, Any, RunResult]) -> RunResult:
    try:
        asyncio.get_running_loop()
    except RuntimeError:
        return asyncio.run(work)
    # A notebook has a loop of its own in this thread.
    with ThreadPoolExecutor(1) as thread:
        return thread.submit(asyncio.run, work).result()
