"""Daemons to test clients against: ours, and peers that answer exactly as told."""

import socket
import threading
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import NamedTuple

from tests.support.daemon import WAIT_SECONDS


class Account(NamedTuple):
    """A user of a daemon."""

    user: str
    home: Path
    port: int


class Peer(NamedTuple):
    """A scripted daemon, and the requests it has read."""

    port: int
    requests: list[bytes]


HEALTHY = b'{"ok":true,"users":1,"sessions":0}'
USERS = b'{"users":[{"id":"u","home":"/u","allowedPaths":[],"createdAt":"2026-01-01T00:00:00Z"}]}'


def answer(body: bytes, status: str = "200 OK", *headers: str) -> bytes:
    """A whole response with its length."""
    head = "\r\n".join([f"HTTP/1.1 {status}", f"Content-Length: {len(body)}", *headers])
    return head.encode() + b"\r\n\r\n" + body


@contextmanager
def peer(*exec_answers: bytes) -> Iterator[Peer]:
    """Answers health checks and users properly, and commands with these bytes, then hangs up."""
    requests: list[bytes] = []
    with socket.socket() as listening:
        listening.bind(("127.0.0.1", 0))
        listening.listen()
        port: int = listening.getsockname()[1]
        stop = threading.Event()
        thread = threading.Thread(
            target=_serve, args=(listening, list(exec_answers), requests, stop)
        )
        thread.start()
        try:
            yield Peer(port, requests)
        finally:
            stop.set()
            socket.create_connection(("127.0.0.1", port)).close()
            thread.join(WAIT_SECONDS)


def _serve(
    listening: socket.socket,
    answers: list[bytes],
    requests: list[bytes],
    stop: threading.Event,
) -> None:
    while not stop.is_set():
        connection, _ = listening.accept()
        with connection:
            request = _read_request(connection)
            if not request:
                continue
            requests.append(request)
            connection.sendall(_pick(request, answers))


def _pick(request: bytes, answers: list[bytes]) -> bytes:
    closing = "Connection: close"
    if request.startswith(b"GET /health"):
        return answer(HEALTHY, "200 OK", closing)
    if request.startswith(b"GET /users"):
        return answer(USERS, "200 OK", closing)
    return answers.pop(0)


def _read_request(connection: socket.socket) -> bytes:
    data = b""
    while b"\r\n\r\n" not in data:
        piece = connection.recv(65536)
        if not piece:
            return data
        data += piece
    head, _, body = data.partition(b"\r\n\r\n")
    for line in head.lower().split(b"\r\n"):
        if line.startswith(b"content-length:"):
            size = int(line.partition(b":")[2])
            while len(body) < size:
                body += connection.recv(65536)
    return head + b"\r\n\r\n" + body


def sse(*events: tuple[str, str]) -> bytes:
    """Events as a stream writes them."""
    return "".join(f"event: {name}\ndata: {data}\n\n" for name, data in events).encode()


HEAD = '{"ok":true,"code":null,"cmd":"/x","request_id":null,"topic":"file:main","meta":null}'
CONTENT = '"re: /x\\nfine"'


def chunked(*chunks: bytes, end: bool = True) -> bytes:
    """A chunked 200; without its end it is a broken stream."""
    framed = b"".join(b"%x\r\n%b\r\n" % (len(chunk), chunk) for chunk in chunks)
    head = b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\nConnection: close\r\n\r\n"
    return head + framed + (b"0\r\n\r\n" if end else b"")


def queue_answers() -> Sequence[tuple[bytes, str]]:
    """What a busy topic answers, and the code a client must show."""
    full = answer(
        b'{"error":"QUEUE_FULL","message":"Topic u:file:main has 16 commands queued."}',
        "429 Too Many Requests",
    )
    late = answer(
        b'{"error":"QUEUE_TIMEOUT","message":"Timed out waiting in queue."}', "504 Gateway Timeout"
    )
    return ((full, "QUEUE_FULL"), (late, "QUEUE_TIMEOUT"))


BROKEN = {
    "no content": chunked(sse(("head", HEAD))),
    "no done": chunked(sse(("head", HEAD), ("content", CONTENT))),
    "cut inside an event": chunked(sse(("head", HEAD)) + b'event: content\ndata: "re', end=False),
    "cut before the announced length": answer(sse(("head", HEAD)))[:-10],
    "nothing at all": chunked(),
    "content that is no string": chunked(sse(("head", HEAD), ("content", "7"), ("done", "{}"))),
}
