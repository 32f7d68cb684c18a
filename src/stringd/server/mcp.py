"""`/mcp`: the MCP server, loaded with the first request."""

import asyncio
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Final

from stringd.server.http import asgi
from stringd.server.http.messages import CORS_HEADERS, HttpError, HttpRequest, HttpResponse
from stringd.system.files import make_private_directory
from stringd.wire.body import BodyError

if TYPE_CHECKING:
    from types import ModuleType

    from stringd.mcp.server import McpServer
    from stringd.runtime.runtime import Runtime
    from stringd.server.runs import RunsEndpoint
    from stringd.server.turns import TopicTurns

PATH: Final = "/mcp"
PREFLIGHT: Final = (
    b"Access-Control-Allow-Origin: *\r\n"
    b"Access-Control-Allow-Methods: POST, OPTIONS\r\n"
    b"Access-Control-Allow-Headers: Content-Type, X-User-Id, Accept, Mcp-Protocol-Version, "
    b"Mcp-Method, Mcp-Name, Mcp-Session-Id\r\n"
)
"""A page of this machine may speak MCP too; its protocol brings headers of its own."""


class McpEndpoint:
    """Answers `/mcp`. Nothing of the SDK is loaded before somebody asks."""

    def __init__(
        self, runtime: "Runtime", turns: "TopicTurns", runs: "RunsEndpoint", hold: float
    ) -> None:
        self._runtime = runtime
        self._turns = turns
        self._runs = runs
        self._hold = hold
        self._server: McpServer | None = None
        self._loading = asyncio.Lock()
        self._stop = asyncio.Event()
        self._serving: asyncio.Task[None] | None = None

    async def __call__(self, request: HttpRequest) -> HttpResponse:
        if request.method != "POST":
            # Without sessions there is nothing to listen to and nothing to delete.
            return HttpResponse(405, b"Allow: POST, OPTIONS\r\n" + CORS_HEADERS, b"")
        server = await self._load(request)
        return await asgi.serve(server.manager.handle_request, request)

    async def close(self) -> None:
        """End what continues for clients; the daemon is stopping."""
        self._stop.set()
        if self._server is not None:
            await self._server.close()
        if self._serving is not None:
            with suppress(asyncio.CancelledError):
                await self._serving

    async def _load(self, request: HttpRequest) -> "McpServer":
        """The server, with the request's user registered."""
        async with self._loading:
            rooms = await asyncio.to_thread(_import_rooms) if self._server is None else None
            if rooms is not None:
                server: McpServer = rooms.assemble(
                    self._runtime, self._turns, self._runs, self._hold
                )
                ready = asyncio.Event()
                self._serving = asyncio.ensure_future(self._serve(server, ready))
                await ready.wait()
                self._server = server
        assert self._server is not None
        self._know(request)
        return self._server

    async def _serve(self, server: "McpServer", ready: asyncio.Event) -> None:
        async with server.manager.run():
            ready.set()
            await self._stop.wait()

    def _know(self, request: HttpRequest) -> None:
        """Register a user nobody has seen yet, as the `string` command would."""
        from stringd.server.mcp_ports import caller

        try:
            user_id = caller(request.headers, request.query).user_id
        except BodyError as error:
            raise HttpError(400, str(error)) from error
        if self._runtime.topics.users.get(user_id) is None:
            home = Path(f"~/.string/users/{user_id}").expanduser()
            make_private_directory(home)
            self._runtime.topics.register(user_id, str(home))


def _import_rooms() -> "ModuleType":
    """Imported in a thread: the SDK takes a second, and the daemon has other clients."""
    try:
        from stringd.server import mcp_ports
    except ModuleNotFoundError as error:
        raise HttpError(
            501, f"MCP needs the package mcp: pip install mcp ({error.name} is not installed)"
        ) from error
    return mcp_ports


def preflight() -> HttpResponse:
    """The answer to a page that asks whether it may speak MCP here."""
    return HttpResponse(204, PREFLIGHT, b"")
