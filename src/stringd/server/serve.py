"""Serving the application: loopback sockets, signals, draining."""

import asyncio
import gc
import logging
import os
import resource
import signal
import socket
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager, suppress
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Final

import uvloop

from stringd.net.addresses import claim_port
from stringd.server.app import App, RunsDoor
from stringd.server.http.connection import HttpConnection, Look
from stringd.server.http.crowd import Crowd
from stringd.server.log import EventLog
from stringd.server.unix_socket import SocketRefusedError, UnixSocket
from stringd.server.visitors import Reception
from stringd.system.keeper import Keeper
from stringd.system.lineage import Marks
from stringd.system.listen_fds import take_sockets
from stringd.system.memory import MemoryKeeper, keep_freed_memory
from stringd.system.network_walls import network_walls
from stringd.system.processes.orphans import collect_abandoned

if TYPE_CHECKING:
    from stringd.server.damage import DamageCheck
    from stringd.server.settings import DaemonSettings

logger = logging.getLogger("stringd.server")

LOOPBACK: Final = "127.0.0.1"
SHUTDOWN_GRACE: Final = 0.05
"""`POST /shutdown` is answered, then the process ends this many seconds later."""
DRAIN_SECONDS: Final = 2.0
"""How long running commands may take to finish before what they run is ended."""
MAX_DESCRIPTORS: Final = 16_384
"""More than all connections and shells need; what we start inherits it, and some programs look
through every descriptor they might have."""
DAMAGE_SECONDS: Final = 5.0
"""How often it is looked for what cannot be read any more."""
SWEEP_SECONDS: Final = 5.0
"""How often idle and stalled connections are looked for."""
SEND_BYTES: Final = 256 * 1024
"""What the kernel keeps for a client that does not read; by itself it would keep megabytes."""


class PortInUseError(Exception):
    """The port is taken; `str()` says which and why."""


def bind(port: int, given: socket.socket | None = None) -> socket.socket:
    """A listening loopback socket, or the one a service manager opened on the port.

    Raises `PortInUseError`.
    """
    listener = given or socket.socket(socket.AF_INET, socket.SOCK_STREAM)
    listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    # Connections inherit it.
    listener.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, SEND_BYTES)
    try:
        if given is None:
            listener.bind((LOOPBACK, port))
        listener.listen(1024)
    except OSError as error:
        listener.close()
        raise PortInUseError(
            f"cannot listen on {LOOPBACK}:{port}: {error.strerror}. "
            "Stop what runs there, or choose another port with STRINGD_PORT."
        ) from error
    listener.setblocking(False)
    return listener


@contextmanager
def listeners(settings: "DaemonSettings") -> Iterator[list[socket.socket]]:
    """What connections will come in by. Raises `PortInUseError` before anything is touched."""
    ports = [settings.port, *([settings.runs_port] if settings.runs_port else [])]
    with ExitStack() as bound:
        try:
            given = {
                each.getsockname(): bound.enter_context(each) for each in take_sockets(os.environ)
            }
        except OSError as error:
            raise PortInUseError(f"LISTEN_FDS cannot be used: {error.strerror}") from error
        foreign = [name for name in given if name not in [(LOOPBACK, port) for port in ports]]
        if foreign:
            raise PortInUseError(
                f"the service manager opened {foreign[0]}, and the daemon listens on "
                f"{LOOPBACK}:{settings.port} only. Change ListenStream, or the port."
            )
        yield [bound.enter_context(bind(port, given.get((LOOPBACK, port)))) for port in ports]


def run(
    settings: "DaemonSettings",
    sockets: list[socket.socket],
    ready: Callable[[App], None],
    marks: Marks | None = None,
) -> None:
    """Serve until a signal or `POST /shutdown`; `ready` is called once connections are taken.

    What has one of `marks` ends with this process, however that ends.
    """
    for listener in sockets:
        claim_port(listener.getsockname()[1])
    _allow_descriptors()
    keep_freed_memory()
    with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
        runner.run(_keep(settings, sockets, ready, marks))


def _allow_descriptors() -> None:
    """Raise the soft limit on open files, up to the hard one: each live shell takes four."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    wanted = MAX_DESCRIPTORS if hard == resource.RLIM_INFINITY else min(hard, MAX_DESCRIPTORS)
    if soft != resource.RLIM_INFINITY and soft < wanted:
        resource.setrlimit(resource.RLIMIT_NOFILE, (wanted, hard))


async def _keep(
    settings: "DaemonSettings",
    sockets: list[socket.socket],
    ready: Callable[[App], None],
    marks: Marks | None,
) -> None:
    """Serve, and leave nothing running that was started meanwhile."""
    keeper = _keeper(settings.data_dir, marks)
    try:
        await _serve(settings, sockets, ready)
    finally:
        network_walls.forget()
        if keeper is not None:
            await keeper.close()


def _keeper(data_dir: Path, marks: Marks | None) -> Keeper | None:
    if marks is not None:
        try:
            return Keeper(data_dir, marks)
        except OSError as error:
            logger.warning("what a killed daemon leaves running is not ended: %s", error)
    return None


async def _serve(
    settings: "DaemonSettings", sockets: list[socket.socket], ready: Callable[[App], None]
) -> None:
    loop = asyncio.get_running_loop()
    stop = asyncio.Event()

    def stop_soon() -> None:
        loop.call_later(SHUTDOWN_GRACE, stop.set)

    log = EventLog(
        settings.data_dir / "logs" if settings.log else None,
        as_json=settings.log_json,
        errors_only=settings.log_errors_only,
    )
    app = App(settings, log, stop_soon)
    for number in (signal.SIGINT, signal.SIGTERM):
        loop.add_signal_handler(number, stop.set)
    crowd = Crowd(loop)
    app.metrics.connections = lambda: len(crowd.connections)
    reception = Reception(log)

    upgrade = partial(app.runs.take_over, rounds=crowd.rounds)

    def connection(door: App | RunsDoor, look: Look) -> HttpConnection:
        return HttpConnection(door, crowd, upgrade, look)

    doors: list[App | RunsDoor] = [app, *(RunsDoor(app) for _ in sockets[1:])]
    servers = [
        await loop.create_server(partial(connection, door, reception.tcp), sock=listener)
        for door, listener in zip(doors, sockets, strict=True)
    ]
    unix = _unix_socket(settings.socket)
    if unix is not None:
        factory = partial(connection, app, reception.unix)
        servers.append(await loop.create_unix_server(factory, sock=unix.listener))
    memory = MemoryKeeper()
    watcher: asyncio.Task[None] | None = None
    sweeper = loop.create_task(_sweep(crowd, memory))
    log.info("server.start", port=settings.port)
    try:
        ready(app)
        await app.runs.start()
        await _announce_walls()
        check = await asyncio.to_thread(_damage_check, settings.data_dir)
        await _announce_damage(app, check)
        watcher = loop.create_task(_watch_damage(app, check))
        # What is loaded now stays: the collector need not look at it again with every request.
        gc.freeze()
        await memory.look(crowd.load)
        await stop.wait()
    finally:
        # Whatever ends the daemon, what its topics run must not outlive it.
        for server in servers:
            server.close()
        if unix is not None:
            unix.close()
        sweeper.cancel()
        if watcher is not None:
            watcher.cancel()
        app.watch.close()
        # Runs end before their watchers' sockets do, so that everyone hears how they ended.
        await app.runs.stop()
        await _drain(app, crowd)
        reception.close()
        log.info("server.stop", port=settings.port)
        log.close()


async def _announce_walls() -> None:
    """Say where agents' commands run without a sandbox; trying it now makes the first one fast."""
    from stringd.system.sandbox import Nothing, find_available, report

    walls = await find_available()
    if isinstance(walls, Nothing):
        found = report(walls)
        logger.warning(
            "%s Agents ask before most commands; to change that, %s.", found.sentence, found.fix
        )


def _damage_check(data_dir: Path) -> "DamageCheck":
    from stringd.server.damage import DamageCheck  # with the runs room, after the first answer

    return DamageCheck(data_dir)


async def _announce_damage(app: App, check: "DamageCheck") -> None:
    """Say what cannot be read, in the log and to whoever asks how the daemon is."""
    before = app.damage
    app.damage = [each.sentence for each in await asyncio.to_thread(check.look)]
    for sentence in app.damage:
        if sentence not in before:
            logger.warning("damage: %s", sentence)


async def _watch_damage(app: App, check: "DamageCheck") -> None:
    while True:
        await asyncio.sleep(DAMAGE_SECONDS)
        try:
            await _announce_damage(app, check)
        except Exception:
            # What it looks at is damaged in ways nobody thought of; the next look may succeed.
            logger.exception("looking for damage failed")


def _unix_socket(path: Path | None) -> UnixSocket | None:
    """The socket beside the port; the daemon starts without it too."""
    if path is None:
        return None
    try:
        return UnixSocket(path)
    except SocketRefusedError as error:
        logger.warning("%s", error)
        return None


async def _sweep(crowd: Crowd, memory: MemoryKeeper) -> None:
    while True:
        await asyncio.sleep(SWEEP_SECONDS)
        crowd.sweep()
        await memory.look(crowd.load)
        collect_abandoned()


async def _drain(app: App, crowd: Crowd) -> None:
    """Let running commands finish; then end what they run; then end them."""
    for connection in list(crowd.connections):
        connection.stop()
    app.runtime.services.mcp.close_unanswered()
    tasks = crowd.tasks
    await _settle(tasks)
    with suppress(TimeoutError):
        await asyncio.wait_for(app.close(), DRAIN_SECONDS * 2)
    await _settle(tasks)
    for task in tasks:
        task.cancel()
    await asyncio.gather(*tasks, return_exceptions=True)
    # One more turn, so that what was written last reaches its socket.
    await asyncio.sleep(0)


async def _settle(tasks: set[asyncio.Task[None]]) -> None:
    if tasks:
        await asyncio.wait(list(tasks), timeout=DRAIN_SECONDS)
