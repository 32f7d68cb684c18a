"""What clients may read besides calling tools: open documents and known runs."""

from typing import Final, NamedTuple
from urllib.parse import quote, unquote

from stringd.mcp.outcome import ToolError
from stringd.mcp.ports import McpCaller, McpPorts
from stringd.mcp.run_tools import RunStatusArguments, RunTools
from stringd.wire.result import response_text
from stringd.wire.topic import InvalidTopicError

TOPICS: Final = "string://topics/"
RUNS: Final = "string://runs/"
MAX_RUNS: Final = 100


class ListedResource(NamedTuple):
    """A resource as clients list it."""

    uri: str
    name: str
    description: str
    mime_type: str


class AddressTemplate(NamedTuple):
    """How resources of a kind are named."""

    uri_template: str
    name: str
    description: str
    mime_type: str


TEMPLATES: Final = (
    AddressTemplate(
        f"{TOPICS}{{topic}}", "Open document", "the document a topic shows", "text/markdown"
    ),
    AddressTemplate(f"{RUNS}{{run_id}}", "Run", "a run's state, and its result", "text/plain"),
)


class UnknownResourceError(Exception):
    """No such document or run."""


class Resources:
    """Open documents by their topic, runs by their id."""

    def __init__(self, ports: McpPorts, runs: RunTools) -> None:
        self._ports = ports
        self._runs = runs

    async def list(self, caller: McpCaller) -> list[ListedResource]:
        """The documents the caller's topics show, and the newest runs."""
        pages = self._ports.commands.pages(caller)
        found = [
            ListedResource(
                TOPICS + quote(page.topic, safe=":"),
                page.title or page.topic,
                f"{page.uri}, open in {page.topic}",
                "text/markdown",
            )
            for page in pages
        ]
        for run in (await self._runs.known())[:MAX_RUNS]:
            what = f"run of {run.strategy_name}, {run.status}"
            found.append(
                ListedResource(RUNS + quote(run.run_id, safe=""), run.run_id, what, "text/plain")
            )
        return found

    async def read(self, caller: McpCaller, uri: str) -> tuple[str, str]:
        """The text and type of a resource. Raises `UnknownResourceError`."""
        if uri.startswith(TOPICS):
            return await self._page(caller, unquote(uri.removeprefix(TOPICS))), "text/markdown"
        if uri.startswith(RUNS):
            return await self._run(unquote(uri.removeprefix(RUNS))), "text/plain"
        raise UnknownResourceError(uri)

    async def _page(self, caller: McpCaller, topic: str) -> str:
        if topic not in {page.topic for page in self._ports.commands.pages(caller)}:
            raise UnknownResourceError(TOPICS + topic)
        try:
            result = await self._ports.commands.run(caller, topic, "/source")
        except InvalidTopicError:
            raise UnknownResourceError(TOPICS + topic) from None
        return result.content if result.ok and result.content else response_text(result)

    async def _run(self, run_id: str) -> str:
        try:
            outcome = await self._runs.run_status(RunStatusArguments(run_id))
        except ToolError:
            raise UnknownResourceError(RUNS + run_id) from None
        return "\n".join(outcome.parts)
