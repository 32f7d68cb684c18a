"""Floods against a real daemon: it keeps answering, and forgets them afterwards."""

import asyncio
import resource
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager
from pathlib import Path

import pytest
from websockets.asyncio.client import connect

from tests.runs.support import Watcher, wait_until
from tests.support.daemon import Daemon
from tests.support.http import request

pytestmark = [pytest.mark.anyio, pytest.mark.soak]

IDLE = 4000
SLOW = 1000


@pytest.fixture
def daemon(tmp_path: Path) -> Iterator[Daemon]:
    with Daemon(tmp_path) as running:
        yield running


@pytest.fixture(autouse=True)
def descriptors() -> Iterator[None]:
    """Our ends of the connections need as many as the daemon's."""
    before = resource.getrlimit(resource.RLIMIT_NOFILE)
    if before[1] != resource.RLIM_INFINITY and before[1] < 8192:
        pytest.skip("this account may not open enough files")
    resource.setrlimit(resource.RLIMIT_NOFILE, (max(before[0], 8192), before[1]))
    yield
    resource.setrlimit(resource.RLIMIT_NOFILE, before)


@asynccontextmanager
async def connections(
    port: int, number: int, first: bytes = b""
) -> AsyncIterator[list[asyncio.StreamWriter]]:
    """So many connections that have sent this, and whose answers nobody reads."""
    writers = []
    try:
        for _ in range(number):
            _, writer = await asyncio.open_connection("127.0.0.1", port)
            writer.transport.pause_reading()  # type: ignore[attr-defined]
            writer.write(first)
            writers.append(writer)
        yield writers
    finally:
        for writer in writers:
            writer.transport.abort()


def resident(daemon: Daemon) -> int:
    assert daemon.process is not None
    pages = Path(f"/proc/{daemon.process.pid}/statm").read_text("ascii").split()[1]
    return int(pages) * resource.getpagesize()


def open_files(daemon: Daemon) -> int:
    assert daemon.process is not None
    return len(list(Path(f"/proc/{daemon.process.pid}/fd").iterdir()))


async def at_rest(daemon: Daemon) -> tuple[int, int]:
    """Memory and descriptors of a daemon whose rooms are loaded."""
    async with connect(f"ws://127.0.0.1:{daemon.port}/ws", proxy=None) as connection:
        await Watcher(connection).ask("ping")
    assert await is_well(daemon)
    return resident(daemon), open_files(daemon)


async def is_well(daemon: Daemon) -> bool:
    return (await asyncio.to_thread(request, daemon.port, "GET", "/health")).status == 200


async def settled(daemon: Daemon, memory: int, files: int) -> None:
    """Return when memory and descriptors are what they were; the test's own limit bounds it."""
    await wait_until(lambda: open_files(daemon) <= files + 8)
    await wait_until(lambda: resident(daemon) <= memory * 1.3)


async def test_idle_and_slow_connections_leave_it_well(daemon: Daemon) -> None:
    memory, files = await at_rest(daemon)
    begun = b"POST /exec HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Length: 100000\r\n\r\n{"
    async with (
        connections(daemon.port, IDLE),
        connections(daemon.port, SLOW, begun) as slow,
    ):
        for _ in range(20):
            for writer in slow:
                writer.write(b" ")
            assert await is_well(daemon)
    assert await is_well(daemon)
    await settled(daemon, memory, files)
