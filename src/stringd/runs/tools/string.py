"""The tool that sends one String command to this daemon."""

from collections.abc import Mapping
from contextlib import suppress
from typing import Annotated, Any
from urllib.parse import urlsplit

from msgspec import Meta

from stringd.net.fetch import normalised
from stringd.runs.tools.base import Arguments, BuiltInTool
from stringd.runs.tools.context import ToolContext
from stringd.runs.tools.output import ToolFailure, ToolOutput
from stringd.system.sandbox import Level


class StringToolArguments(Arguments, frozen=True):
    command: Annotated[str, Meta(min_length=1, description="one String command, such as /open")]
    topic: Annotated[str, Meta(min_length=1)] | None = None


class StringTool(BuiltInTool[StringToolArguments]):
    name = "string"
    description = (
        "Run one String command in a topic of this daemon: open and edit documents, use apps and "
        "their actions, or talk to a shell in a bash topic (for example topic bash:run)."
    )
    takes = StringToolArguments
    runs_shell = True

    def shared_state(self, args: Mapping[str, Any]) -> str | None:
        return f"topic {args.get('topic') or 'run'}"

    async def run(self, args: StringToolArguments, context: ToolContext) -> ToolOutput:
        port = context.desk.ports.string
        if port is None:
            raise ToolFailure("unknown", "No topics are at hand here", recoverable=False)
        topic = args.topic or "run"
        questions = _Questions(self.name, {"command": args.command, "topic": topic}, context)
        return ToolOutput(await port(topic, args.command, context.cwd, questions))


class _Questions:
    """What one command is asked about, wherever in the daemon its effects happen."""

    def __init__(self, tool: str, details: Mapping[str, str], context: ToolContext) -> None:
        self._tool = tool
        self._details = details
        self._agent = context.agent_name
        self._permissions = context.desk.permissions
        self._sandbox = context.desk.sandbox
        self._granted = set[tuple[str, str]]()

    async def command(self, line: str) -> None:
        # It runs as the user's own would, so where there are walls it leaves them.
        walls = self._sandbox.level is not Level.OPEN and await self._sandbox.has_walls()
        await self._permissions.command(
            self._agent,
            self._tool,
            line,
            self._details,
            scope=self._details["topic"],
            leaves=["it runs outside the sandbox"] if walls else (),
        )

    async def write(self, path: str) -> None:
        await self._permissions.path(self._agent, self._tool, "write", path, self._details)

    async def change(self, what: str) -> None:
        await self._permissions.more(self._agent, self._tool, what, self._details)

    async def address(self, url: str, address: str) -> None:
        # A site that sends us on to itself needs no second yes, unless its name moved meanwhile.
        with suppress(ValueError):
            url = normalised(url)
        site = (urlsplit(url).netloc, address)
        if site in self._granted:
            return
        details = {"url": url, "address": address, "why": ["not a public address"]}
        await self._permissions.address(self._agent, self._tool, url, details)
        self._granted.add(site)


class PrivilegedArguments(Arguments, frozen=True):
    pipeline: Annotated[
        list[Annotated[list[str], Meta(min_length=1)]],
        Meta(min_length=1, description="stages of argument lists; no shell is involved"),
    ]
    reason: Annotated[str, Meta(min_length=1, description="shown to the human who decides")]
    privileged: bool | None = None
