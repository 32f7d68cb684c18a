"""Serving the application: loopback sockets, signals, draining."""

import asyncio
import signal
import socket
from collections.abc import Callable
from contextlib import suppress
from typing import TYPE_CHECKING, Final

import uvloop
from uvicorn.config import Config
from uvicorn.server import ServerState

from stringd.server.app import App
from stringd.server.log import EventLog
from stringd.server.protocol import HttpProtocol

if TYPE_CHECKING:
    from stringd.server.settings import Settings

LOOPBACK: Final = "127.0.0.1"
SHUTDOWN_GRACE: Final = 0.05
"""`POST /shutdown` is answered, then the process ends this many seconds later."""
DRAIN_SECONDS: Final = 2.0
"""How long running commands may take to finish before what they run is ended."""
KEEP_ALIVE_SECONDS: Final = 75
MAX_FRAME_BYTES: Final = 16 * 1024 * 1024


class PortInUseError(Exception):
    """The port is taken; `str()` says which and what to do."""


def bind(port: int) -> socket.socket:
    """A listening loopback socket. Raises `PortInUseError`."""
    listener = socket.socket(socket.AF_INET, socket.SOCK_STREAM)
    listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    try:
        listener.bind((LOOPBACK, port))
        listener.listen(1024)
    except OSError as error:
        listener.close()
        raise PortInUseError(f"cannot listen on {LOOPBACK}:{port}: {error.strerror}") from error
    listener.setblocking(False)
    return listener


def run(settings: "Settings", ready: Callable[[App], None]) -> None:
    """Serve until a signal or `POST /shutdown`; `ready` is called once connections are taken.

    Raises `PortInUseError` before anything is touched.
    """
    ports = [settings.port, *([settings.runs_port] if settings.runs_port else [])]
    sockets = [bind(port) for port in ports]
    with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
        runner.run(_serve(settings, sockets, ready))


async def _serve(
    settings: "Settings", sockets: list[socket.socket], ready: Callable[[App], None]
) -> None:
    loop = asyncio.get_running_loop()
    stop = asyncio.Event()
    log = EventLog(settings.data_dir / "logs" if settings.log else None)

    def stop_soon() -> None:
        loop.call_later(SHUTDOWN_GRACE, stop.set)

    app = App(settings, log, stop_soon)
    for number in (signal.SIGINT, signal.SIGTERM):
        loop.add_signal_handler(number, stop.set)
    config = _uvicorn_config(app)
    state = ServerState()

    def connection() -> HttpProtocol:
        return HttpProtocol(config, state, {}, loop)

    await app.runs.start()
    servers = [await loop.create_server(connection, sock=listener) for listener in sockets]
    log.info("server.start", port=settings.port)
    ready(app)
    await stop.wait()
    for server in servers:
        server.close()
    # Runs end before their watchers' sockets do, so that everyone hears how they ended.
    await app.runs.stop()
    await _drain(app, state)
    log.info("server.stop", port=settings.port)
    log.close()


def _uvicorn_config(app: App) -> Config:
    config = Config(
        app,
        lifespan="off",
        log_config=None,
        access_log=False,
        http=HttpProtocol,
        ws="websockets-sansio",
        ws_max_size=MAX_FRAME_BYTES,
        timeout_keep_alive=KEEP_ALIVE_SECONDS,
        proxy_headers=False,
        interface="asgi3",
    )
    config.load()
    return config


async def _drain(app: App, state: ServerState) -> None:
    """Let running commands finish; then end what they run; then end them."""
    for connection in list(state.connections):
        connection.shutdown()
    await _settle(state)
    with suppress(TimeoutError):
        await asyncio.wait_for(app.close(), DRAIN_SECONDS * 2)
    await _settle(state)
    for task in list(state.tasks):
        task.cancel()
    await asyncio.gather(*state.tasks, return_exceptions=True)
    # One more turn, so that what was written last reaches its socket.
    await asyncio.sleep(0)


async def _settle(state: ServerState) -> None:
    if state.tasks:
        await asyncio.wait(list(state.tasks), timeout=DRAIN_SECONDS)
