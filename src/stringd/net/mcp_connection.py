"""One connection to an MCP server, kept open by a task of its own.

The SDK is imported when the first server starts, and wants to be left by the task that entered it.
"""

import asyncio
import importlib
import logging
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from contextlib import asynccontextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Final, Literal, NamedTuple, TypeVar

from stringd.net.fetch import AddressRefusedError, Fetcher, FetchError, OfflineError
from stringd.net.mcp_budget import FloodError
from stringd.net.mcp_errors import (
    McpCallError,
    McpError,
    McpFloodError,
    McpMissingError,
    McpRefusedError,
    McpStartError,
)
from stringd.net.mcp_stdio import stdio_transport
from stringd.net.mcp_walls import ServerWalls, enclosed_server, proxy_for

if TYPE_CHECKING:
    from mcp import Client

    from stringd.net.mcp_web import Streams

log = logging.getLogger(__name__)

Answer = TypeVar("Answer")
Ask = Callable[["Client"], Awaitable[Answer]]

START_SECONDS: Final = 30.0
"""Some servers are installed by the command that starts them."""
_CONNECTION_CLOSED: Final = -32000
_SESSION_UNKNOWN: Final = -32600
"""What the SDK reports when a server on the web forgot us, after a restart for instance."""
_PRINTED_SHOWN: Final = 2000
_PRINTED_BYTES: Final = 4 * _PRINTED_SHOWN


class ServerSpec(NamedTuple):
    """A command to start, with its environment and sandbox, or an address with headers."""

    transport: Literal["stdio", "http", "sse"]
    command: tuple[str, ...] = ()
    environment: Mapping[str, str] = {}
    cwd: str | None = None
    url: str = ""
    headers: Mapping[str, str] = {}
    walls: ServerWalls | None = None
    """The sandbox a command is started in; None is none."""


class ServerConnection:
    """A connection kept open by its own task until it is closed, lost or idle."""

    def __init__(
        self,
        spec: ServerSpec,
        fetcher: Fetcher,
        idle_seconds: float | None,
        read_seconds: float | None,
        note_flood: Callable[[], None],
    ) -> None:
        self._spec = spec
        self._note_flood = note_flood
        self._flood: FloodError | None = None
        self._printed = b""
        self._fetcher = fetcher
        self._idle_seconds = idle_seconds
        self._read_seconds = read_seconds
        self._ready: asyncio.Future[Client] = asyncio.get_running_loop().create_future()
        self._used = asyncio.Event()
        self._asking = 0
        self._closing = False
        self.lost = False
        self.task = asyncio.create_task(self._live())

    @property
    def over(self) -> bool:
        return self.task.done()

    @property
    def connected(self) -> bool:
        ready = self._ready.done() and not self._ready.cancelled()
        return ready and self._ready.exception() is None and not (self.lost or self.over)

    def close(self) -> None:
        """Let it end by itself; a server that has not answered yet is not waited for."""
        self._end_soon()
        if not self._ready.done():
            self.task.cancel()

    def _end_soon(self) -> None:
        self._closing = True
        self._used.set()

    async def stop(self) -> None:
        if not self.task.done():
            self.task.cancel()
            await asyncio.wait({self.task}, timeout=START_SECONDS)

    async def ask(self, ask: Ask[Answer]) -> Answer:
        self._asking += 1
        try:
            client = await asyncio.shield(self._ready)
            return await ask(client)
        except (McpError, TimeoutError):
            raise
        except Exception as error:
            if self._flood is not None:
                raise McpFloodError(str(self._flood)) from error
            # Not asked again: nobody knows how far it came.
            self.lost = self.lost or _is_lost(error, self._spec)
            raise McpCallError(_first(error), lost=self.lost) from error
        finally:
            self._asking -= 1
            self._used.set()

    async def _live(self) -> None:
        try:
            # More than a second of imports, which nobody else should wait for.
            await asyncio.to_thread(importlib.import_module, "mcp")
            # What it has to say reaches the caller; its traces are for nobody.
            logging.getLogger("mcp").setLevel(logging.CRITICAL)
            async with asyncio.timeout(START_SECONDS) as starting, self._client() as client:
                starting.reschedule(None)
                self._ready.set_result(client)
                await self._until_unused()
        except Exception as error:  # noqa: BLE001 - a third party's program may fail in any way
            if not self._ready.done():
                self._ready.set_exception(self._start_failure(error))
        finally:
            if not self._ready.done():
                self._ready.set_exception(McpError("the connection was closed"))
            # Whoever asked reads it; nobody may be left to.
            self._ready.exception()

    def _print(self, data: bytes) -> None:
        self._printed = (self._printed + data)[-_PRINTED_BYTES:]

    def _end_flood(self, error: FloodError) -> None:
        """End the server; whoever waits for it is told why."""
        if self._flood is None:
            self._flood = error
            self.lost = True
            self._note_flood()
            log.warning("an MCP server was ended: it %s", error)
            self._end_soon()

    async def _until_unused(self) -> None:
        while not self._closing:
            self._used.clear()
            try:
                async with asyncio.timeout(self._idle_seconds):
                    await self._used.wait()
            except TimeoutError:
                if not self._asking:
                    return

    @asynccontextmanager
    async def _client(self) -> "AsyncIterator[Client]":
        from mcp import Client

        spec = self._spec
        if spec.transport == "stdio":
            directory = _directory(spec)
            proxy = proxy_for(spec.walls)
            way_out = proxy.way_out if proxy else None
            try:
                started = await asyncio.to_thread(
                    enclosed_server, spec.walls, spec.command, spec.environment, directory, way_out
                )
                transport = stdio_transport(
                    started.argv,
                    started.environment,
                    directory,
                    printed=self._print,
                    flooded=self._end_flood,
                )
                async with Client(transport) as client:
                    yield client
            finally:
                if proxy:
                    await proxy.close()
            return
        await _refuse_address(self._fetcher, spec.url)
        async with self._web() as streams, Client(_entered(streams)) as client:
            yield client

    @asynccontextmanager
    async def _web(self) -> "AsyncIterator[Streams]":
        import httpx2
        from mcp.client.sse import sse_client
        from mcp.client.streamable_http import streamable_http_client

        from stringd.net.mcp_web import http_client, metered

        spec = self._spec

        def connected(
            headers: Mapping[str, str] | None = None,
            timeout: httpx2.Timeout | None = None,
            auth: httpx2.Auth | None = None,  # noqa: ARG001 - the SDK names it
        ) -> httpx2.AsyncClient:
            return http_client(
                spec.url,
                headers or spec.headers,
                timeout or httpx2.Timeout(START_SECONDS, read=self._read_seconds),
                resolve=self._fetcher.resolve,
                printed=self._print,
                flooded=self._end_flood,
            )

        if spec.transport == "sse":
            events = sse_client(
                spec.url, headers=dict(spec.headers), httpx_client_factory=connected
            )
            async with metered(events, self._end_flood) as streams:
                yield streams
        else:
            async with (
                connected() as http,
                metered(
                    streamable_http_client(spec.url, http_client=http), self._end_flood
                ) as streams,
            ):
                yield streams

    def _start_failure(self, error: Exception) -> McpError:
        if self._flood is not None:
            return McpFloodError(str(self._flood))
        cause = _first(error)
        if isinstance(cause, McpError):
            return cause
        if isinstance(cause, ModuleNotFoundError) and (cause.name or "").partition(".")[0] == "mcp":
            return McpMissingError("the mcp package is not installed")
        printed = self._printed.decode("utf-8", "replace")
        return McpStartError(cause, printed[-_PRINTED_SHOWN:].strip())


@asynccontextmanager
async def _entered(streams: "Streams") -> "AsyncIterator[Streams]":
    yield streams


def _directory(spec: ServerSpec) -> str | None:
    if spec.cwd is not None and not Path(spec.cwd).is_dir():
        raise NotADirectoryError(spec.cwd)
    return spec.cwd


async def _refuse_address(fetcher: Fetcher, url: str) -> None:
    """Raises `McpRefusedError` where the fetcher would not go either."""
    try:
        await fetcher.resolve(url)
    except (OfflineError, AddressRefusedError) as error:
        raise McpRefusedError(str(error)) from error
    except FetchError:
        # A name that only a proxy can resolve is the proxy's to judge.
        return


def _is_lost(error: Exception, spec: ServerSpec) -> bool:
    """Whether a connection can carry no further calls."""
    code, message = getattr(error, "code", None), getattr(error, "message", None)
    if spec.transport != "stdio":
        return code in (_CONNECTION_CLOSED, _SESSION_UNKNOWN)
    # Programs use this number for failures of their own, too.
    return code == _CONNECTION_CLOSED and message == "Connection closed"


def _first(error: BaseException) -> BaseException:
    """What really went wrong inside groups of groups."""
    while isinstance(error, BaseExceptionGroup):
        error = error.exceptions[0]
    return error
