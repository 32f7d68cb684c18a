"""One HTTP/1.1 connection to the daemon on asyncio streams: whole requests, whole answers."""

import asyncio
import select

from stringd.client.calls import ClientCall
from stringd.client.http import (
    LOOPBACK,
    BrokenOffError,
    HttpReply,
    TransportError,
    encode_head,
    refuse_stranger,
)

MAX_LINE_BYTES = 64 * 1024


class AsyncConnection:
    """Opened on first use. Not for two requests at once; after an error it is closed."""

    def __init__(self, port: int) -> None:
        self.port = port
        self._streams: tuple[asyncio.StreamReader, asyncio.StreamWriter] | None = None
        self._loop: asyncio.AbstractEventLoop

    @property
    def usable(self) -> bool:
        """Whether an idle connection is of this event loop and still open on the other side."""
        if self._streams is None:
            return True
        reader, writer = self._streams
        elsewhere = self._loop is not asyncio.get_running_loop()
        if elsewhere or reader.at_eof() or writer.is_closing():
            return False
        # The loop may not have looked yet: an idle connection has nothing to read but its end.
        waiting = select.poll()
        waiting.register(writer.get_extra_info("socket"), select.POLLIN)
        return not waiting.poll(0)

    async def request(self, call: ClientCall) -> HttpReply:
        """Send one request and read its answer. Raises `TransportError`. Never retries."""
        head = encode_head(self.port, call.method, call.path, call.body, call.headers or {})
        try:
            reader, writer = await self._open()
            writer.write(head + (call.body or b""))
            reply = await _read_reply(reader)
        except asyncio.IncompleteReadError as error:
            self.close()
            raise TransportError(f"stringd on port {self.port} closed the connection") from error
        except (OSError, asyncio.LimitOverrunError) as error:
            self.close()
            raise TransportError(f"cannot reach stringd on port {self.port}: {error}") from error
        except ValueError as error:
            self.close()
            raise TransportError(f"port {self.port} does not speak HTTP") from error
        except BaseException:
            self.close()
            raise
        if reply.closes:
            self.close()
        return reply

    def close(self) -> None:
        """Close the connection; the next request opens a new one."""
        if self._streams is not None and not self._loop.is_closed():
            self._streams[1].close()
        self._streams = None

    async def _open(self) -> tuple[asyncio.StreamReader, asyncio.StreamWriter]:
        if self._streams is None:
            self._loop = asyncio.get_running_loop()
            self._streams = await asyncio.open_connection(LOOPBACK, self.port, limit=MAX_LINE_BYTES)
            refuse_stranger((LOOPBACK, self.port), self._streams[1].get_extra_info("sockname"))
        return self._streams


async def _read_reply(reader: asyncio.StreamReader) -> HttpReply:
    lines = (await reader.readuntil(b"\r\n\r\n")).decode("latin-1").split("\r\n")
    version, _, rest = lines[0].partition(" ")
    if not version.startswith("HTTP/1."):
        raise ValueError(lines[0])
    status = int(rest[:3])
    pairs = (line.partition(":") for line in lines[1:])
    headers = {name.lower(): value.strip() for name, _, value in pairs}
    body = await _read_body(reader, status, headers)
    framed = "content-length" in headers or "transfer-encoding" in headers
    closes = not framed or "close" in headers.get("connection", "").lower()
    return HttpReply(status, body, closes=closes)


async def _read_body(reader: asyncio.StreamReader, status: int, headers: dict[str, str]) -> bytes:
    if status in (204, 304):
        return b""
    try:
        if "chunked" in headers.get("transfer-encoding", ""):
            return await _read_chunks(reader)
        if "content-length" in headers:
            return await reader.readexactly(int(headers["content-length"]))
        return await reader.read()
    except (asyncio.IncompleteReadError, ConnectionError):
        raise BrokenOffError("the answer broke off") from None


async def _read_chunks(reader: asyncio.StreamReader) -> bytes:
    chunks = []
    while size := int((await reader.readuntil(b"\r\n")).partition(b";")[0], 16):
        chunks.append((await reader.readexactly(size + 2))[:-2])
    await reader.readuntil(b"\r\n")
    return b"".join(chunks)
