"""The way out of a sandbox whose network has only named hosts in it.

Such a sandbox has an empty network of its own. Before its command starts, a listener in that
network is handed to us through a Unix socket; what connects to it finds an HTTP proxy, which
resolves names and judges addresses as every other part of the daemon does. No packet leaves
otherwise, so programs that know no proxy have no network.
"""

import asyncio
import os
import shutil
import socket
import tempfile
from collections.abc import Iterable, Sequence
from contextlib import ExitStack, suppress
from pathlib import Path
from typing import Final, NamedTuple

from stringd.net.addresses import resolve
from stringd.net.hosts import PORTS, Host, WebOrigin, host_in
from stringd.net.proxy_request import read_request
from stringd.system.lineage import temporary_prefix
from stringd.system.sandbox import TEMPORARY, WayOut

HANDOVER_SECONDS: Final = 120.0
"""How long a sandbox that is being made may take before nobody waits for it any more."""
HEAD_SECONDS: Final = 60.0
CONNECT_SECONDS: Final = 15.0
LINGER_SECONDS: Final = 2.0
MAX_HEAD: Final = 64 * 1024
MAX_CONNECTIONS: Final = 128
_READ_BYTES: Final = 64 * 1024
_REMEMBERED: Final = 16
_LOOPBACK: Final = ("localhost", "127.0.0.1", "::1")
_running: Final = set["asyncio.Task[None]"]()


class HostListError(ValueError):
    """An entry of a list is not a host; the message says which."""


def hosts_in(entries: Iterable[str]) -> tuple[Host, ...]:
    """The hosts that a list names. Raises `HostListError`."""
    found: list[Host] = []
    for entry in entries:
        host = host_in(entry)
        if host is None or host.name in ("*", "*."):
            raise HostListError(
                f'"{entry}" is not a host: write example.com, *.example.com or 127.0.0.1:8080'
            )
        found.append(host)
    return tuple(dict.fromkeys(found))


class _RefusedError(Exception):
    """Nothing is passed on; `str()` is what the client is told."""

    def __init__(self, status: str, reason: str) -> None:
        super().__init__(reason)
        self.status = status


class HostProxy:
    """Serves one sandbox until it ends, or `close`. Made where an event loop runs.

    A name that leads to a private address is refused; who means that address lists it as a number.
    """

    def __init__(self, hosts: Sequence[Host]) -> None:
        self.hosts = tuple(hosts)
        self.refused: list[str] = []
        """The hosts that were asked for and are not on the list, the first of them."""
        self._clients = set["asyncio.Task[None]"]()
        self._directory = Path(tempfile.mkdtemp(prefix=temporary_prefix(), dir=TEMPORARY[0]))
        direct = tuple(each for each in _LOOPBACK if not any(h.name == each for h in self.hosts))
        self.way_out = WayOut(self._directory / "proxy", direct)
        self._waiting = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        self._waiting.bind(str(self.way_out.proxy))
        self._waiting.listen(1)
        self._waiting.setblocking(False)
        self._task = asyncio.create_task(self._serve())
        # Nobody else needs to hold on to it.
        _running.add(self._task)
        self._task.add_done_callback(_running.discard)

    async def close(self) -> None:
        """End every connection."""
        self._task.cancel()
        with suppress(asyncio.CancelledError):
            await asyncio.gather(self._task, return_exceptions=True)

    async def _serve(self) -> None:
        with ExitStack() as held:
            held.callback(shutil.rmtree, self._directory, ignore_errors=True)
            held.enter_context(self._waiting)
            try:
                async with asyncio.timeout(HANDOVER_SECONDS):
                    given = await self._handed_over(held)
            except (TimeoutError, OSError):
                return
            server = await asyncio.start_server(self._accepted, sock=given.listener, limit=MAX_HEAD)
            try:
                given.connection.send(b"y")
                await _readable(given.life)
            except OSError:
                return
            finally:
                server.close()
                await self._end_clients()

    async def _handed_over(self, held: ExitStack) -> "_Given":
        connection, _ = await asyncio.get_running_loop().sock_accept(self._waiting)
        held.enter_context(connection)
        await _readable(connection.fileno())
        _, descriptors, _, _ = socket.recv_fds(connection, 1, 2)
        for each in descriptors:
            held.callback(_close, each)
        if len(descriptors) != 2:
            raise OSError("nothing was handed over")
        # A copy: the server closes its own.
        listener = socket.socket(fileno=os.dup(descriptors[0]))
        if not listener.getsockopt(socket.SOL_SOCKET, socket.SO_ACCEPTCONN):
            listener.close()
            raise OSError("that is not a listener")
        listener.setblocking(False)
        return _Given(connection, listener, descriptors[1])

    async def _end_clients(self) -> None:
        clients = tuple(self._clients)
        for client in clients:
            client.cancel()
        await asyncio.gather(*clients, return_exceptions=True)

    async def _accepted(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        client = asyncio.current_task()
        assert client is not None
        self._clients.add(client)
        try:
            await self._pass_on(reader, writer)
        except _RefusedError as refusal:
            with suppress(OSError, TimeoutError):
                await _refuse(refusal, reader, writer)
        except (OSError, EOFError):
            pass
        finally:
            self._clients.discard(client)
            writer.close()

    async def _pass_on(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        if len(self._clients) > MAX_CONNECTIONS:
            raise _RefusedError("503 Service Unavailable", "too many connections at once")
        try:
            async with asyncio.timeout(HEAD_SECONDS):
                request = read_request(await reader.readuntil(b"\r\n\r\n"))
        except (TimeoutError, asyncio.LimitOverrunError, ValueError) as error:
            raise _RefusedError("400 Bad Request", f"not a request to a proxy: {error}") from error
        there, to_there = await self._connected(request.host, request.port)
        try:
            if request.opening:
                to_there.write(request.opening)
            else:
                writer.write(b"HTTP/1.1 200 Connection established\r\n\r\n")
            async with asyncio.TaskGroup() as both:
                both.create_task(_pump(reader, to_there))
                both.create_task(_pump(there, writer))
        except* OSError:
            pass
        finally:
            to_there.close()

    async def _connected(
        self, host: str, port: int
    ) -> tuple[asyncio.StreamReader, asyncio.StreamWriter]:
        where = str(Host(host, port))
        entry = next((each for each in self.hosts if _covers(each, host, port)), None)
        if entry is None:
            if len(self.refused) < _REMEMBERED and where not in self.refused:
                self.refused.append(where)
            listed = ", ".join(map(str, self.hosts)) or "no host"
            raise _RefusedError("403 Forbidden", f"{where} is not on the list ({listed})")
        try:
            found = await resolve(host, port)
        except (OSError, UnicodeError) as error:
            raise _RefusedError("502 Bad Gateway", f"cannot resolve {host}") from error
        if found.reach == "daemon":
            raise _RefusedError("403 Forbidden", f"{where} is a port of the daemon")
        if found.reach == "metadata":
            raise _RefusedError("403 Forbidden", f"{where} is a cloud metadata service")
        if found.reach != "public" and not entry.names_an_address:
            raise _RefusedError(
                "403 Forbidden", f"{where} leads to a private address, which is not on the list"
            )
        for address in found.addresses:
            with suppress(OSError, TimeoutError):
                async with asyncio.timeout(CONNECT_SECONDS):
                    return await asyncio.open_connection(address, port, limit=_READ_BYTES)
        raise _RefusedError("502 Bad Gateway", f"cannot connect to {where}")


class _Given(NamedTuple):
    """What was handed over; `life` becomes readable when the sandbox has ended."""

    connection: socket.socket
    listener: socket.socket
    life: int


def _covers(entry: Host, host: str, port: int) -> bool:
    return any(entry.covers(WebOrigin(scheme, host, port)) for scheme in PORTS)


async def _refuse(
    refusal: _RefusedError, reader: asyncio.StreamReader, writer: asyncio.StreamWriter
) -> None:
    body = f"stringd: {refusal}\n".encode("utf-8", "replace")
    head = (
        f"HTTP/1.1 {refusal.status}\r\nContent-Type: text/plain; charset=utf-8\r\n"
        f"Content-Length: {len(body)}\r\nConnection: close\r\n\r\n"
    )
    writer.write(head.encode("ascii") + body)
    writer.write_eof()
    # What the client still sends is taken: the kernel would throw the answer away otherwise.
    async with asyncio.timeout(LINGER_SECONDS):
        while await reader.read(_READ_BYTES):
            pass


async def _pump(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    """Pass on what arrives until it ends, and then the end."""
    while data := await reader.read(_READ_BYTES):
        writer.write(data)
        await writer.drain()
    if writer.can_write_eof():
        writer.write_eof()


async def _readable(descriptor: int) -> None:
    loop = asyncio.get_running_loop()
    ready = asyncio.Event()
    loop.add_reader(descriptor, ready.set)
    try:
        await ready.wait()
    finally:
        loop.remove_reader(descriptor)


def _close(descriptor: int) -> None:
    with suppress(OSError):
        os.close(descriptor)
