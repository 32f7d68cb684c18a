"""Bash topics against what the same machine can do without us, in the same run."""

import asyncio
import os
import pty
import re
import resource
import select
import statistics
import tempfile
import time
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager
from pathlib import Path

import uvloop

from bench.table import Row
from stringd.runtime.shell.command import ShellLimits
from stringd.runtime.shell.shell import Shell

TITLE = "Bash topics"

ROUND_TRIPS = 400
MEGABYTES = 100
SHELLS = 200
END = re.compile(rb"end(\d+) (\d+) (.*)\r\n")


def rows() -> Iterator[Row]:
    yield from uvloop.run(_all_rows())


async def _all_rows() -> list[Row]:
    return [await _round_trip(), *await _large_output(), await _many_shells()]


async def _round_trip() -> Row:
    """Ours and the bare one take turns, so that a busy moment of the machine hits both."""
    bare = BareBash()
    await bare.run("true")
    ours: list[float] = []
    peers: list[float] = []
    async with _shell() as shell:
        for _ in range(ROUND_TRIPS):
            ours.append(await _timed(shell, "true"))
            started = time.perf_counter()
            await bare.run("true")
            peers.append(time.perf_counter() - started)
    bare.close()
    mine, peer = statistics.median(ours), statistics.median(peers)
    return Row(
        "round trip of `true`, median",
        f"{mine * 1e6:.0f} µs",
        f"{peer * 1e6:.0f} µs, bare bash on a terminal, same loop, with a time limit",
        mine / peer,
        "≤ 2",
    )


class BareBash:
    """The least usable co-process: a line and a marker in, text up to the marker out."""

    def __init__(self) -> None:
        self._child, self._terminal = pty.fork()
        if self._child == 0:
            os.execv("/bin/bash", ["bash", "--noprofile", "--norc", "--noediting"])
        self._loop = asyncio.get_running_loop()
        self._loop.add_reader(self._terminal, self._readable)
        self._seen = b""
        self._count = 0
        self._found: asyncio.Future[tuple[str, int, str]] = self._loop.create_future()
        os.write(self._terminal, b"PS1= PS2=; stty -echo\n")

    async def run(self, text: str) -> tuple[str, int, str]:
        """Output, status and directory."""
        self._count += 1
        self._seen = b""
        self._found = self._loop.create_future()
        os.write(self._terminal, f'{text}; echo end{self._count} $? "$PWD"\n'.encode())
        return await asyncio.wait_for(self._found, 60)

    def close(self) -> None:
        self._loop.remove_reader(self._terminal)
        os.kill(self._child, 9)
        os.waitpid(self._child, 0)
        os.close(self._terminal)

    def _readable(self) -> None:
        self._seen += os.read(self._terminal, 65536)
        match = END.search(self._seen)
        if match is not None and int(match[1]) == self._count and not self._found.done():
            output = self._seen[: match.start()].decode(errors="replace")
            self._found.set_result((output, int(match[2]), match[3].decode()))


async def _large_output() -> list[Row]:
    with tempfile.TemporaryDirectory() as directory:
        path = Path(directory) / "text"
        line = b"0123456789 abcdefghij ABCDEFGHIJ 0123456789 abcdefghij ABCDEFGHIJ 123\n"
        # In small pieces: this process's own peak is what is measured below.
        with path.open("wb") as file:
            for _ in range(MEGABYTES):
                file.write(line * (1_000_000 // len(line)))
        ours: list[float] = []
        peers: list[float] = []
        async with _shell() as shell:
            before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
            for _ in range(3):
                ours.append(await _timed(shell, f"cat {path}"))
                peers.append(_cat_through_terminal(path))
            grown = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before
    mine, peer = min(ours), min(peers)
    return [
        Row(
            f"{MEGABYTES} MB of output, speed",
            f"{MEGABYTES / mine:.0f} MB/s",
            f"{MEGABYTES / peer:.0f} MB/s, `cat` through a terminal",
            peer / mine,
            "≥ 0.5",
        ),
        Row(f"{MEGABYTES} MB of output, memory", f"+{grown / 1024:.1f} MB", "–", None, "bounded"),
    ]


def _cat_through_terminal(path: Path) -> float:
    started = time.perf_counter()
    child, terminal = pty.fork()
    if child == 0:
        os.execv("/bin/sh", ["sh", "-c", f"stty -onlcr; exec cat {path}"])
    os.set_blocking(terminal, False)
    poll = select.poll()
    poll.register(terminal, select.POLLIN)
    while _drained(terminal):
        poll.poll()
    os.waitpid(child, 0)
    os.close(terminal)
    return time.perf_counter() - started


def _drained(terminal: int) -> bool:
    """Read what is there; False when the other side is closed."""
    try:
        while True:
            os.read(terminal, 65536)
    except BlockingIOError:
        return True
    except OSError:
        return False


async def _many_shells() -> Row:
    """200 live shells, asked one by one, then all at once."""
    shells = [await _started() for _ in range(SHELLS)]
    try:
        alone = statistics.mean([await _timed(shell, "true") for shell in shells])
        started = time.perf_counter()
        slowest = max(await asyncio.gather(*(_timed(shell, "true") for shell in shells)))
        together = time.perf_counter() - started
    finally:
        await asyncio.gather(*(shell.close() for shell in shells))
    floor = alone * SHELLS / (os.cpu_count() or 1)
    return Row(
        f"{SHELLS} live shells asked at once, slowest answer",
        f"{slowest * 1e3:.1f} ms (all {together * 1e3:.1f} ms)",
        f"{floor * 1e3:.1f} ms, one by one × {SHELLS} / cores",
        slowest / floor,
        "< 2",
    )


async def _timed(shell: Shell, text: str) -> float:
    started = time.perf_counter()
    reply = await shell.run(text)
    assert reply.exit_code == 0, reply
    return time.perf_counter() - started


async def _started() -> Shell:
    home = tempfile.gettempdir()
    shell = Shell.launch(home=home, cwd=home, base=os.environ, limits=ShellLimits(quiet=60.0))
    await shell.ready()
    return shell


@asynccontextmanager
async def _shell() -> AsyncIterator[Shell]:
    shell = await _started()
    try:
        yield shell
    finally:
        await shell.close()
