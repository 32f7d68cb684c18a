"""Floods against a daemon of this machine, bounded in count and time.

`python -m bench.floods <name> <port> <seconds>` prints `begun` when the flood is at its height.
"""

import asyncio
import json
import sys
from collections.abc import Awaitable, Callable
from contextlib import suppress

Streams = tuple[asyncio.StreamReader, asyncio.StreamWriter]

HOST = "127.0.0.1"
UPGRADE = (
    b"GET /ws HTTP/1.1\r\nHost: 127.0.0.1\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n"
    b"Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\nSec-WebSocket-Version: 13\r\n\r\n"
)
MEBIBYTE = 1024 * 1024


async def connections(port: int, number: int) -> list[Streams]:
    found = []
    for _ in range(number):
        with suppress(OSError):
            found.append(await asyncio.open_connection(HOST, port))
    return found


def post(body: bytes, *headers: bytes) -> bytes:
    lines = (b"POST /exec HTTP/1.1", b"Host: 127.0.0.1", b"X-User-Id: bench", *headers)
    return b"\r\n".join((*lines, b"Content-Length: %d" % len(body), b"", body))


async def idle(port: int, seconds: float) -> None:
    """4,000 connections that ask nothing."""
    found = await connections(port, 4000)
    begun()
    await asyncio.sleep(seconds)
    close(found)


async def slow(port: int, seconds: float) -> None:
    """1,000 connections that send a byte of a request now and then."""
    found = await connections(port, 1000)
    for _, writer in found:
        writer.write(b"POST /exec HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Length: 100000\r\n\r\n{")
    begun()
    for _ in range(round(seconds)):
        await asyncio.sleep(1)
        for _, writer in found:
            writer.write(b" ")
    close(found)


async def pipelined(port: int, seconds: float) -> None:
    """8 connections that send packets of thousands of requests."""
    packet = b"GET /nothing HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n" * 5000

    async def send(streams: Streams) -> None:
        reader, writer = streams
        reading = asyncio.create_task(drop(reader))
        with suppress(OSError):
            while True:
                writer.write(packet)
                await writer.drain()
        reading.cancel()

    await together(port, 8, seconds, send)


async def bodies(port: int, seconds: float) -> None:
    """16 connections that send 8 MiB at a time."""
    request = post(json.dumps({"cmd": "/info", "pad": "x" * 8 * MEBIBYTE}).encode())

    async def send(streams: Streams) -> None:
        reader, writer = streams
        reading = asyncio.create_task(drop(reader))
        with suppress(OSError):
            while True:
                writer.write(request)
                await writer.drain()
                await asyncio.sleep(0.2)
        reading.cancel()

    await together(port, 16, seconds, send)


async def foreign(port: int, seconds: float) -> None:
    """Pages of somebody else that send 8 MiB, again and again."""
    request = post(b"x" * 8 * MEBIBYTE, b"Origin: https://elsewhere.example")
    end = asyncio.get_running_loop().time() + seconds
    begun()
    while asyncio.get_running_loop().time() < end:
        for reader, writer in await connections(port, 4):
            with suppress(OSError):
                writer.write(request)
                await writer.drain()
                await reader.read(4096)
            writer.close()


async def unread(port: int, seconds: float) -> None:
    """64 connections that ask for a large document many times and read nothing."""
    request = post(json.dumps({"cmd": "/open large.md"}).encode())
    found = await connections(port, 64)
    for _, writer in found:
        writer.transport.pause_reading()  # type: ignore[attr-defined]
        writer.write(request * 20)
    begun()
    await asyncio.sleep(seconds)
    close(found)


async def unread_frames(port: int, seconds: float) -> None:
    """64 WebSocket clients that ask without reading the answers."""
    payload = json.dumps({"type": "ping", "requestId": "x" * 20_000}).encode()
    frame = b"\x81\xfe" + len(payload).to_bytes(2, "big") + bytes(4) + payload
    found = await connections(port, 64)
    for _, writer in found:
        writer.transport.pause_reading()  # type: ignore[attr-defined]
        writer.write(UPGRADE)
    sending = [asyncio.ensure_future(_send_frames(writer, frame)) for _, writer in found]
    begun()
    await asyncio.sleep(seconds)
    for task in sending:
        task.cancel()
    close(found)


async def _send_frames(writer: asyncio.StreamWriter, frame: bytes) -> None:
    with suppress(OSError):
        for _ in range(2000):
            writer.write(frame)
            await writer.drain()


async def together(
    port: int, number: int, seconds: float, send: Callable[[Streams], Awaitable[None]]
) -> None:
    """Let so many connections do the same for a while."""
    found = await connections(port, number)
    tasks = [asyncio.ensure_future(send(streams)) for streams in found]
    begun()
    await asyncio.sleep(seconds)
    for task in tasks:
        task.cancel()
    await asyncio.gather(*tasks, return_exceptions=True)
    close(found)


async def drop(reader: asyncio.StreamReader) -> None:
    while await reader.read(MEBIBYTE):
        pass


def begun() -> None:
    print("begun", flush=True)


def close(found: list[Streams]) -> None:
    for _, writer in found:
        writer.transport.abort()


FLOODS: dict[str, Callable[[int, float], Awaitable[None]]] = {
    "4,000 idle connections": idle,
    "1,000 slow requests": slow,
    "packets of 5,000 requests": pipelined,
    "8 MiB bodies": bodies,
    "8 MiB bodies of a foreign page": foreign,
    "answers nobody reads": unread,
    "WebSocket answers nobody reads": unread_frames,
}


async def _flood(name: str, port: int, seconds: float) -> None:
    await FLOODS[name](port, seconds)


if __name__ == "__main__":
    asyncio.run(_flood(sys.argv[1], int(sys.argv[2]), float(sys.argv[3])))
