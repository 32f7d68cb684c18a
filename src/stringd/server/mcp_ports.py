"""The ports of the MCP server, filled with this daemon's rooms."""

import asyncio
from collections import deque
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final
from urllib.parse import parse_qs, parse_qsl, unquote

from stringd.client.gate import default_socket
from stringd.mcp.ports import McpCaller, McpPorts, ResourcePage, RunsGoneError
from stringd.mcp.server import McpServer
from stringd.runtime.topics.call import Caller
from stringd.server.exec import working_directory
from stringd.system.vouched import vouched
from stringd.wire.body import BodyError
from stringd.wire.runs.codec import decode_message, encode_request
from stringd.wire.topic import parse_topic

if TYPE_CHECKING:
    from stringd.runs import RunService
    from stringd.runtime.runtime import Runtime
    from stringd.server.runs import RunsEndpoint
    from stringd.server.turns import TopicTurns
    from stringd.system.lineage import Speaker
    from stringd.wire.result import Result
    from stringd.wire.runs.messages import DaemonMessage
    from stringd.wire.runs.requests import ClientMessage

DEFAULT_USER: Final = "default"
MAX_NAME_BYTES: Final = 255
"""A new user's home is named after it, and file systems allow no more."""


def assemble(
    runtime: "Runtime", turns: "TopicTurns", runs: "RunsEndpoint", hold: float
) -> McpServer:
    """The MCP server of this daemon; `hold` is how many seconds a call may last."""
    ports = McpPorts(
        DaemonCommands(runtime, turns),
        DaemonRuns(runs, runtime.services.settings.data_dir),
        hold,
        default_socket(),
    )
    return McpServer(ports, _who_calls)


def _who_calls(request: Any) -> McpCaller:
    """The caller of a request the SDK hands back to us."""
    scope = request.scope
    found = caller(dict(scope["headers"]), scope["query_string"])
    return found._replace(speaker=scope["stringd.visitor"])


def caller(headers: Mapping[bytes, bytes], query: bytes) -> McpCaller:
    """Who a request says it comes from. Raises `BodyError` for a name that is not a file name."""
    named = headers.get(b"x-user-id") or headers.get(b"x-agent-id", b"")
    user_id = named.decode("utf-8", "replace").strip() or DEFAULT_USER
    if not user_id.isprintable() or "/" in user_id or user_id in (".", ".."):
        raise BodyError("X-User-Id must be a plain name")
    if len(user_id.encode()) > MAX_NAME_BYTES:
        raise BodyError(f"X-User-Id is longer than {MAX_NAME_BYTES} bytes")
    tools = parse_qs(query.decode("utf-8", "replace")).get("tools")
    return McpCaller(
        user_id,
        working_directory(_path(headers, b"x-stringd-cwd")),
        _path(headers, b"x-stringd-gate-socket"),
        frozenset(tools[-1].split(",")) if tools else None,
        vouched(dict(parse_qsl(headers.get(b"x-stringd-env", b"").decode("utf-8", "replace")))),
        client=_path(headers, b"x-stringd-client") or "",
        client_pid=_number(headers, b"x-stringd-client-pid"),
    )


def _number(headers: Mapping[bytes, bytes], name: bytes) -> int:
    text = headers.get(name, b"")
    return int(text) if text.isdigit() and len(text) < 10 else 0


def _path(headers: Mapping[bytes, bytes], name: bytes) -> str | None:
    """A path in a header; our clients percent-encode it, since it may hold any character."""
    return unquote(headers.get(name, b"").decode("utf-8", "replace")) or None


class DaemonCommands:
    """The `Commands` port on this daemon's runtime."""

    def __init__(self, runtime: "Runtime", turns: "TopicTurns") -> None:
        self._runtime = runtime
        self._turns = turns

    async def run(
        self,
        caller: McpCaller,
        topic: str,
        cmd: str,
        limit: float | None = None,
        *,
        brief: bool = False,
    ) -> "Result":
        speaks = Caller(
            caller.cwd,
            speaker=caller.speaker,
            client="mcp",
            environment=caller.environment,
            limit=limit,
            brief=brief,
        )
        return await self._turns.run(caller.user_id, parse_topic(topic), cmd, speaks)

    def attend(self, caller: McpCaller, topic: str) -> float | None:
        return self._runtime.attend(self._runtime.topics.slot(caller.user_id, parse_topic(topic)))

    def pages(self, caller: McpCaller) -> list[ResourcePage]:
        found = []
        for slot in self._runtime.topics.sessions(caller.user_id):
            meta = slot.session.meta() if slot.session else None
            if meta is not None:
                found.append(ResourcePage(slot.topic.canonical, meta.uri, meta.title))
        return found


class DaemonRuns:
    """The `RunsEndpoint` port: clients of the run service without a socket between."""

    def __init__(self, runs: "RunsEndpoint", data_dir: Path) -> None:
        self._runs = runs
        self._data_dir = data_dir

    async def find(self, strategy: str, cwd: str | None) -> str:
        return await asyncio.to_thread(
            _find_strategy, strategy, Path(cwd) if cwd else Path.cwd(), self._data_dir
        )

    async def connect(self, speaker: "Speaker | None" = None) -> "InnerConnection":
        return InnerConnection(await self._runs.service(), speaker)


class InnerConnection:
    """One client of the runs inside the daemon; it says and hears what a WebSocket would."""

    def __init__(self, service: "RunService", speaker: "Speaker | None" = None) -> None:
        self._news = asyncio.Event()
        self._client = service.connect(self._news.set, speaker=speaker, kind="agent")
        self._frames: deque[bytes] = deque()

    def send(self, request: "ClientMessage") -> None:
        self._client.receive(encode_request(request))

    async def receive(self) -> "DaemonMessage":
        while not self._frames:
            self._news.clear()
            self._frames.extend(self._client.take())
            if not self._frames:
                if self._client.closing:
                    self.close()
                    raise RunsGoneError
                await self._news.wait()
        return decode_message(self._frames.popleft())

    def close(self) -> None:
        self._client.gone()


def _find_strategy(name: str, cwd: Path, data_dir: Path) -> str:
    """A file of that path, else the discovered strategy of that name."""
    from stringd.runs.strategy.discover import discover, find_by_name

    if (cwd / name).is_file() or name.startswith("@"):
        return name
    found = find_by_name(discover(cwd, data_dir).strategies, name)
    return str(found.path.resolve()) if found else name
