"""The floor of Python: a bare httptools/uvloop loop that answers the three events as constants."""

import asyncio
import sys

import httptools
import uvloop

BODY = (
    b'event: head\ndata: {"ok":true,"code":null,"cmd":"/info","request_id":null,'
    b'"user_id":"bench","topic":"file:main","topic_type":"file","meta":null}\n\n'
    b'event: content\ndata: "re: /info\\nSession info\\n---\\ncwd:       ~/\\n'
    b'file:      (none open)\\nhistory:   0 entries\\nstring:    v0.1.0"\n\n'
    b"event: done\ndata: {}\n\n"
)
ANSWER = (
    b"HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nCache-Control: no-cache\r\n"
    b"Connection: keep-alive\r\nX-Accel-Buffering: no\r\nAccess-Control-Allow-Origin: *\r\n"
    b"Access-Control-Allow-Headers: Content-Type, X-User-Id\r\n"
    b"Content-Length: %d\r\n\r\n%b" % (len(BODY), BODY)
)


class Floor(asyncio.Protocol):
    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self.write = transport.write  # type: ignore[attr-defined]
        self.parser = httptools.HttpRequestParser(self)

    def data_received(self, data: bytes) -> None:
        self.parser.feed_data(data)

    def on_message_complete(self) -> None:
        self.write(ANSWER)


async def main() -> None:
    loop = asyncio.get_running_loop()
    server = await loop.create_server(Floor, "127.0.0.1", int(sys.argv[1]))
    await server.serve_forever()


if __name__ == "__main__":
    with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
        runner.run(main())
