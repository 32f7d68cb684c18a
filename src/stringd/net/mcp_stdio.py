"""An MCP server as a child process: lines of JSON on its standard input and output.

Unlike the SDK's own transport it reads no more than the server may send, and keeps no more of
what the server prints than can be shown.
"""

import asyncio
from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from contextlib import asynccontextmanager, suppress
from typing import TYPE_CHECKING, Any, Final

from stringd.net.line_process import READ_BYTES, LineProcess, start_line_process
from stringd.net.mcp_budget import FloodError, MessageBudget, check_message

if TYPE_CHECKING:
    from anyio.streams.memory import MemoryObjectReceiveStream, MemoryObjectSendStream

LAST_WORDS_SECONDS: Final = 0.5
"""How long what a server printed is waited for after its end; a child may hold it open."""


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

    process = await start_line_process(command, {**get_default_environment(), **environment}, cwd)
    received, read = anyio.create_memory_object_stream[Any](0)
    write, to_send = anyio.create_memory_object_stream[Any](0)
    printing = asyncio.create_task(process.print_to(printed))
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
            await process.end()
            # Its last words say why it ended.
            await asyncio.wait({printing}, timeout=LAST_WORDS_SECONDS)
        finally:
            for task in tasks:
                task.cancel()
            await asyncio.gather(*tasks, return_exceptions=True)
            process.close()
            for stream in (received, to_send):
                stream.close()


async def _receive(
    process: LineProcess,
    received: "MemoryObjectSendStream[Any]",
    flooded: Callable[[FloodError], None],
) -> None:
    """Hand over every message, in order, at the pace the budget allows."""
    import anyio

    budget = MessageBudget()
    with received:
        try:
            async for line in process.lines():
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


def _message(line: bytes) -> Any:
    """A message for the SDK's client, or what is wrong with it."""
    from mcp.shared.message import SessionMessage
    from mcp.types import jsonrpc_message_adapter

    try:
        return SessionMessage(jsonrpc_message_adapter.validate_json(line, by_name=False))
    except ValueError as error:
        return error


async def _send(
    process: LineProcess,
    to_send: "MemoryObjectReceiveStream[Any]",
    received: "MemoryObjectSendStream[Any]",
) -> None:
    try:
        async for each in to_send:
            text = each.message.model_dump_json(by_alias=True, exclude_unset=True)
            await process.send(text.encode())
    except OSError:
        # It may live on without listening; whoever waits for an answer must not.
        received.close()
