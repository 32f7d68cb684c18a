"""Mounted MCP servers: started on first use, stopped when idle and with the daemon.

The SDK is imported when the first server starts. Each connection lives in a task of its own,
because the SDK wants to be left by the task that entered it.
"""

import asyncio
import importlib
import logging
import tempfile
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from contextlib import asynccontextmanager
from functools import partial
from pathlib import Path
from typing import IO, TYPE_CHECKING, Any, Final, NamedTuple

from stringd.actions.errors import ActionError
from stringd.runtime.packages.mcp_app import Mount, ResourceInfo, ToolInfo

if TYPE_CHECKING:
    from mcp import Client

IDLE_SECONDS: Final = 300.0
START_SECONDS: Final = 30.0
MAX_LISTED: Final = 1000
_CONNECTION_CLOSED: Final = -32000
_SESSION_UNKNOWN: Final = -32600
"""What the SDK reports when a server on the web forgot us, after a restart for instance."""
_STDERR_SHOWN: Final = 2000
_REASON_SHOWN: Final = 300


class ServerKey(NamedTuple):
    """One running server per user, app and configuration."""

    home: str
    topic_name: str


class McpServers:
    """Every mounted server that runs."""

    def __init__(self, idle_seconds: float = IDLE_SECONDS) -> None:
        self._running: dict[ServerKey, _Server] = {}
        self._idle_seconds = idle_seconds

    async def use(
        self,
        key: ServerKey,
        mount: Mount,
        given: Mapping[str, str],
        ask: "Callable[[Client], Awaitable[Any]]",
        limit: float,
    ) -> Any:
        """Ask a server something, starting it if need be. Raises `ActionError`.

        `given` is the environment of a command, or the headers for an address.
        """
        while (server := self._running.get(key)) is not None and not server.fits(mount, given):
            await self.stop(key)
        if server is None:
            server = _Server(mount, dict(given), self._idle_seconds)
            self._running[key] = server
            server.start(partial(self._forget, key, server))
        return await server.ask(ask, limit)

    async def stop(self, key: ServerKey) -> None:
        server = self._running.pop(key, None)
        if server is not None:
            await server.stop()

    async def stop_app(self, home: str, name: str) -> None:
        """Stop every configuration of an app."""
        keys = [k for k in self._running if k.home == home and k.topic_name.split(":")[0] == name]
        await asyncio.gather(*(self.stop(key) for key in keys))

    async def close(self) -> None:
        """Stop them all; the daemon is stopping."""
        await asyncio.gather(*(self.stop(key) for key in list(self._running)))

    async def ended(self) -> None:
        """Return when those that run now have stopped by themselves."""
        tasks = [server.task for server in self._running.values() if server.task is not None]
        if tasks:
            await asyncio.wait(tasks)

    @property
    def running(self) -> int:
        """How many servers run."""
        return len(self._running)

    def _forget(self, key: ServerKey, server: "_Server") -> None:
        if self._running.get(key) is server:
            del self._running[key]


class _Server:
    """One connection, kept open by its own task until nobody used it for a while."""

    def __init__(self, mount: Mount, given: dict[str, str], idle_seconds: float) -> None:
        self._mount = mount
        self._given = given
        self._idle_seconds = idle_seconds
        self._ready: asyncio.Future[Client] = asyncio.get_running_loop().create_future()
        self._used = asyncio.Event()
        self._asking = 0
        self._lost = False
        self.task: asyncio.Task[None] | None = None

    def fits(self, mount: Mount, given: Mapping[str, str]) -> bool:
        """Whether it can be asked, and was started the way it would be started now."""
        ours = self._mount
        same = (mount.command, mount.url, mount.cwd) == (ours.command, ours.url, ours.cwd)
        return same and self._given == given and not self._lost

    def start(self, ended: Callable[[], None]) -> None:
        self.task = asyncio.create_task(self._live())
        self.task.add_done_callback(lambda _task: ended())

    async def stop(self) -> None:
        if self.task is not None and not self.task.done():
            self.task.cancel()
            await asyncio.wait({self.task}, timeout=START_SECONDS)

    async def ask(self, ask: "Callable[[Client], Awaitable[Any]]", limit: float) -> Any:
        self._asking += 1
        try:
            async with asyncio.timeout(limit):
                client = await asyncio.shield(self._ready)
                return await ask(client)
        except TimeoutError as error:
            raise ActionError(
                "LOAD_ERROR", f"The MCP server did not answer within {limit:g} s."
            ) from error
        except ActionError:
            raise
        except Exception as error:
            self._lost = self._lost or _is_lost(error, self._mount)
            # Not asked again: nobody knows how far it came.
            after = ". It is started anew with the next call." if self._lost else ""
            reason = _reason(error)
            raise ActionError("LOAD_ERROR", f"The MCP server failed: {reason}{after}") from error
        finally:
            self._asking -= 1
            self._used.set()

    async def _live(self) -> None:
        with tempfile.TemporaryFile("w+", encoding="utf-8", errors="replace") as complaints:
            try:
                # More than a second of imports, which nobody else should wait for.
                await asyncio.to_thread(importlib.import_module, "mcp")
                # What it has to say reaches the caller; its traces are for nobody.
                logging.getLogger("mcp").setLevel(logging.CRITICAL)
                async with (
                    asyncio.timeout(START_SECONDS) as starting,
                    self._client(complaints) as client,
                ):
                    starting.reschedule(None)
                    self._ready.set_result(client)
                    await self._until_idle()
            except Exception as error:  # noqa: BLE001 - a third party's program may fail in any way
                if not self._ready.done():
                    self._ready.set_exception(_start_failure(error, complaints))
                    # Whoever asked reads it; nobody may be left to.
                    self._ready.exception()

    async def _until_idle(self) -> None:
        while True:
            self._used.clear()
            try:
                async with asyncio.timeout(self._idle_seconds):
                    await self._used.wait()
            except TimeoutError:
                if not self._asking:
                    return

    @asynccontextmanager
    async def _client(self, complaints: IO[str]) -> "AsyncIterator[Client]":
        from mcp import Client, StdioServerParameters, stdio_client

        if self._mount.url is not None:
            import httpx2
            from mcp.client.streamable_http import streamable_http_client

            async def note_refusal(response: httpx2.Response) -> None:
                if response.is_error:
                    complaints.seek(0)
                    complaints.write(f"HTTP {response.status_code} {response.reason_phrase}")
                    complaints.truncate()

            patience = httpx2.Timeout(START_SECONDS, read=None)
            hooks = {"response": [note_refusal]}
            async with (
                httpx2.AsyncClient(
                    headers=self._given, timeout=patience, event_hooks=hooks
                ) as http,
                Client(streamable_http_client(self._mount.url, http_client=http)) as client,
            ):
                yield client
            return
        program, *arguments = self._mount.command
        parameters = StdioServerParameters(
            command=program, args=arguments, env=self._given, cwd=_directory(self._mount)
        )
        async with Client(stdio_client(parameters, complaints)) as client:  # type: ignore[arg-type]
            yield client


def _directory(mount: Mount) -> str | None:
    """Where a command runs. Raises `NotADirectoryError`."""
    if mount.cwd is not None and not Path(mount.cwd).is_dir():
        raise NotADirectoryError(f"{mount.cwd}, where it was installed from, is gone")
    return mount.cwd


async def describe_server(client: "Client") -> tuple[list[ToolInfo], list[ResourceInfo]]:
    """What a server offers."""
    tools: list[ToolInfo] = []
    cursor: str | None = None
    while len(tools) < MAX_LISTED:
        page = await client.list_tools(cursor=cursor)
        tools += [
            ToolInfo(tool.name, tool.description or tool.title or "", dict(tool.input_schema))
            for tool in page.tools
        ]
        cursor = page.next_cursor
        if not cursor:
            break
    resources: list[ResourceInfo] = []
    if client.server_capabilities.resources is not None:
        listed = await client.list_resources()
        resources = [
            ResourceInfo(str(each.uri), each.title or each.name, each.description or "")
            for each in listed.resources[:MAX_LISTED]
        ]
    return tools, resources


async def call_tool(client: "Client", name: str, arguments: dict[str, Any]) -> str:
    """A tool's answer as text. Raises `ActionError` when the tool reports a failure."""
    import msgspec

    result = await client.call_tool(name, arguments)
    text = "\n".join(_part(part) for part in result.content)
    if not text and result.structured_content is not None:
        text = msgspec.json.encode(result.structured_content).decode()
    if result.is_error:
        raise ActionError("LOAD_ERROR", text or f"The tool {name} failed.")
    return text


async def read_resource(client: "Client", uri: str) -> str:
    """A resource as text."""
    result = await client.read_resource(uri)
    return "\n".join(_part(part) for part in result.contents)


def _part(part: Any) -> str:
    """One piece of an answer; what is not text is described."""
    text = getattr(part, "text", None)
    if isinstance(text, str):
        return text
    inner = getattr(part, "resource", None)
    if inner is not None:
        return _part(inner)
    kind = getattr(part, "mime_type", None) or getattr(part, "type", "data")
    data = getattr(part, "data", None) or getattr(part, "blob", None)
    if isinstance(data, str):
        return f"[{kind}, {len(data) * 3 // 4} bytes]"
    return f"[{kind}: {getattr(part, 'uri', '')}]"


def _is_lost(error: Exception, mount: Mount) -> bool:
    """Whether a connection can carry no further calls."""
    code, message = getattr(error, "code", None), getattr(error, "message", None)
    if mount.url is not None:
        return code in (_CONNECTION_CLOSED, _SESSION_UNKNOWN)
    # Programs use this number for failures of their own, too.
    return code == _CONNECTION_CLOSED and message == "Connection closed"


def _start_failure(error: Exception, complaints: IO[str]) -> ActionError:
    if isinstance(error, ModuleNotFoundError) and (error.name or "").partition(".")[0] == "mcp":
        return ActionError(
            "LOAD_ERROR", "MCP apps need an extra package: pip install 'stringd[mcp]'"
        )
    complaints.seek(0)
    printed = complaints.read()[-_STDERR_SHOWN:].strip()
    message = f"The MCP server could not be started: {_reason(error)}"
    return ActionError("LOAD_ERROR", f"{message}\n{printed}" if printed else message)


def _reason(error: BaseException) -> str:
    """What really went wrong inside groups of groups."""
    while isinstance(error, BaseExceptionGroup):
        error = error.exceptions[0]
    match error:
        case TimeoutError():
            return f"no answer within {START_SECONDS:g} s"
        case FileNotFoundError():
            return "there is no such program"
    first, *_ = str(error).splitlines() or [""]
    return first[:_REASON_SHOWN] or type(error).__name__
