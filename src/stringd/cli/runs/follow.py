"""Following one run from the terminal: messages to a view, what is typed to the run."""

import asyncio
import sys
import time
from collections.abc import Awaitable, Callable

from stringd.cli.keys import TypedLine
from stringd.cli.runs.answers import PermissionAnswer, permission_request, read_permission
from stringd.cli.runs.plain_view import RunView
from stringd.cli.runs.state import Prompt, RunState
from stringd.client.runs import RequestFailedError, RunsClient
from stringd.wire.runs import messages as m
from stringd.wire.runs import requests as r

COMPLETED, FAILED, CANCELLED, LEFT, INTERRUPTED = 0, 1, 3, 4, 130

BEGIN = "start"
"""The id of the request that begins what is followed; nothing follows when it is refused."""

ReadLine = Callable[[], Awaitable[TypedLine | None]]
"""The next line the human typed; None when there will be no more."""

READ_SECONDS = 0.4
"""A question about a permission takes no yes that was begun before it could be read."""
TOO_SOON = "That line was begun before the question could be read, so it does not count."


class RunFollower:
    """`follow` until the run ends; `read_line` is asked for input, answers and steering."""

    def __init__(
        self,
        client: RunsClient,
        state: RunState,
        view: RunView,
        read_line: ReadLine,
        *,
        interactive: bool,
        past: int = 0,
        until: int | None = None,
    ) -> None:
        """Endings up to `past` are earlier segments'. A run that rests is shown up to `until`."""
        self._client = client
        self._state = state
        self._view = view
        self._read_line = read_line
        self._interactive = interactive
        self._past = past
        self._until = until
        self._asked = asyncio.Event()
        self._left = asyncio.Event()
        self._unanswerable = False
        self._shown: tuple[Prompt | None, float] = None, 0.0
        self._newest = 0.0

    async def follow(self) -> int:
        """Show the run until it ends or is left; the exit code says how. Raises `RunsError`."""
        watching = asyncio.create_task(self._watch())
        typing = asyncio.create_task(self._type())
        leaving = asyncio.create_task(self._left.wait())
        try:
            await asyncio.wait((watching, leaving), return_when=asyncio.FIRST_COMPLETED)
            if watching.done():
                return watching.result()
        finally:
            for task in (watching, typing, leaving):
                task.cancel()
            await asyncio.gather(watching, typing, leaving, return_exceptions=True)
        return LEFT

    async def _watch(self) -> int:
        if self._is_over():
            return self._exit_code()
        async for message in self._client.messages():
            self._show(message)
            if self._is_over():
                return self._exit_code()
        return FAILED

    def _is_over(self) -> bool:
        if self._until is not None:
            return self._state.seq >= self._until
        return self._state.ending is not None and self._state.seq > self._past

    async def stop(self) -> int:
        """The human pressed Ctrl-C: stop the run and see it end."""
        await self._client.send(r.StopRun(run_id=self._state.run_id))
        async for message in self._client.messages():
            self._show(message)
            if self._is_over():
                break
        return INTERRUPTED

    def _show(self, message: m.DaemonMessage) -> None:
        if isinstance(message, m.Error) and message.request_id == BEGIN:
            raise RequestFailedError(message.code, message.message)
        self._state.see(message)
        if isinstance(message, m.RequestPermission):
            self._newest = time.monotonic()
        self._view.see(message)
        self._note_prompt()

    def _note_prompt(self) -> None:
        if self._state.prompt is not self._shown[0]:
            self._shown = self._state.prompt, time.monotonic()
        if self._state.prompt is None:
            self._asked.clear()
        else:
            self._asked.set()

    def _exit_code(self) -> int:
        ending = self._state.ending
        if isinstance(ending, m.StrategyCompleted):
            return COMPLETED
        if self._unanswerable or ending is None or ending.error.code != "CANCELLED":
            return FAILED
        return CANCELLED

    async def _type(self) -> None:
        """Lines go to the open prompt, else they steer; a pipe is read only when asked."""
        while True:
            if not self._interactive:
                await self._asked.wait()
            line = await self._read_line()
            prompt = self._state.prompt
            if line is None and self._interactive:
                self._left.set()
                return
            if line is None:
                await self._no_more_lines()
                return
            if prompt is not None and self._is_too_soon(prompt, line):
                self._view.note(TOO_SOON)
            elif prompt is not None:
                await self._answer(prompt, line.text)
            elif line.text.strip():
                run_id = self._state.run_id
                await self._client.send(r.SteerRun(run_id=run_id, text=line.text, mode="steer"))

    async def _answer(self, prompt: Prompt, text: str) -> None:
        answers = self._answers(prompt, text)
        if isinstance(answers, str):
            self._view.note(answers)
            return
        for each, request in answers:
            self._state.answered(each)
            self._note_prompt()
            await self._client.send(request)

    def _answers(self, prompt: Prompt, text: str) -> list[tuple[Prompt, r.ClientMessage]] | str:
        """What a typed line answers, or what to say when that is not clear."""
        if not isinstance(prompt, m.RequestPermission):
            return [(prompt, answer(prompt, text))]
        said = read_permission(text)
        if isinstance(said, str):
            if self._interactive:
                return said
            # A script says something else only by mistake, and nobody is there to be asked again.
            said = PermissionAnswer("deny")
        waiting = [each for each in self._state.prompts if isinstance(each, m.RequestPermission)]
        meant = waiting if said.every else [prompt]
        return [(each, permission_request(each.run_id, each.request_id, said)) for each in meant]

    def _is_too_soon(self, prompt: Prompt, line: TypedLine) -> bool:
        """Whether a yes was meant for something else: a person types it and the question comes."""
        if not isinstance(prompt, m.RequestPermission) or not self._interactive:
            return False
        said = read_permission(line.text)
        if isinstance(said, str) or said.decision.startswith("deny"):
            return False
        shown = self._newest if said.every else self._shown[1]
        return line.began < shown + READ_SECONDS

    async def _no_more_lines(self) -> None:
        """Nobody will ever answer: a run that asks is stopped rather than left waiting."""
        await self._asked.wait()
        self._unanswerable = True
        print("stringd: the run asks, but there is no more input; stopping it", file=sys.stderr)
        await self._client.send(r.StopRun(run_id=self._state.run_id))


def answer(prompt: m.RequestInput | m.RequestQuestion, line: str) -> r.ClientMessage:
    """The request that answers a prompt with a typed line."""
    if isinstance(prompt, m.RequestInput):
        return r.UserInput(run_id=prompt.run_id, agent_name=prompt.agent_name, text=line)
    return r.QuestionResponse(
        run_id=prompt.run_id, question_request_id=prompt.request_id, response=line
    )
