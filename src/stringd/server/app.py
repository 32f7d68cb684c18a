"""The application: which request goes where, and how errors are answered."""

import asyncio
import logging
import os
from collections.abc import Awaitable, Callable, Mapping
from functools import partial
from pathlib import Path
from time import monotonic
from typing import TYPE_CHECKING, Final

from stringd import __version__
from stringd.runtime.runtime import Runtime
from stringd.server import mcp, run_log, sessions, topic_view, users
from stringd.server.chanflow import ChanFlowEndpoint
from stringd.server.describe import describe
from stringd.server.doctor import Doctor
from stringd.server.exec import ExecEndpoint, named_user, require_user
from stringd.server.feed.endpoint import FeedEndpoint
from stringd.server.feed.observation import Observation
from stringd.server.gate_log import GateLog
from stringd.server.guard import RequestGuard, own_pages
from stringd.server.http.messages import (
    ClientGone,
    HttpError,
    HttpRequest,
    HttpResponse,
    empty_response,
    error_response,
    json_response,
    text_response,
)
from stringd.server.metrics import Metrics
from stringd.server.page_files import PREFIX, PageFiles, to_page, wants_page
from stringd.server.pages import refused_page
from stringd.server.runs import RunsEndpoint
from stringd.server.topic_input import TopicInputEndpoint
from stringd.server.topic_output import TopicOutputEndpoint
from stringd.server.turns import TopicTurns
from stringd.server.webhook import PATH, SUFFIX, WebhookEndpoints
from stringd.system.workers import end_workers
from stringd.wire.gate import AUDIT_LOG, gate_directory

if TYPE_CHECKING:
    from stringd.runs import DaemonPorts, RunObserver
    from stringd.server.log import EventLog
    from stringd.server.settings import DaemonSettings
    from stringd.server.traces import Traces

logger = logging.getLogger("stringd.server")

WEBSOCKET: Final = "/ws"
"""Where runs are offered."""

Endpoint = Callable[[HttpRequest], HttpResponse | Awaitable[HttpResponse]]


_BODIES: Final[dict[tuple[str, str], tuple[str, ...]]] = {
    ("POST", "/exec"): (),
    ("POST", "/chanflow"): ("text/plain",),
    ("POST", "/users"): (),
    ("POST", "/agents"): (),
    ("POST", "/sessions"): (),
}
"""Requests whose body has a type, and which types besides JSON."""
_JSON: Final = b"application/json"
_TO_PAGE: Final = (("GET", "/"), ("GET", "/ui"))
_OF_A_USER: Final = ("/exec", "/chanflow")


class App:
    """Everything the daemon answers over HTTP. `request_stop` ends the process that serves it."""

    def __init__(
        self, settings: "DaemonSettings", log: "EventLog", request_stop: Callable[[], None]
    ) -> None:
        self.watch = Observation(audit_log())
        self._traces = _open_traces() if settings.traces else None
        topics = self._traces.of_topics(self.watch.topics) if self._traces else self.watch.topics
        self.runtime = Runtime(settings.runtime, observer=topics)
        self._log = log
        self._request_stop = request_stop
        self._started = monotonic()
        self._data_dir = settings.data_dir
        self.damage: list[str] = []
        """What cannot be read in the data directory, a sentence each."""
        ports = [port for port in (settings.port, settings.runs_port) if port]
        origins = (*settings.allow_origins, *own_pages(ports))
        self._guard = RequestGuard(origins, strict=settings.strict_origins)
        self._own_pages = frozenset(page.encode() for page in own_pages(ports))
        turns = TopicTurns(self.runtime, settings.queue_timeout)
        self.runs = RunsEndpoint(
            settings.data_dir,
            Path.cwd(),
            settings.runs,
            lambda: _run_ports(self.runtime, turns),
            observer=self._run_observer,
        )
        self.watch.attach(self.runtime, self.runs)
        self._users = users.UserEndpoints(self.runtime, log)
        self._agents = users.UserEndpoints(self.runtime, log, "agent")
        self._sessions = sessions.SessionEndpoints(self.runtime, log)
        self._webhook = WebhookEndpoints(self.runtime, self.watch.feed, log, settings.port)
        self.metrics = Metrics(self.watch, self.runs)
        self._routes: dict[tuple[str, str], Endpoint] = {
            ("POST", "/exec"): ExecEndpoint(self.runtime, log, settings.queue_timeout),
            ("POST", "/chanflow"): ChanFlowEndpoint(self.runtime, turns),
            ("GET", "/users"): self._users.list,
            ("POST", "/users"): self._users.register,
            ("GET", "/agents"): self._agents.list,
            ("POST", "/agents"): self._agents.register,
            ("GET", "/describe"): lambda _request: json_response(200, describe()),
            ("GET", "/sessions"): self._sessions.list,
            ("POST", "/sessions"): self._sessions.create,
            ("DELETE", "/sessions"): self._sessions.delete,
            ("GET", "/events"): FeedEndpoint(self.watch.feed),
            ("GET", "/overview"): self.watch.overview,
            ("GET", "/metrics"): self.metrics,
            ("GET", "/gate/audit"): GateLog(audit_log()),
            ("GET", "/doctor"): Doctor(settings.port, str(settings.data_dir)),
            ("POST", "/shutdown"): self._shutdown,
        }
        self._page = PageFiles()
        self._run_log = run_log.RunLog(self.runs)
        self._topic_view = topic_view.TopicViewEndpoint(self.runtime, self.watch.topics)
        self._topic_input = TopicInputEndpoint(self.runtime)
        self._topic_output = TopicOutputEndpoint(self.runtime, self.watch.feed)
        self._mcp = mcp.McpEndpoint(self.runtime, turns, self.runs, settings.mcp_hold)

    async def close(self) -> None:
        """Release what the rooms hold; the daemon is stopping."""
        await self._mcp.close()
        await self.runtime.close()
        await asyncio.to_thread(end_workers)
        if self._traces is not None:
            await self._traces.close()

    def _run_observer(self) -> "RunObserver":
        heard = self.watch.of_runs()
        return self._traces.of_runs(heard) if self._traces else heard

    def refusal(self, headers: Mapping[bytes, bytes]) -> str | None:
        """Why a request with these headers is refused; None when it may pass."""
        refused = self._guard.refusal(headers)
        origin = headers.get(b"origin")
        if refused is None and origin is not None and origin not in self._own_pages:
            return refused_page(headers)
        return refused

    def judge(self, request: HttpRequest) -> HttpError | None:
        """Why a request is refused before its body is read; None when the body may come."""
        method, headers = request.method, request.headers
        if method == "OPTIONS" or (method == "GET" and request.path == "/health"):
            return None
        refusal = self.refusal(headers)
        if refusal is not None:
            return HttpError(403, refusal)
        request.judged = True
        if headers.get(b"content-type", _JSON) == _JSON:
            return None
        accepted = _BODIES.get((method, request.path))
        return None if accepted is None else self._unreadable(request, accepted)

    def judge_upgrade(
        self, method: bytes, path: bytes, headers: dict[bytes, bytes]
    ) -> HttpError | None:
        """Why a WebSocket upgrade is refused; None when it may pass."""
        if path != WEBSOCKET.encode() or method != b"GET":
            return HttpError(404, f"WebSocket is offered only at GET {WEBSOCKET}")
        refusal = self.refusal(headers)
        return None if refusal is None else HttpError(403, refusal)

    def _unreadable(self, request: HttpRequest, accepted: tuple[str, ...]) -> HttpError | None:
        """What is wrong with a body of this type; an unknown user is told that first."""
        try:
            request.check_type(*accepted)
        except HttpError as error:
            try:
                if request.path in _OF_A_USER:
                    require_user(self.runtime, request)
            except HttpError as earlier:
                return earlier
            return error
        return None

    def handle(self, request: HttpRequest) -> HttpResponse | Awaitable[HttpResponse]:
        """Answer a request, at once where the endpoint can."""
        self.watch.requests += 1
        try:
            answer = self._endpoint(request)(request)
        except Exception as error:  # noqa: BLE001 - every request is answered, whatever broke
            return self._failure(request, error)
        return answer if isinstance(answer, HttpResponse) else self._later(request, answer)

    async def _later(self, request: HttpRequest, answer: Awaitable[HttpResponse]) -> HttpResponse:
        try:
            return await answer
        except ClientGone:
            raise
        except Exception as error:  # noqa: BLE001 - every request is answered, whatever broke
            return self._failure(request, error)

    def _failure(self, request: HttpRequest, error: Exception) -> HttpResponse:
        if isinstance(error, HttpError):
            return error_response(error)
        logger.error("request failed: %s %s", request.method, request.path, exc_info=error)
        self.watch.errors += 1
        self._log.error("internal", path=request.path, error=repr(error))
        return json_response(500, {"error": str(error) or type(error).__name__})

    def _endpoint(self, request: HttpRequest) -> Endpoint:
        """What answers a request that may be answered. Raises `HttpError`."""
        if self._log.enabled:
            user_id = named_user(request)
            self._log.info("request", method=request.method, path=request.path, userId=user_id)
        route = (request.method, request.path)
        if request.judged and (known := self._routes.get(route)) is not None:
            return known
        if route[0] == "OPTIONS":
            return _preflight
        if route == ("GET", "/health"):
            return self._health
        if not request.judged and (refusal := self.refusal(request.headers)) is not None:
            raise HttpError(403, refusal)
        return self._routes.get(route) or self._other_endpoint(request)

    def _other_endpoint(self, request: HttpRequest) -> Endpoint:
        if request.path == mcp.PATH:
            return self._mcp
        if request.path == WEBSOCKET:
            return lambda _request: text_response(400, "WebSocket upgrade failed")
        for people in (self._users, self._agents):
            below = request.path.startswith(people.path)
            if below and request.method == "DELETE":
                return people.delete
            if below and request.path.endswith(SUFFIX) and request.method in ("GET", "POST"):
                return partial(self._webhook.address, noun=people.noun)
        if request.method == "POST" and request.path.startswith(PATH):
            return self._webhook.receive
        if request.method == "DELETE" and request.path.startswith(sessions.PATH):
            return self._sessions.delete
        if request.path.startswith(PREFIX):
            return self._page
        if request.method == "GET" and request.path.startswith(topic_view.PATH):
            is_output = request.path.endswith(topic_view.OUTPUT)
            return self._topic_output if is_output else self._topic_view
        if request.method == "POST" and _is_topic_input(request.path):
            return self._topic_input
        if request.method == "GET" and _is_run_log(request.path):
            return self._run_log
        if (request.method, request.path) in _TO_PAGE and wants_page(request):
            return lambda _request: to_page()
        raise HttpError(404, f"Not found: {request.method} {request.path}")

    def _health(self, request: HttpRequest) -> HttpResponse:
        if self.refusal(request.headers) is not None:
            # A page of somebody else learns that the daemon is well, not what it does.
            return json_response(200, {"ok": True, "status": "ok"})
        held = {
            "ok": True,
            "users": len(self.runtime.topics.users),
            "sessions": self.runtime.topics.session_count(),
            "status": "ok",
            "uptime": int((monotonic() - self._started) * 1000),
            "activeRuns": self.runs.active_runs,
            "connectedClients": self.runs.connected_clients,
            "agents": len(self.runtime.topics.users),
            "version": __version__,
            "pid": os.getpid(),
            "dataDir": str(self._data_dir),
            "damage": self.damage,
        }
        return json_response(200, held)

    def _shutdown(self, _request: HttpRequest) -> HttpResponse:
        self._request_stop()
        return json_response(200, {"ok": True, "message": "stringd shutting down"})


class RunsDoor:
    """What a port for runs alone answers: `/ws` and `GET /health`, nothing else of the daemon."""

    def __init__(self, app: App) -> None:
        self._app = app
        self.judge_upgrade = app.judge_upgrade

    def judge(self, request: HttpRequest) -> HttpError | None:
        refusal = self._app.refusal(request.headers)
        return None if refusal is None else HttpError(403, refusal)

    def handle(self, request: HttpRequest) -> HttpResponse | Awaitable[HttpResponse]:
        offered = request.path == WEBSOCKET or (request.method, request.path) == ("GET", "/health")
        return self._app.handle(request) if offered else text_response(404, "Not Found")


def _run_ports(runtime: Runtime, turns: TopicTurns) -> "DaemonPorts":
    from stringd.server.run_ports import run_ports  # with the runs room, after the first answer

    return run_ports(runtime, turns)


def _open_traces() -> "Traces":
    from stringd.server.traces import Traces  # needs an extra, and most daemons send none

    return Traces()


def _is_topic_input(path: str) -> bool:
    return path.startswith(topic_view.PATH) and path.endswith(topic_view.INPUT)


def _is_run_log(path: str) -> bool:
    return path.startswith(run_log.PATH) and path.endswith(run_log.END)


def audit_log() -> Path:
    """Where the gate of this account writes what it was asked."""
    return Path(gate_directory(os.environ, str(Path.home()))) / AUDIT_LOG


def _preflight(request: HttpRequest) -> HttpResponse:
    return mcp.preflight() if request.path == mcp.PATH else empty_response(204)
