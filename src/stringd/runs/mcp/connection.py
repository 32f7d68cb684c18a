"""The connection of a run to one MCP server, with what it offers and why it does not."""

import logging
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from stringd.net.host_proxy import HostListError
from stringd.net.mcp_client import (
    START_SECONDS,
    McpClient,
    McpError,
    McpFloodError,
    McpMissingError,
    McpRefusedError,
    McpStartError,
    McpTimeoutError,
    ServerSpec,
    list_tools,
)
from stringd.net.mcp_walls import ServerWalls
from stringd.runs.mcp.definitions import (
    MissingVariableError,
    ServerDefinition,
    changed_program,
)
from stringd.system.sandbox import SandboxError

if TYPE_CHECKING:
    import asyncio

    from mcp.types import Tool as TheirTool

    from stringd.net.fetch import Fetcher

log = logging.getLogger(__name__)

# A server on the web may think for a while, but not for ever.
_READ_SECONDS: Final = 300.0


class Connection:
    """`tools` and `error` are settled by `open`; exactly one of them says something.

    A server that dies is started again with the next call.
    """

    def __init__(
        self,
        definition: ServerDefinition,
        cwd: Path,
        tasks: "set[asyncio.Task[None]]",
        hide: Sequence[Path] = (),
        fetcher: "Fetcher | None" = None,
    ) -> None:
        self.definition = definition
        self.tools: list[TheirTool] = []
        self.error: str | None = None
        self._cwd = cwd
        self._tasks = tasks
        self._hide = hide
        self._fetcher = fetcher
        self._client: McpClient | None = None
        self._closed = False

    @property
    def connected(self) -> bool:
        return self._client is not None and self._client.connected

    async def open(self) -> None:
        """Ask the server what it offers; why it does not answer is kept, not raised."""
        try:
            if self._closed:
                raise McpError("the connection was closed")
            self._client = McpClient(
                _spec(self.definition, self._cwd, self._hide),
                name=f"mcp {self.definition.id}",
                idle_seconds=None,
                read_seconds=_READ_SECONDS,
                tasks=self._tasks,
                fetcher=self._fetcher,
                before_start=self._check_programs,
            )
            self.tools = await self._client.ask(list_tools, START_SECONDS)
        except (McpError, MissingVariableError, HostListError) as error:
            log.info("MCP server %s: %s", self.definition.id, type(error).__name__)
            self.error = safe_error(error)
            self.close()

    def _check_programs(self) -> None:
        """A server is started again after it died, and an agent may have changed it meanwhile."""
        path = changed_program(self.definition)
        if path is not None:
            raise McpRefusedError(f"{path} has changed since it was trusted")

    def close(self) -> None:
        """Let go; what is still running ends by itself."""
        self._closed = True
        if self._client is not None:
            self._client.close()

    async def call(self, tool: str, arguments: dict[str, Any]) -> Any:
        """The server's result. Raises `McpError`."""
        if self._client is None:
            raise McpError("the server is not connected")
        return await self._client.ask(lambda client: client.call_tool(tool, arguments))


def _spec(definition: ServerDefinition, cwd: Path, hide: Sequence[Path]) -> ServerSpec:
    if definition.transport != "stdio":
        url, headers = definition.text("url") or "", definition.mapping("headers")
        return ServerSpec(definition.transport, url=url, headers=headers)
    own = definition.text("cwd")
    command = (definition.text("command") or "", *definition.texts("args"))
    directory = cwd if own is None else definition.file.parent / own
    places = (cwd, directory) if definition.owned else (cwd,)
    return ServerSpec(
        "stdio",
        command=command,
        environment=definition.mapping("env"),
        cwd=str(directory),
        walls=ServerWalls(
            definition.sandbox, places, tuple(hide), definition.owned, definition.network
        ),
    )


def safe_error(error: BaseException) -> str:
    """What went wrong without a word of the definition: it may hold secrets."""
    cause = error.cause if isinstance(error, McpStartError) else error
    match cause:
        case MissingVariableError() | McpRefusedError() | SandboxError() | HostListError():
            return str(cause)
        case McpFloodError():
            return f"It was ended: it {cause}"
        case McpTimeoutError() | TimeoutError():
            return f"No answer within {START_SECONDS:g} s"
        case NotADirectoryError():
            return "Its working directory does not exist"
        case FileNotFoundError():
            return "The command was not found"
        case PermissionError():
            return "The command may not be executed"
        case McpMissingError() | ImportError():
            return "MCP needs the package mcp: pip install mcp"
        case _:
            return f"Could not connect ({type(cause).__name__})"
