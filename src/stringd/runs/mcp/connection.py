"""One connection to an MCP server: opened, used and closed by one task of its own."""

import asyncio
import logging
import os
from contextlib import AsyncExitStack
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from stringd.runs.mcp.definitions import MissingVariableError, ServerDefinition

if TYPE_CHECKING:
    from mcp import ClientSession
    from mcp.types import Tool as TheirTool

log = logging.getLogger(__name__)

# Some servers are installed by the command that starts them.
CONNECT_SECONDS: Final = 30.0


class Connection:
    """`tools` and `error` are settled once `opened` is done; exactly one of them says something."""

    def __init__(self, definition: ServerDefinition, cwd: Path) -> None:
        self.definition = definition
        self.tools: list[TheirTool] = []
        self.error: str | None = None
        self._cwd = cwd
        self._session: ClientSession | None = None
        self._opened = asyncio.Event()
        self._closing = asyncio.Event()
        self.task = asyncio.create_task(self._live(), name=f"mcp {definition.id}")

    @property
    def connected(self) -> bool:
        return self._session is not None

    async def opened(self) -> None:
        """Wait until the server answered, or did not."""
        await self._opened.wait()

    def close(self) -> None:
        """Let go; the task ends by itself."""
        self._closing.set()

    async def call(self, tool: str, arguments: dict[str, Any]) -> Any:
        """The server's result. Raises whatever the library raises."""
        if self._session is None:
            raise ConnectionError("the server is not connected")
        return await self._session.call_tool(tool, arguments)

    async def _live(self) -> None:
        try:
            async with AsyncExitStack() as stack:
                async with asyncio.timeout(CONNECT_SECONDS):
                    session = await self._open(stack)
                    await self._list_tools(session)
                self._session = session
                self._opened.set()
                await self._closing.wait()
                self._session = None
        except Exception as error:  # noqa: BLE001  # a server may fail in any way; the run goes on
            log.info("MCP server %s: %s", self.definition.id, type(error).__name__)
            self.error = self.error or safe_error(error)
        finally:
            self._session = None
            self._opened.set()

    async def _list_tools(self, session: "ClientSession") -> None:
        from mcp.types import PaginatedRequestParams

        cursor: str | None = None
        while True:
            params = PaginatedRequestParams(cursor=cursor) if cursor else None
            page = await session.list_tools(params=params)
            self.tools += page.tools
            cursor = page.next_cursor
            if not cursor:
                return

    async def _open(self, stack: AsyncExitStack) -> "ClientSession":
        from mcp import ClientSession

        streams = await stack.enter_async_context(self._transport(stack))
        session = await stack.enter_async_context(ClientSession(streams[0], streams[1]))
        await session.initialize()
        return session

    def _transport(self, stack: AsyncExitStack) -> Any:
        definition = self.definition
        if definition.transport == "stdio":
            from mcp.client.stdio import StdioServerParameters, stdio_client

            cwd = definition.text("cwd")
            server = StdioServerParameters(
                command=definition.text("command") or "",
                args=definition.texts("args"),
                env=definition.mapping("env"),
                cwd=str(self._cwd if cwd is None else definition.file.parent / cwd),
            )
            quiet = stack.enter_context(open(os.devnull, "w", encoding="utf-8"))  # noqa: SIM115
            return stdio_client(server, errlog=quiet)
        url, headers = definition.text("url") or "", definition.mapping("headers")
        if definition.transport == "sse":
            from mcp.client.sse import sse_client

            return sse_client(url, headers=headers)
        import httpx2
        from mcp.client.streamable_http import streamable_http_client

        client = httpx2.AsyncClient(headers=headers, timeout=httpx2.Timeout(30.0, read=300.0))
        stack.push_async_callback(client.aclose)
        return streamable_http_client(url, http_client=client)


def safe_error(error: BaseException) -> str:
    """What went wrong without a word of the definition: it may hold secrets."""
    if isinstance(error, BaseExceptionGroup):
        return safe_error(error.exceptions[0])
    match error:
        case MissingVariableError():
            return str(error)
        case TimeoutError():
            return f"No answer within {CONNECT_SECONDS:g} s"
        case FileNotFoundError():
            return "The command was not found"
        case PermissionError():
            return "The command may not be executed"
        case ImportError():
            return 'MCP support is not installed: pip install "stringd[mcp]"'
        case _:
            return f"Could not connect ({type(error).__name__})"
