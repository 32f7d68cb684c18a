"""The tools about runs: start one, look at it, wait for it, answer and steer it.

A permission is never granted here: whoever asks for one must not be able to give it.
"""

import asyncio
from typing import Annotated, Final

import msgspec
from msgspec import UNSET

from stringd.mcp.jobs import BEAT_SECONDS, Report
from stringd.mcp.outcome import ToolError, ToolOutcome, failed, said
from stringd.mcp.ports import McpCaller, RunsPort
from stringd.mcp.run_client import Prompt, RunClient, RunProgress
from stringd.wire.runs import messages as m
from stringd.wire.runs import requests as r
from stringd.wire.runs.names import new_run_id
from stringd.wire.runs.prompts import prompt_id
from stringd.wire.runs.types import RunOverview

Filled = Annotated[str, msgspec.Meta(min_length=1)]

NOT_HERE: Final = (
    "A permission cannot be granted from here: only the user decides, where they watch the run. "
    "Do not try to reach the same effect another way."
)


class RunStrategyArguments(msgspec.Struct, forbid_unknown_fields=True):
    strategy: Filled
    input: str = ""


class RunStatusArguments(msgspec.Struct, forbid_unknown_fields=True):
    run_id: str = ""


class AnswerArguments(msgspec.Struct, forbid_unknown_fields=True):
    run_id: Filled
    text: str
    id: str = ""


class SteerArguments(msgspec.Struct, forbid_unknown_fields=True):
    run_id: Filled
    text: Filled


class RunTools:
    """Each method is one tool; `hold` is how many seconds a call may last."""

    def __init__(self, runs: RunsPort, hold: float) -> None:
        self._runs = runs
        self._hold = hold

    async def run_strategy(
        self, caller: McpCaller, arguments: RunStrategyArguments, report: Report
    ) -> ToolOutcome:
        """Start a run and follow it."""
        path = await self._runs.find(arguments.strategy, caller.cwd)
        async with RunClient(self._runs) as client:
            prepare = r.PrepareRun(
                run_id=new_run_id(path), strategy_path=path, cwd=caller.cwd or UNSET
            )
            try:
                prepared = await client.ask(prepare)
            except ToolError as error:
                raise ToolError(f"{error}\n{await _at_hand(client, caller)}") from None
            assert isinstance(prepared, m.RunPrepared)
            progress = RunProgress(prepared.run_id, strategy=prepared.strategy_name)
            await client.tell(r.StartRun(run_id=prepared.run_id, input=arguments.input))
            return await self._follow(client, progress, report)

    async def run_status(self, arguments: RunStatusArguments) -> ToolOutcome:
        """How far one run is, or which runs there are."""
        if not arguments.run_id:
            return await self._list()
        async with RunClient(self._runs) as client:
            return describe(await client.progress(arguments.run_id))

    async def wait(self, run_id: str, report: Report) -> ToolOutcome:
        """Follow a run that is under way."""
        async with RunClient(self._runs) as client:
            progress = await client.progress(run_id)
            for prompt in progress.prompts:
                if not isinstance(prompt, m.RequestPermission):
                    return describe(progress)
            # Who waits for a permission waits for the person, not for the request of it.
            progress.prompts = []
            outcome = await self._follow(client, progress, report)
            if progress.finished or progress.prompts:
                return outcome
        return await self.run_status(RunStatusArguments(run_id))

    async def answer(self, caller: McpCaller, arguments: AnswerArguments) -> ToolOutcome:
        """Give the text a run waits for."""
        async with RunClient(self._runs, caller.speaker) as client:
            progress = await client.progress(arguments.run_id)
            prompt = _wanted(progress, arguments.id)
            if isinstance(prompt, m.RequestPermission):
                raise ToolError(f"{_prompt_line(prompt)}\n{NOT_HERE}")
            await client.tell(_answer(prompt, arguments))
        return said(
            f"Answered {prompt_id(prompt)} of run {arguments.run_id}. "
            f'Call wait with handle "{arguments.run_id}" to continue.'
        )

    async def steer(self, caller: McpCaller, arguments: SteerArguments) -> ToolOutcome:
        """Give a running run a text for the agent at work, or the next one."""
        async with RunClient(self._runs, caller.speaker) as client:
            await client.tell(
                r.SteerRun(run_id=arguments.run_id, text=arguments.text, mode="steer")
            )
        return said(f"Queued for the next step of an agent of run {arguments.run_id}.")

    async def known(self) -> list[RunOverview]:
        """Every run on disk, newest first."""
        async with RunClient(self._runs) as client:
            listed = await client.ask(r.ListRuns())
            assert isinstance(listed, m.RunList)
            return listed.runs

    async def _list(self) -> ToolOutcome:
        runs = await self.known()
        lines = [f"{run.run_id}  {run.status}  {run.strategy_name}" for run in runs[:50]]
        if len(runs) > len(lines):
            lines.append(f"… and {len(runs) - len(lines)} older ones")
        return said("\n".join(lines) or "No runs yet. Start one with run_strategy.")

    async def _follow(
        self, client: RunClient, progress: RunProgress, report: Report
    ) -> ToolOutcome:
        loop = asyncio.get_running_loop()
        started = loop.time()
        while not progress.finished and not progress.waits:
            spent = loop.time() - started
            if spent >= self._hold:
                break
            await client.follow(progress, min(BEAT_SECONDS, self._hold - spent))
            if not progress.finished:
                doing = progress.doing or progress.status
                await report(loop.time() - started, f"{progress.strategy}: {doing}")
        return describe(progress)


def describe(progress: RunProgress) -> ToolOutcome:
    """What the model reads about a run."""
    name = f"Run {progress.run_id} ({progress.strategy})"
    if progress.status == "completed":
        return said(f"{name} completed.\n---\n{progress.result}")
    if progress.finished:
        return failed(f"{name} ended: {progress.error or progress.status}")
    if not progress.prompts:
        return said(
            f"{name} is {progress.status}{f': {progress.doing}' if progress.doing else ''}.\n"
            f'It keeps running; do not start it again. Call wait with handle "'
            f'{progress.run_id}" for its result.'
        )
    lines = [f"{name} waits:", *(f"- {_prompt_line(prompt)}" for prompt in progress.prompts)]
    if any(not isinstance(prompt, m.RequestPermission) for prompt in progress.prompts):
        lines.append("Give the text it wants with answer (run_id, text, id).")
    if any(isinstance(prompt, m.RequestPermission) for prompt in progress.prompts):
        lines.append(f'{NOT_HERE} Call wait with handle "{progress.run_id}" to continue waiting.')
    return said("\n".join(lines))


async def _at_hand(client: RunClient, caller: McpCaller) -> str:
    """Which strategies could have been meant."""
    found = await client.ask(r.DiscoverStrategies(cwd=caller.cwd or UNSET))
    assert isinstance(found, m.DiscoveredStrategies)
    return f"Strategies at hand: {', '.join(each.name for each in found.strategies)}"


def _prompt_line(prompt: Prompt) -> str:
    match prompt:
        case m.RequestInput():
            wanted = prompt.prompt or "input"
            return f"{prompt_id(prompt)}: agent {prompt.agent_name} asks for: {wanted}"
        case m.RequestQuestion():
            return f"{prompt_id(prompt)}: agent {prompt.agent_name} asks: {prompt.question}"
        case m.RequestPermission():
            wanted = f"{prompt.operation} on {prompt.resource}"
            return f"{prompt_id(prompt)}: agent {prompt.agent_name} asks permission for {wanted}"


def _wanted(progress: RunProgress, wanted: str) -> Prompt:
    """The prompt an answer is for. Raises `ToolError` when that is not clear."""
    if progress.finished:
        raise ToolError(f"Run {progress.run_id} has ended: {progress.status}.")
    found = [p for p in progress.prompts if not wanted or prompt_id(p) == wanted]
    if not wanted:
        found = [p for p in found if not isinstance(p, m.RequestPermission)] or found
    if not found:
        raise ToolError(f"Run {progress.run_id} waits for no such answer.")
    if len(found) > 1:
        lines = "\n".join(f"- {_prompt_line(prompt)}" for prompt in found)
        raise ToolError(f"Run {progress.run_id} waits for several; give the id of one:\n{lines}")
    return found[0]


def _answer(prompt: Prompt, arguments: AnswerArguments) -> r.ClientMessage:
    if isinstance(prompt, m.RequestInput):
        return r.UserInput(
            run_id=arguments.run_id, agent_name=prompt.agent_name, text=arguments.text
        )
    return r.QuestionResponse(
        run_id=arguments.run_id, question_request_id=prompt_id(prompt), response=arguments.text
    )
