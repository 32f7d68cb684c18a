"""Ways to speak MCP to a daemon: the official client on each transport, and bare JSON-RPC."""

import asyncio
import json
import subprocess
import sys
import threading
from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from itertools import count
from types import TracebackType
from typing import Any, Literal, Protocol, Self

import httpx2
from mcp.client.client import Client
from mcp.client.stdio import StdioServerParameters, stdio_client
from mcp.client.streamable_http import streamable_http_client
from mcp_types import CallToolResult, TextContent

from tests.support.daemon import WAIT_SECONDS, Daemon
from tests.support.http import Answer, request

Era = Literal["auto", "legacy"]
ACCEPT = "application/json, text/event-stream"


class Connect(Protocol):
    """Opens a client of a daemon, with headers or environment variables that mean the same."""

    def __call__(self, daemon: Daemon, **says: str) -> AbstractAsyncContextManager[Client]: ...


HEADERS = {
    "user": "X-User-Id",
    "cwd": "X-Stringd-Cwd",
    "gate": "X-Stringd-Gate-Socket",
}
VARIABLES = {"user": "STRINGD_USER", "gate": "STRINGD_GATE_SOCKET", "home": "STRINGD_HOME"}


def over_http(era: Era) -> Connect:
    @asynccontextmanager
    async def connect(daemon: Daemon, **says: str) -> AsyncIterator[Client]:
        headers = {HEADERS[name]: value for name, value in says.items()}
        url = f"http://127.0.0.1:{daemon.port}/mcp"
        async with httpx2.AsyncClient(headers=headers, timeout=WAIT_SECONDS) as http:
            transport = streamable_http_client(url, http_client=http)
            async with Client(transport, mode=era) as client:
                yield client

    return connect


def over_stdio(era: Era) -> Connect:
    @asynccontextmanager
    async def connect(daemon: Daemon, **says: str) -> AsyncIterator[Client]:
        cwd = says.pop("cwd", None)
        chosen = {VARIABLES[name]: value for name, value in says.items()}
        parameters = StdioServerParameters(
            command=sys.executable,
            args=["-m", "stringd", "mcp"],
            env={**daemon.child_environment(), **chosen},
            cwd=cwd or str(daemon.directory),
        )
        async with Client(stdio_client(parameters), mode=era) as client:
            yield client

    return connect


TRANSPORTS: dict[str, Connect] = {
    "http": over_http("auto"),
    "http-handshake": over_http("legacy"),
    "stdio": over_stdio("auto"),
    "stdio-handshake": over_stdio("legacy"),
}


def text(result: CallToolResult) -> str:
    """The one text of a result."""
    [part] = result.content
    assert isinstance(part, TextContent)
    return part.text


def handle(result: CallToolResult) -> str:
    """The handle in a result that says the call goes on."""
    assert "Call wait with handle" in text(result)
    return text(result).split('"')[1]


def post(port: int, message: object, headers: Mapping[str, str] | None = None) -> Answer:
    """One message as a minimal client posts it."""
    return request(port, "POST", "/mcp", message, {"Accept": ACCEPT, **(headers or {})})


def posted(port: int, message: object, headers: Mapping[str, str] | None = None) -> bytes:
    """The same as bytes, for who wants to leave before the answer."""
    body = json.dumps(message).encode()
    lines = [f"POST /mcp HTTP/1.1\r\nHost: 127.0.0.1:{port}", f"Accept: {ACCEPT}"]
    lines += [f"{name}: {value}" for name, value in (headers or {}).items()]
    lines += ["Content-Type: application/json", f"Content-Length: {len(body)}", "", ""]
    return "\r\n".join(lines).encode() + body


async def until(holds: Callable[[], object]) -> None:
    """Return once something holds."""
    async with asyncio.timeout(WAIT_SECONDS):
        while not holds():
            await asyncio.to_thread(threading.Event().wait, 0.01)


def answer_of(reply: Answer) -> Any:
    """The JSON-RPC answer in either form of reply."""
    if reply.headers["content-type"].startswith("text/event-stream"):
        lines = reply.body.decode().splitlines()
        [data] = [line.removeprefix("data: ") for line in lines if line.startswith("data: {")]
        return json.loads(data)
    return reply.json


class Pipe:
    """`stringd mcp` and nothing but JSON lines: no SDK on this side."""

    def __init__(self, daemon: Daemon, *arguments: str, **environment: str) -> None:
        self._ids = count(1)
        self.process = subprocess.Popen(
            [sys.executable, "-m", "stringd", "mcp", *arguments],
            env={**daemon.child_environment(), **environment},
            cwd=daemon.directory,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
        )
        self.notes: list[Any] = []

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.end()

    def send(self, line: str) -> None:
        assert self.process.stdin is not None
        self.process.stdin.write(line.encode() + b"\n")
        self.process.stdin.flush()

    def ask(self, method: str, **params: Any) -> int:
        number = next(self._ids)
        message = {"jsonrpc": "2.0", "id": number, "method": method, "params": params}
        self.send(json.dumps(message))
        return number

    def receive(self) -> Any:
        assert self.process.stdout is not None
        return json.loads(self.process.stdout.readline())

    def call(self, method: str, **params: Any) -> Any:
        """Ask, and read until the answer; what came before it is in `notes`."""
        number = self.ask(method, **params)
        while (message := self.receive()).get("id") != number:
            self.notes.append(message)
        return message

    def initialize(self, version: str = "2025-06-18") -> Any:
        answer = self.call(
            "initialize",
            protocolVersion=version,
            capabilities={},
            clientInfo={"name": "bare", "version": "1"},
        )
        self.send('{"jsonrpc":"2.0","method":"notifications/initialized"}')
        return answer["result"]

    def end(self) -> tuple[int, bytes]:
        """Close its input; its exit code and what it wrote to standard error."""
        process = self.process
        if process.stdout is not None and process.stdout.closed:
            process.stdout = None
        if process.stdin is not None and process.stdin.closed:
            process.stdin = None
        _, errors = process.communicate(timeout=WAIT_SECONDS)
        return process.returncode, errors
