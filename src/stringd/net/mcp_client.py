"""The one client of MCP servers: started on first use, and again after they died.

The SDK is imported when the first server starts. Each connection lives in a task of its own,
because the SDK wants to be left by the task that entered it. Errors are of one family, which the
rooms put in their own words.
"""

import asyncio
import importlib
import logging
import tempfile
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from contextlib import asynccontextmanager
from pathlib import Path
from typing import IO, TYPE_CHECKING, Final, Generic, Literal, NamedTuple, TypeVar

from stringd.net.fetch import AddressRefusedError, Fetcher, FetchError, OfflineError
from stringd.net.mcp_walls import ServerWalls, enclosed_server

if TYPE_CHECKING:
    import httpx2
    from mcp import Client
    from mcp.types import Tool

Answer = TypeVar("Answer")
Key = TypeVar("Key")
Ask = Callable[["Client"], Awaitable[Answer]]

IDLE_SECONDS: Final = 300.0
START_SECONDS: Final = 30.0
"""Some servers are installed by the command that starts them."""
MAX_LISTED: Final = 1000
_CONNECTION_CLOSED: Final = -32000
_SESSION_UNKNOWN: Final = -32600
"""What the SDK reports when a server on the web forgot us, after a restart for instance."""
_PRINTED_SHOWN: Final = 2000


class McpError(Exception):
    """A server could not be used; `str()` says why and may hold words of its definition."""


class McpMissingError(McpError):
    """The SDK is not installed."""


class McpRefusedError(McpError):
    """The address is not one that may be asked now: nothing was sent."""


class McpTimeoutError(McpError):
    """No answer came in time."""


class McpAnswerError(McpError):
    """The server answered that it failed; `str()` is what it said."""


class McpStartError(McpError):
    """The server could not be started or reached.

    `cause` is what went wrong first, `printed` what the server had to say.
    """

    def __init__(self, cause: BaseException, printed: str) -> None:
        super().__init__(str(cause) or type(cause).__name__)
        self.cause = cause
        self.printed = printed


class McpCallError(McpError):
    """A call failed. A server that is `lost` is started again with the next call."""

    def __init__(self, cause: BaseException, *, lost: bool) -> None:
        super().__init__(str(cause) or type(cause).__name__)
        self.lost = lost


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


class McpClient:
    """One server. Nothing runs until it is asked, nor after nobody asked for `idle_seconds`.

    `tasks` holds the task of every connection while it lasts, so that an owner of many clients
    can wait for all of them. `fetcher` says which addresses may be asked.
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
    ) -> None:
        self.spec = spec
        self._fetcher = fetcher or Fetcher()
        self._name = name
        self._idle_seconds = idle_seconds
        self._read_seconds = read_seconds
        self._tasks = set[asyncio.Task[None]]() if tasks is None else tasks
        self._connection: _Connection | None = None
        self._starting = asyncio.Lock()
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

    async def _usable(self) -> "_Connection":
        async with self._starting:
            if self._closed:
                raise McpError("the connection was closed")
            found = self._connection
            if found is None or found.lost or found.over:
                if found is not None:
                    await found.stop()
                found = _Connection(
                    self.spec, self._fetcher, self._idle_seconds, self._read_seconds
                )
                self._connection = found
                found.task.set_name(self._name)
                self._tasks.add(found.task)
                found.task.add_done_callback(self._tasks.discard)
            return found


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

    async def close(self) -> None:
        """Stop them all."""
        await asyncio.gather(*(self.stop(key) for key in self.keys))

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


class _Connection:
    """A connection kept open by its own task until it is closed, lost or idle."""

    def __init__(
        self,
        spec: ServerSpec,
        fetcher: Fetcher,
        idle_seconds: float | None,
        read_seconds: float | None,
    ) -> None:
        self._spec = spec
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
            # Not asked again: nobody knows how far it came.
            self.lost = self.lost or _is_lost(error, self._spec)
            raise McpCallError(_first(error), lost=self.lost) from error
        finally:
            self._asking -= 1
            self._used.set()

    async def _live(self) -> None:
        with tempfile.TemporaryFile("w+", encoding="utf-8", errors="replace") as printed:
            try:
                # More than a second of imports, which nobody else should wait for.
                await asyncio.to_thread(importlib.import_module, "mcp")
                # What it has to say reaches the caller; its traces are for nobody.
                logging.getLogger("mcp").setLevel(logging.CRITICAL)
                async with (
                    asyncio.timeout(START_SECONDS) as starting,
                    self._client(printed) as client,
                ):
                    starting.reschedule(None)
                    self._ready.set_result(client)
                    await self._until_unused()
            except Exception as error:  # noqa: BLE001 - a third party's program may fail in any way
                if not self._ready.done():
                    self._ready.set_exception(_start_failure(error, printed))
            finally:
                if not self._ready.done():
                    self._ready.set_exception(McpError("the connection was closed"))
                # Whoever asked reads it; nobody may be left to.
                self._ready.exception()

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
    async def _client(self, printed: IO[str]) -> "AsyncIterator[Client]":
        from mcp import Client, StdioServerParameters, stdio_client

        spec = self._spec
        if spec.transport != "stdio":
            await _refuse_address(self._fetcher, spec.url)
        if spec.transport == "sse":
            from mcp.client.sse import sse_client

            async with Client(sse_client(spec.url, headers=dict(spec.headers))) as client:
                yield client
        elif spec.transport == "http":
            from mcp.client.streamable_http import streamable_http_client

            async with (
                _http_client(spec, self._read_seconds, printed) as http,
                Client(streamable_http_client(spec.url, http_client=http)) as client,
            ):
                yield client
        else:
            directory = _directory(spec)
            started = await asyncio.to_thread(
                enclosed_server, spec.walls, spec.command, spec.environment
            )
            program, *arguments = started.argv
            parameters = StdioServerParameters(
                command=program, args=arguments, env=started.environment, cwd=directory
            )
            async with Client(stdio_client(parameters, printed)) as client:  # type: ignore[arg-type]
                yield client


def _directory(spec: ServerSpec) -> str | None:
    if spec.cwd is not None and not Path(spec.cwd).is_dir():
        raise NotADirectoryError(spec.cwd)
    return spec.cwd


def _http_client(
    spec: ServerSpec, read_seconds: float | None, printed: IO[str]
) -> "httpx2.AsyncClient":
    import httpx2

    async def note_refusal(response: httpx2.Response) -> None:
        if response.is_error:
            printed.seek(0)
            printed.write(f"HTTP {response.status_code} {response.reason_phrase}")
            printed.truncate()

    return httpx2.AsyncClient(
        headers=dict(spec.headers),
        timeout=httpx2.Timeout(START_SECONDS, read=read_seconds),
        event_hooks={"response": [note_refusal]},
    )


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


def _start_failure(error: Exception, printed: IO[str]) -> McpError:
    cause = _first(error)
    if isinstance(cause, McpError):
        return cause
    if isinstance(cause, ModuleNotFoundError) and (cause.name or "").partition(".")[0] == "mcp":
        return McpMissingError("the mcp package is not installed")
    printed.seek(0)
    return McpStartError(cause, printed.read()[-_PRINTED_SHOWN:].strip())


def _first(error: BaseException) -> BaseException:
    """What really went wrong inside groups of groups."""
    while isinstance(error, BaseExceptionGroup):
        error = error.exceptions[0]
    return error
