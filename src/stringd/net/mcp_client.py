"""The one client of MCP servers: started on first use, and again after they died.

Errors are of one family, which the rooms put in their own words.
"""

import asyncio
import time
from collections import deque
from collections.abc import Callable
from typing import TYPE_CHECKING, Final, Generic, TypeVar

from stringd.net.fetch import Fetcher
from stringd.net.mcp_connection import START_SECONDS, Answer, Ask, ServerConnection, ServerSpec
from stringd.net.mcp_errors import (
    McpAnswerError,
    McpCallError,
    McpError,
    McpFloodError,
    McpMissingError,
    McpRefusedError,
    McpStartError,
    McpTimeoutError,
)

if TYPE_CHECKING:
    from mcp import Client
    from mcp.types import Tool

__all__ = [
    "MAX_LISTED",
    "START_SECONDS",
    "McpAnswerError",
    "McpCallError",
    "McpClient",
    "McpError",
    "McpFloodError",
    "McpMissingError",
    "McpRefusedError",
    "McpServers",
    "McpStartError",
    "McpTimeoutError",
    "ServerSpec",
    "list_tools",
]

Key = TypeVar("Key")

IDLE_SECONDS: Final = 300.0
MAX_LISTED: Final = 1000
FLOODS: Final = 3
FLOOD_PAUSE: Final = 300.0
"""A server that flooded us so often within these seconds is not started again before they end."""


class McpClient:
    """One server. Nothing runs until it is asked, nor after nobody asked for `idle_seconds`.

    `tasks` holds the task of every connection while it lasts, so that an owner of many clients
    can wait for all of them. `fetcher` says which addresses may be asked. `before_start` is called
    each time and raises `McpError` to prevent it.
    """

    def __init__(
        self,
        spec: ServerSpec,
        *,
        name: str = "mcp",
        idle_seconds: float | None = IDLE_SECONDS,
        read_seconds: float | None = None,
        tasks: "set[asyncio.Task[None]] | None" = None,
        fetcher: Fetcher | None = None,
        before_start: Callable[[], None] = lambda: None,
    ) -> None:
        self.spec = spec
        self._before_start = before_start
        self._fetcher = fetcher or Fetcher()
        self._name = name
        self._idle_seconds = idle_seconds
        self._read_seconds = read_seconds
        self._tasks = set[asyncio.Task[None]]() if tasks is None else tasks
        self._connection: ServerConnection | None = None
        self._starting = asyncio.Lock()
        self._floods: deque[float] = deque(maxlen=FLOODS)
        self._closed = False

    @property
    def connected(self) -> bool:
        """Whether the server answered and was not lost since."""
        return self._connection is not None and self._connection.connected

    @property
    def running(self) -> bool:
        """Whether there is a connection, be it one that is just being opened."""
        return self._connection is not None and not self._connection.over

    async def ask(self, ask: Ask[Answer], limit: float | None = None) -> Answer:
        """Ask the server something, starting it if need be. Raises `McpError`.

        What `ask` itself raises of that family passes unchanged.
        """
        try:
            async with asyncio.timeout(limit):
                connection = await self._usable()
                return await connection.ask(ask)
        except TimeoutError as error:
            within = "in time" if limit is None else f"within {limit:g} s"
            raise McpTimeoutError(f"no answer {within}") from error

    def close(self) -> None:
        """Let go of the server for good; its connection ends by itself."""
        self._closed = True
        if self._connection is not None:
            self._connection.close()

    async def stop(self) -> None:
        """End the connection and wait for that; the next question starts another."""
        if self._connection is not None:
            await self._connection.stop()

    async def _usable(self) -> ServerConnection:
        async with self._starting:
            if self._closed:
                raise McpError("the connection was closed")
            found = self._connection
            if found is None or found.lost or found.over:
                if found is not None:
                    await found.stop()
                self._refuse_flooder()
                await asyncio.to_thread(self._before_start)
                if self._closed:
                    raise McpError("the connection was closed")
                found = ServerConnection(
                    self.spec,
                    self._fetcher,
                    self._idle_seconds,
                    self._read_seconds,
                    self._note_flood,
                )
                self._connection = found
                found.task.set_name(self._name)
                self._tasks.add(found.task)
                found.task.add_done_callback(self._tasks.discard)
            return found

    def _note_flood(self) -> None:
        self._floods.append(time.monotonic())

    def _refuse_flooder(self) -> None:
        if len(self._floods) == FLOODS:
            left = self._floods[0] + FLOOD_PAUSE - time.monotonic()
            if left > 0:
                raise McpFloodError(
                    f"sent too much {FLOODS} times, and is not started again for {left:.0f} seconds"
                )


class McpServers(Generic[Key]):
    """Servers by key, each started the way it was asked for last."""

    def __init__(self, idle_seconds: float = IDLE_SECONDS, fetcher: Fetcher | None = None) -> None:
        self._clients: dict[Key, McpClient] = {}
        self._fetcher = fetcher
        self._idle_seconds = idle_seconds
        self._tasks: set[asyncio.Task[None]] = set()

    @property
    def running(self) -> int:
        """How many servers run."""
        return sum(client.running for client in self._clients.values())

    @property
    def keys(self) -> list[Key]:
        return list(self._clients)

    async def use(
        self, key: Key, spec: ServerSpec, ask: Ask[Answer], limit: float | None = None
    ) -> Answer:
        """Ask a server something, starting it if need be. Raises `McpError`."""
        while (client := self._clients.get(key)) is not None and client.spec != spec:
            await self.stop(key)
        if client is None:
            client = McpClient(
                spec, idle_seconds=self._idle_seconds, tasks=self._tasks, fetcher=self._fetcher
            )
            self._clients[key] = client
        return await client.ask(ask, limit)

    async def stop(self, key: Key) -> None:
        client = self._clients.pop(key, None)
        if client is not None:
            await client.stop()

    def close_unanswered(self) -> None:
        """Give up on servers that have not answered yet: whoever waits for one is told so."""
        for client in self._clients.values():
            if not client.connected:
                client.close()

    async def close(self) -> None:
        """Stop them all, and wait for those that were given up before."""
        await asyncio.gather(*(self.stop(key) for key in self.keys))
        await self.ended()

    async def ended(self) -> None:
        """Return when those that run now have stopped by themselves."""
        if self._tasks:
            await asyncio.wait(set(self._tasks))


async def list_tools(client: "Client") -> "list[Tool]":
    """Every tool a server offers, up to a bound no honest server reaches."""
    tools: list[Tool] = []
    cursor: str | None = None
    while len(tools) < MAX_LISTED:
        page = await client.list_tools(cursor=cursor)
        tools += page.tools
        cursor = page.next_cursor
        if not cursor:
            break
    return tools
