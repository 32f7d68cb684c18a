"""The tool that sends one String command to this daemon."""

import re
from typing import Annotated, Final

from msgspec import Meta

from stringd.runs.tools.base import Arguments, BuiltInTool
from stringd.runs.tools.context import ToolContext
from stringd.runs.tools.output import ToolFailure, ToolOutput
from stringd.runs.tools.web import allowed_target, checked_url, fetcher_of
from stringd.wire.topic import InvalidTopicError, parse_topic

# What a document topic hands to a shell, and what a bash topic types into a running program.
_STARTED: Final = re.compile(r"(?is)\s*//?(?:exec|install\s[^\n]*--mcp\s[^\n]*\s--)(?:\s+(.*))?$")
_TYPED: Final = re.compile(r"(?is)\s*//input\s+(.*)")
# Commands that load from the web. Text below their first line, as of all others, is data.
_LOADING: Final = re.compile(r"(?i)\s*//?(?:open|install)\s[^\n]*")
_ADDRESS: Final = re.compile(r"""(?i)https?://[^\s"'<>]+""")


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

    async def run(self, args: StringToolArguments, context: ToolContext) -> ToolOutput:
        port = context.desk.ports.string
        if port is None:
            raise ToolFailure("unknown", "No topics are at hand here", recoverable=False)
        topic = args.topic or "run"
        await self._allowed(topic, args.command, context)
        return ToolOutput(await port(topic, args.command, context.cwd))

    async def _allowed(self, topic: str, command: str, context: ToolContext) -> None:
        """A shell line is judged like any other, an address like one to fetch."""
        try:
            shell = parse_topic(topic).type == "bash"
        except InvalidTopicError as error:
            raise ToolFailure("not_found", str(error)) from None
        line = _shell_line(command, shell=shell)
        if line is not None:
            details = {"command": command, "topic": topic}
            permissions = context.desk.permissions
            await permissions.command(context.agent_name, self.name, line, details)
        loading = None if shell else _LOADING.match(command)
        addresses = _ADDRESS.findall(loading[0]) if loading else ()
        async with fetcher_of(context) as fetcher:
            for address in addresses:
                await allowed_target(self.name, checked_url(address), context, fetcher, set())


def _shell_line(command: str, *, shell: bool) -> str | None:
    """What of a command is run by a shell."""
    found = (_TYPED if shell else _STARTED).match(command)
    if found is not None:
        return found[1] or ""
    return command if shell else None


class PrivilegedArguments(Arguments, frozen=True):
    pipeline: Annotated[
        list[Annotated[list[str], Meta(min_length=1)]],
        Meta(min_length=1, description="stages of argument lists; no shell is involved"),
    ]
    reason: Annotated[str, Meta(min_length=1, description="shown to the human who decides")]
    privileged: bool | None = None
