"""A child process that is spoken to in lines, on its standard input and output.

No more is read than it may send, and what it prints takes nobody's time.
"""

import asyncio
import os
import secrets
import signal
from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from contextlib import ExitStack, suppress
from typing import IO, Final

from stringd.net.mcp_budget import MAX_MESSAGE_BYTES, too_large
from stringd.system.environment import MARK
from stringd.system.processes.child import ChildProcess, spawn_child
from stringd.system.processes.orphans import adopt_orphans
from stringd.system.processes.tree import end_orphans

READ_BYTES: Final = 64 * 1024
GRACE_SECONDS: Final = 2.0
"""How long a process may take to end by itself, and then after it was asked to."""
MUTE_GRACE_SECONDS: Final = 1.0
"""How long one that never said anything may take after it was asked to end, which is at once."""
PRINTED_PAUSE: Final = 0.01
"""Between two reads of what a process prints, so that printing takes nobody's time."""


class LineProcess:
    """A child and our ends of its pipes. `spoke` is set once it has said a whole line."""

    def __init__(
        self,
        child: ChildProcess,
        stdin: asyncio.StreamWriter,
        stdout: asyncio.StreamReader,
        stderr: asyncio.StreamReader,
        pipes: tuple[asyncio.BaseTransport, ...],
        mark: str,
    ) -> None:
        self.child = child
        self._mark = mark
        self.stdout = stdout
        self.spoke = asyncio.Event()
        self._stdin = stdin
        self._stderr = stderr
        self._pipes = pipes

    async def send(self, line: bytes) -> None:
        """Send one line. Raises `OSError`."""
        self._stdin.write(line + b"\n")
        await self._stdin.drain()

    async def lines(self) -> AsyncIterator[bytes]:
        """What it says, line by line. Raises `FloodError`, `OSError`."""
        begun = bytearray()
        while data := await self.stdout.read(READ_BYTES):
            *whole, rest = data.split(b"\n")
            for line in whole:
                self.spoke.set()
                yield bytes(begun) + line
                begun.clear()
            begun += rest
            if len(begun) > MAX_MESSAGE_BYTES:
                raise too_large()

    async def print_to(self, printed: Callable[[bytes], None]) -> None:
        """Hand over what it writes to its standard error, until that ends."""
        with suppress(OSError):
            while data := await self._stderr.read(READ_BYTES):
                printed(data)
                await asyncio.sleep(PRINTED_PAUSE)

    async def end(self) -> None:
        """Let it end by itself, then ask it to, then end it with everything it started."""
        try:
            self._stdin.close()
            spoke = self.spoke.is_set()
            if not spoke or not await self._ended(GRACE_SECONDS):
                _signal_group(self.child, signal.SIGTERM)
                await self._ended(GRACE_SECONDS if spoke else MUTE_GRACE_SECONDS)
        finally:
            await _kill(self.child, self._mark)

    def close(self) -> None:
        """Close our ends of its pipes."""
        for pipe in self._pipes:
            pipe.close()

    async def _ended(self, seconds: float) -> bool:
        await asyncio.wait({self.child.exited}, timeout=seconds)
        return self.child.exited.done()


async def start_line_process(
    command: Sequence[str], environment: Mapping[str, str], cwd: str | None
) -> LineProcess:
    """Raises `OSError`, or `ValueError` for text no program can take."""
    adopt_orphans()
    mark = secrets.token_hex(16)
    theirs_in, stdin = os.pipe()
    stdout, theirs_out = os.pipe()
    stderr, theirs_err = os.pipe()
    try:
        child = spawn_child(
            command,
            environment={**environment, MARK: mark},
            cwd=cwd or os.getcwd(),  # noqa: PTH109
            files=(theirs_in, theirs_out, theirs_err),
        )
    except BaseException:
        for descriptor in (stdin, stdout, stderr):
            os.close(descriptor)
        raise
    finally:
        for descriptor in (theirs_in, theirs_out, theirs_err):
            os.close(descriptor)
    try:
        return await _connected(child, (stdin, stdout, stderr), mark)
    except BaseException:
        # Whoever asked may have given up while the pipes were being connected.
        await _kill(child, mark)
        raise


async def _connected(
    child: ChildProcess, descriptors: tuple[int, int, int], mark: str
) -> LineProcess:
    """The child with its pipes read and written by the loop; if that fails they are closed."""
    loop = asyncio.get_running_loop()
    stdin, stdout, stderr = (
        os.fdopen(descriptor, mode, 0)
        for descriptor, mode in zip(descriptors, ("wb", "rb", "rb"), strict=True)
    )
    with ExitStack() as opened:
        for file in (stdin, stdout, stderr):
            opened.callback(file.close)
        said, said_pipe = await _reader(stdout)
        opened.callback(said_pipe.close)
        printed, printed_pipe = await _reader(stderr)
        opened.callback(printed_pipe.close)
        pipe, protocol = await loop.connect_write_pipe(
            lambda: asyncio.StreamReaderProtocol(asyncio.StreamReader()), stdin
        )
        opened.pop_all()
    writer = asyncio.StreamWriter(pipe, protocol, None, loop)
    return LineProcess(child, writer, said, printed, (pipe, said_pipe, printed_pipe), mark)


async def _reader(file: IO[bytes]) -> tuple[asyncio.StreamReader, asyncio.BaseTransport]:
    reader = asyncio.StreamReader(limit=READ_BYTES)
    pipe, _ = await asyncio.get_running_loop().connect_read_pipe(
        lambda: asyncio.StreamReaderProtocol(reader), file
    )
    return reader, pipe


async def _kill(child: ChildProcess, mark: str) -> None:
    """End it with everything it started."""
    _signal_group(child, signal.SIGKILL)
    await child.exited
    # What left the group has come to us and still carries the mark.
    await end_orphans(child.pid, mark)


def _signal_group(child: ChildProcess, number: signal.Signals) -> None:
    """Reach the whole group, also when its leader has ended."""
    with suppress(ProcessLookupError, PermissionError):
        os.killpg(child.pid, number)
