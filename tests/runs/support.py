"""A runs server in this process, and clients that drop nothing silently."""

import asyncio
import json
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from functools import partial
from pathlib import Path
from typing import Any, Self

import yaml
from websockets.asyncio.client import ClientConnection, connect
from websockets.exceptions import ConnectionClosed

from stringd.runs import RunsConfig, RunService, offer_of
from stringd.runs.models.resolve import Models
from stringd.server.guard import RequestGuard
from stringd.server.http.connection import HttpConnection
from stringd.server.http.crowd import Crowd
from stringd.server.http.messages import HttpError, HttpRequest, HttpResponse, text_response
from stringd.server.ws import take_over
from stringd.system.trust import TrustStore
from tests.runs.schema import problems
from tests.support.daemon import WAIT_SECONDS

Json = dict[str, Any]
TERMINAL = ("strategy_completed", "strategy_error")


class Watcher:
    """A strict WebSocket client: every message it gets must pass the protocol's schema."""

    def __init__(self, socket: ClientConnection) -> None:
        self.socket = socket
        self.seen: list[Json] = []

    async def send(self, type_: str, **fields: Any) -> None:
        await self.socket.send(json.dumps({"type": type_, **fields}))

    async def receive(self) -> Json:
        async with asyncio.timeout(WAIT_SECONDS):
            message: Json = json.loads(await self.socket.recv())
        assert problems(message) == [], message
        self.seen.append(message)
        return message

    async def ask(self, type_: str, **fields: Any) -> Json:
        """Send a request and wait for the message that echoes its id."""
        request_id = f"ask-{len(self.seen)}"
        await self.send(type_, requestId=request_id, **fields)
        while (message := await self.receive()).get("requestId") != request_id:
            pass
        return message

    async def until(self, *types: str) -> list[Json]:
        """Every message up to and including the first of one of these types."""
        found = [await self.receive()]
        while found[-1]["type"] not in types:
            found.append(await self.receive())
        return found

    async def ended(self) -> Json:
        return (await self.until(*TERMINAL))[-1]

    async def quiet(self) -> list[Json]:
        """What was still on its way; a ping drains it, since answers keep their order."""
        messages = [await self.ask("ping")]
        return messages[:-1]

    async def run(self, path: Path | str, text: str = "", run_id: str = "r1") -> list[Json]:
        """Prepare and start a new run and collect its messages until it ends."""
        prepared = await self.ask("prepare_run", runId=run_id, strategyPath=str(path))
        assert prepared["type"] == "run_prepared", prepared
        await self.send("start_run", runId=run_id, input=text, requestId="start")
        return await self.until(*TERMINAL)

    async def closed(self) -> tuple[int, str]:
        """Wait for the server to close; the code and reason it gave."""
        try:
            while True:
                await self.receive()
        except ConnectionClosed as closed:
            return (closed.rcvd.code, closed.rcvd.reason) if closed.rcvd else (0, "")


class RunsServer:
    """The service behind a real WebSocket on a free port."""

    def __init__(self, service: RunService, directory: Path, trust: TrustStore) -> None:
        self.service = service
        self.directory = directory
        self.trust_store = trust
        self.port = 0
        self._clients: list[ClientConnection] = []
        self._guard = RequestGuard()

    @property
    def url(self) -> str:
        return f"ws://127.0.0.1:{self.port}/ws"

    async def watcher(self) -> Watcher:
        socket = await connect(self.url, max_size=None, max_queue=None, proxy=None)
        self._clients.append(socket)
        return Watcher(socket)

    def strategy(self, source: Json, name: str = "strategy.yaml") -> Path:
        """Write a strategy file next to the data directory."""
        path = self.directory / name
        path.write_text(yaml.safe_dump(source, sort_keys=False), "utf-8")
        return path

    def own(self, source: Json, name: str = "strategy.yaml") -> Path:
        """Write a strategy file of the owner's, in the data directory."""
        (self.directory / "data" / "strategies").mkdir(parents=True, exist_ok=True)
        return self.strategy(source, f"data/strategies/{name}")

    def trust(self, path: Path | None = None) -> None:
        """What `stringd trust` does, for the project's folder when nothing else is named."""
        offer_of(path or self.directory, self.trust_store).accept(self.trust_store)

    def timeline_lines(self, run_id: str) -> list[str]:
        path = self.directory / "data" / "runs" / f"{run_id}.jsonl"
        return path.read_text("utf-8").splitlines()

    def timeline(self, run_id: str) -> list[Json]:
        return [json.loads(line) for line in self.timeline_lines(run_id)]

    async def __aenter__(self) -> Self:
        loop = asyncio.get_running_loop()
        await self.service.start()
        self._server = await loop.create_server(self._connection, "127.0.0.1", 0)
        self.port = self._server.sockets[0].getsockname()[1]
        return self

    def _connection(self) -> HttpConnection:
        crowd = Crowd(asyncio.get_running_loop())
        return HttpConnection(self, crowd, partial(take_over, self.service))

    def judge(self, _request: HttpRequest) -> None:
        return None

    def judge_upgrade(
        self, method: bytes, path: bytes, headers: dict[bytes, bytes]
    ) -> HttpError | None:
        assert (method, path) == (b"GET", b"/ws")
        refusal = self._guard.refusal(headers)
        return None if refusal is None else HttpError(403, refusal)

    def handle(self, _request: HttpRequest) -> HttpResponse:
        return text_response(400, "WebSocket upgrade failed")

    async def __aexit__(self, *_error: object) -> None:
        self._server.close()
        await self.service.stop()
        for client in self._clients:
            await client.close()


@asynccontextmanager
async def serving(
    directory: Path, *, models: Models | None = None, **options: Any
) -> AsyncIterator[RunsServer]:
    """A server over `directory/data`; options are those of its configuration."""
    trust = TrustStore(directory / "own" / "trust.json")
    config = RunsConfig(directory / "data", directory, trust=trust, **options)
    service = RunService(config, models=models)
    async with RunsServer(service, directory, trust) as server:
        yield server


@asynccontextmanager
async def watching(port: int) -> AsyncIterator[Watcher]:
    """A watcher of a daemon in another process."""
    url = f"ws://127.0.0.1:{port}/ws"
    async with connect(url, max_queue=None, proxy=None) as socket:
        yield Watcher(socket)


def strategy(flow: Json, /, **agents: Json) -> Json:
    """The smallest strategy around a flow; agents default to demo models."""
    return {
        "name": "Test",
        "version": "1.0",
        "agents": {key.rstrip("_"): agent for key, agent in agents.items()},
        "flow": flow,
    }


def scripted(*replies: Any, **options: Any) -> Json:
    """An agent that plays these replies."""
    return {
        "model": "demo/script",
        "providerOptions": {"demo": {"script": list(replies), **options}},
    }


def sequential(*agents: str, name: str = "Main") -> Json:
    return {"name": name, "type": "sequential", "steps": [{"agent": each} for each in agents]}


def kinds(messages: list[Json]) -> list[str]:
    """The shape of a conversation: message types, with stream events and names."""
    return [_kind(message) for message in messages]


def _kind(message: Json) -> str:
    match message["type"]:
        case "agent_streaming":
            return f"{message['agentName']}:{message['event']['type']}"
        case "agent_output":
            return f"{message['agentName']}:output"
        case "step_started" | "step_completed":
            return f"{message['type']}({message['stepName']})"
        case other:
            return str(other)


async def wait_until(condition: Callable[[], bool]) -> None:
    """Give the loop turns until the condition holds."""
    async with asyncio.timeout(WAIT_SECONDS):
        while not condition():  # noqa: ASYNC110
            await asyncio.sleep(0)
