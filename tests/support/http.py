"""Talking HTTP to a daemon: whole requests with `http.client`, and bytes on a bare socket."""

import http.client
import json
import os
import socket
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path
from types import TracebackType
from typing import Any, NamedTuple, Self

from tests.support.daemon import WAIT_SECONDS

CORS = {
    "Access-Control-Allow-Origin": "*",
    "Access-Control-Allow-Headers": "Content-Type, X-User-Id",
}


class Answer(NamedTuple):
    """A whole response; header names are as they were sent."""

    status: int
    headers: dict[str, str]
    body: bytes

    @property
    def json(self) -> Any:
        return json.loads(self.body)

    @property
    def events(self) -> list[tuple[str, Any]]:
        return events(self.body)


def events(body: bytes) -> list[tuple[str, Any]]:
    """Names and decoded data of an event stream that is written exactly as the protocol says."""
    found = []
    assert body.endswith(b"\n\n")
    for block in body.decode("utf-8").removesuffix("\n\n").split("\n\n"):
        name, data = block.split("\n")
        assert name.startswith("event: ")
        assert data.startswith("data: ")
        found.append((name.removeprefix("event: "), json.loads(data.removeprefix("data: "))))
    return found


def request(
    port: int,
    method: str,
    path: str,
    body: object = None,
    headers: Mapping[str, str] | None = None,
) -> Answer:
    """One request on its own connection. A body that is not bytes is sent as JSON."""
    sent = dict(headers or {})
    data = None
    if body is not None:
        data = body if isinstance(body, bytes) else json.dumps(body).encode()
        sent.setdefault("Content-Type", "application/json")
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=WAIT_SECONDS)
    try:
        connection.request(method, path, data, sent)
        response = connection.getresponse()
        return Answer(response.status, dict(response.getheaders()), response.read())
    finally:
        connection.close()


class Wire:
    """A bare connection. `receive()` reads one response, `rest()` all bytes until the end."""

    def __init__(self, port: int) -> None:
        self.socket = socket.create_connection(("127.0.0.1", port), timeout=WAIT_SECONDS)
        self._reader = self.socket.makefile("rb")

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.close()

    def send(self, data: bytes) -> Self:
        self.socket.sendall(data)
        return self

    def end(self) -> Self:
        """Say that nothing more will be sent."""
        self.socket.shutdown(socket.SHUT_WR)
        return self

    def head(self) -> tuple[int, dict[str, str]]:
        """The status and headers of the next response."""
        status = self._reader.readline()
        assert status, "the connection ended before a response"
        assert status.startswith(b"HTTP/1.1 ")
        headers = {}
        while (line := self._reader.readline()) != b"\r\n":
            name, _, value = line.decode("latin-1").rstrip("\r\n").partition(": ")
            headers[name] = value
        return int(status.split()[1]), headers

    def receive(self) -> Answer:
        status, headers = self.head()
        return Answer(status, headers, self.body(headers))

    def body(self, headers: dict[str, str]) -> bytes:
        """The body that follows these headers."""
        if headers.get("Transfer-Encoding") == "chunked":
            chunks = []
            while size := int(self._reader.readline(), 16):
                chunks.append(self._reader.read(size))
                self._reader.readline()
            self._reader.readline()
            return b"".join(chunks)
        return self._reader.read(int(headers.get("Content-Length", "0")))

    def rest(self) -> bytes:
        return self._reader.read()

    def close(self) -> None:
        self._reader.close()
        self.socket.close()


def message(
    method: str, path: str, body: bytes | None = None, headers: Mapping[str, str] | None = None
) -> bytes:
    """The bytes of a request to this machine."""
    sent = {"Host": "127.0.0.1", **(headers or {})}
    if body is not None:
        sent = {"Content-Type": "application/json", "Content-Length": str(len(body)), **sent}
    lines = [f"{method} {path} HTTP/1.1", *(f"{name}: {value}" for name, value in sent.items())]
    return "\r\n".join([*lines, "", ""]).encode() + (body or b"")


class User:
    """A registered user of a daemon, with a home of its own."""

    def __init__(self, port: int, user_id: str, home: Path) -> None:
        self.port = port
        self.id = user_id
        self.home = home
        home.mkdir(parents=True, exist_ok=True)
        assert request(port, "POST", "/users", {"id": user_id, "home": str(home)}).status == 200

    def post(self, **fields: object) -> Answer:
        """`POST /exec` with these fields."""
        return request(self.port, "POST", "/exec", fields, {"X-User-Id": self.id})

    def exec(self, cmd: str, topic: str = "file:main") -> tuple[dict[str, Any], str]:
        """Run a command; its head and its content without the `re:` line."""
        answer = self.post(cmd=cmd, topic=topic)
        assert answer.status == 200, answer
        (_, head), (_, content), (_, _) = answer.events
        return head, content.partition("\n")[2]

    def message(self, cmd: str, topic: str = "file:main") -> bytes:
        """The bytes of a `POST /exec`."""
        body = json.dumps({"cmd": cmd, "topic": topic}).encode()
        return message("POST", "/exec", body, {"X-User-Id": self.id})

    def sessions(self) -> dict[str, dict[str, Any]]:
        """What `GET /sessions` says about this user, by topic."""
        found = request(self.port, "GET", f"/sessions?user_id={self.id}").json["sessions"]
        return {item["topic"]: item for item in found}


class Blocked:
    """A command that runs until it is released; entered once it certainly runs."""

    def __init__(self, user: User, topic: str = "file:main") -> None:
        self.pipe = user.home / f"blocked-{topic.replace(':', '-')}"
        os.mkfifo(self.pipe)
        self.wire = Wire(user.port)
        self.wire.send(user.message(f"/exec cat {self.pipe}", topic))
        self.status, self.headers = self.wire.head()
        # Opening for writing returns when the command has opened it for reading.
        self._writer: int | None = os.open(self.pipe, os.O_WRONLY)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.release()
        self.wire.close()

    def release(self, text: str = "released") -> None:
        """Let the command end with this output."""
        if self._writer is not None:
            # Whoever ended the command also closed its end of the pipe.
            with suppress(BrokenPipeError):
                os.write(self._writer, text.encode())
            os.close(self._writer)
            self._writer = None

    def finish(self) -> list[tuple[str, Any]]:
        """Release, and return the events of the answer."""
        self.release()
        return events(self.wire.body(self.headers))
