"""What agents of a run can use of the rest of the daemon, and of the gate beside it."""

import asyncio
from collections.abc import Coroutine, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Final

from stringd.client.daemon import default_home, setting
from stringd.runs import DaemonPorts, Denied, StringQuestions, ToolFailure, WebFormat
from stringd.runtime.errors import CommandError
from stringd.runtime.topics.call import Caller
from stringd.wire.result import response_text
from stringd.wire.topic import InvalidTopicError, parse_topic

if TYPE_CHECKING:
    from stringd.runtime.runtime import Runtime
    from stringd.server.turns import TopicTurns

_GATE_SECONDS: Final = 600.0
_GATE_SESSION: Final = "stringd-mcp"


def run_ports(runtime: "Runtime", turns: "TopicTurns") -> DaemonPorts:
    return DaemonPorts(
        string=DaemonTopics(runtime, turns),
        privileged=ask_gate,
        html=page_text,
        fetcher=runtime.services.fetcher,
    )


async def page_text(html: str, wanted: WebFormat) -> str:
    """A web page as `/open` shows it, or its bare text. Raises `ToolFailure`."""
    from stringd.actions.conversion import PageLimitError, markdown_of, text_of_page
    from stringd.documents.html import MAX_DEPTH, too_deep

    if await asyncio.to_thread(too_deep, html):
        raise ToolFailure(
            "command_failed",
            f"The page is nested more than {MAX_DEPTH} deep; it is not converted",
            next_step="ask for it with format html",
        )
    try:
        return await (markdown_of if wanted == "markdown" else text_of_page)(html)
    except PageLimitError as error:
        reason = str(error)
        raise ToolFailure(
            "command_failed",
            reason[:1].upper() + reason[1:],
            next_step="ask for it with format html",
        ) from None


class DaemonTopics:
    """String commands of agents, in topics of the user this daemon belongs to."""

    def __init__(self, runtime: "Runtime", turns: "TopicTurns") -> None:
        self._runtime = runtime
        self._turns = turns

    async def __call__(
        self, topic: str, command: str, cwd: Path, questions: StringQuestions
    ) -> str:
        try:
            parsed = parse_topic(topic)
        except InvalidTopicError as error:
            raise ToolFailure("not_found", str(error)) from None
        permission = RunPermission(questions)
        caller = Caller(str(cwd), permission, client="run")
        try:
            result = await self._turns.run(self._user(), parsed, command, caller)
        finally:
            permission.end()
        if permission.denied is not None and not result.ok:
            raise permission.denied
        return response_text(result)

    def _user(self) -> str:
        user_id = setting("USER")[1] or "default"
        if self._runtime.topics.users.get(user_id) is None:
            self._runtime.topics.register(user_id, default_home(user_id))
        return user_id


class RunPermission:
    """The questions of one tool call, for the topic its command runs in."""

    def __init__(self, questions: StringQuestions) -> None:
        self._questions = questions
        self._asking: asyncio.Future[None] | None = None
        self._over = False
        self.denied: Denied | None = None
        self._writable = set[str]()

    async def command(self, line: str) -> None:
        await self._ask(self._questions.command(line))

    async def write(self, path: str) -> None:
        if path not in self._writable:
            await self._ask(self._questions.write(path))
            self._writable.add(path)

    def may_write(self, path: str) -> bool:
        return path in self._writable

    async def change(self, what: str) -> None:
        await self._ask(self._questions.change(what))

    async def address(self, url: str, address: str) -> None:
        await self._ask(self._questions.address(url, address))

    def end(self) -> None:
        """The run does not wait for the command any more, so nobody answers."""
        self._over = True
        if self._asking is not None:
            self._asking.cancel()

    async def _ask(self, question: Coroutine[None, None, None]) -> None:
        self._asking = asyncio.ensure_future(question)
        if self._over:
            self._asking.cancel()
        try:
            await self._asking
        except Denied as denied:
            self.denied = denied
            raise CommandError("FILE_NOT_ALLOWED", str(denied)) from denied
        except asyncio.CancelledError:
            if not self._over:
                raise
            raise CommandError("CONFLICT", "Not run: the run ended before it was asked.") from None


async def ask_gate(
    pipeline: Sequence[Sequence[str]],
    reason: str,
    cwd: Path,
    *,
    privileged: bool,
) -> str:
    """Ask the human at the gate; what became of it, in words.

    The gate decides where its commands run; the question shows where the run works.
    """
    from stringd.client.gate import default_socket
    from stringd.client.gate_words import GateUnusableError, ask_in_words
    from stringd.gate.characters import cleaned

    try:
        words = await ask_in_words(
            default_socket(),
            pipeline,
            _GATE_SECONDS,
            reason=reason,
            session=_GATE_SESSION,
            privileged=privileged,
            directory=cleaned(str(cwd)),
        )
    except GateUnusableError as error:
        raise ToolFailure("command_failed", str(error), recoverable=False) from None
    return "\n".join(words.parts)
