"""An MCP server as a child process: lines of JSON on its standard input and output.

Unlike the SDK's own transport it reads no more than the server may send, and keeps no more of
what the server prints than can be shown.
"""

import asyncio
import os
import signal
from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from contextlib import asynccontextmanager, suppress
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from stringd.net.mcp_budget import (
    MAX_MESSAGE_BYTES,
    FloodError,
    MessageBudget,
    check_message,
    too_large,
)
from stringd.system.processes.child import ChildProcess, spawn_child

if TYPE_CHECKING:
    from anyio.streams.memory import MemoryObjectReceiveStream, MemoryObjectSendStream

READ_BYTES: Final = 64 * 1024
GRACE_SECONDS: Final = 2.0
"""How long a server may take to end by itself, and then after it was asked to."""
MUTE_GRACE_SECONDS: Final = 1.0
"""How long one that never said anything may take after it was asked to end, which is at once."""
LAST_WORDS_SECONDS: Final = 0.5
"""How long what a server printed is waited for after its end; a child may hold it open."""
PRINTED_PAUSE: Final = 0.01
"""Between two reads of what a server prints, so that printing takes nobody's time."""


@asynccontextmanager
async def stdio_transport(
    command: Sequence[str],
    environment: Mapping[str, str],
    cwd: str | None,
    *,
    printed: Callable[[bytes], None],
    flooded: Callable[[FloodError], None],
) -> AsyncIterator[tuple[Any, Any]]:
    """The streams the SDK's client reads from and writes to. Raises `OSError`, `ValueError`.

    `printed` gets what the server writes to its standard error, `flooded` why it is read no more.
    """
    import anyio
    from mcp.client.stdio import get_default_environment

    process = await _start(command, {**get_default_environment(), **environment}, cwd)
    received, read = anyio.create_memory_object_stream[Any](0)
    write, to_send = anyio.create_memory_object_stream[Any](0)
    printing = asyncio.create_task(_print(process, printed))
    tasks = [
        printing,
        asyncio.create_task(_receive(process, received, flooded)),
        asyncio.create_task(_send(process, to_send, received)),
    ]
    try:
        yield read, write
    finally:
        for stream in (read, write):
            stream.close()
        try:
            await _end(process)
            # Its last words say why it ended.
            await asyncio.wait({printing}, timeout=LAST_WORDS_SECONDS)
        finally:
            for task in tasks:
                task.cancel()
            await asyncio.gather(*tasks, return_exceptions=True)
            process.close()
            for stream in (received, to_send):
                stream.close()


class _ServerProcess(NamedTuple):
    """A child and our ends of its pipes."""

    child: ChildProcess
    stdin: asyncio.StreamWriter
    stdout: asyncio.StreamReader
    stderr: asyncio.StreamReader
    pipes: tuple[asyncio.BaseTransport, ...]
    spoke: asyncio.Event
    """Set once it has said a whole line."""

    def close(self) -> None:
        for pipe in self.pipes:
            pipe.close()


async def _start(
    command: Sequence[str], environment: Mapping[str, str], cwd: str | None
) -> _ServerProcess:
    """Raises `OSError`, or `ValueError` for text no program can take."""
    theirs_in, stdin = os.pipe()
    stdout, theirs_out = os.pipe()
    stderr, theirs_err = os.pipe()
    try:
        child = spawn_child(
            command,
            environment=environment,
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
    loop = asyncio.get_running_loop()
    said, said_pipe = await _reader(stdout)
    printed, printed_pipe = await _reader(stderr)
    pipe, protocol = await loop.connect_write_pipe(
        lambda: asyncio.StreamReaderProtocol(asyncio.StreamReader()), os.fdopen(stdin, "wb", 0)
    )
    writer = asyncio.StreamWriter(pipe, protocol, None, loop)
    pipes = (pipe, said_pipe, printed_pipe)
    return _ServerProcess(child, writer, said, printed, pipes, asyncio.Event())


async def _reader(descriptor: int) -> tuple[asyncio.StreamReader, asyncio.BaseTransport]:
    reader = asyncio.StreamReader(limit=READ_BYTES)
    pipe, _ = await asyncio.get_running_loop().connect_read_pipe(
        lambda: asyncio.StreamReaderProtocol(reader), os.fdopen(descriptor, "rb", 0)
    )
    return reader, pipe


async def _receive(
    process: _ServerProcess,
    received: "MemoryObjectSendStream[Any]",
    flooded: Callable[[FloodError], None],
) -> None:
    """Hand over every message, in order, at the pace the budget allows."""
    import anyio

    budget = MessageBudget()
    with received:
        try:
            async for line in _lines(process):
                process.spoke.set()
                check_message(line)
                await received.send(_message(line))
                if pause := budget.spend():
                    await asyncio.sleep(pause)
        except FloodError as error:
            flooded(error)
            return
        except (anyio.BrokenResourceError, anyio.ClosedResourceError, OSError):
            pass
    # A server that is still writing could not end.
    with suppress(OSError):
        while await process.stdout.read(READ_BYTES):
            pass


async def _lines(process: _ServerProcess) -> AsyncIterator[bytes]:
    begun = bytearray()
    while data := await process.stdout.read(READ_BYTES):
        *whole, rest = data.split(b"\n")
        for line in whole:
            yield bytes(begun) + line
            begun.clear()
        begun += rest
        if len(begun) > MAX_MESSAGE_BYTES:
            raise too_large()


def _message(line: bytes) -> Any:
    """A message for the SDK's client, or what is wrong with it."""
    from mcp.shared.message import SessionMessage
    from mcp.types import jsonrpc_message_adapter

    try:
        return SessionMessage(jsonrpc_message_adapter.validate_json(line, by_name=False))
    except ValueError as error:
        return error


async def _send(
    process: _ServerProcess,
    to_send: "MemoryObjectReceiveStream[Any]",
    received: "MemoryObjectSendStream[Any]",
) -> None:
    try:
        async for each in to_send:
            text = each.message.model_dump_json(by_alias=True, exclude_unset=True)
            process.stdin.write(text.encode() + b"\n")
            await process.stdin.drain()
    except OSError:
        # It may live on without listening; whoever waits for an answer must not.
        received.close()


async def _print(process: _ServerProcess, printed: Callable[[bytes], None]) -> None:
    with suppress(OSError):
        while data := await process.stderr.read(READ_BYTES):
            printed(data)
            await asyncio.sleep(PRINTED_PAUSE)


async def _end(process: _ServerProcess) -> None:
    """Let the server end by itself, then ask it to, then end it with everything it started."""
    try:
        process.stdin.close()
        spoke = process.spoke.is_set()
        if not spoke or not await _ended(process, GRACE_SECONDS):
            _signal(process, signal.SIGTERM)
            await _ended(process, GRACE_SECONDS if spoke else MUTE_GRACE_SECONDS)
    finally:
        _signal(process, signal.SIGKILL)
        await process.child.exited


async def _ended(process: _ServerProcess, seconds: float) -> bool:
    await asyncio.wait({process.child.exited}, timeout=seconds)
    return process.child.exited.done()


def _signal(process: _ServerProcess, number: signal.Signals) -> None:
    """Reach the whole group, also when its leader has ended."""
    with suppress(ProcessLookupError, PermissionError):
        os.killpg(process.child.pid, number)
