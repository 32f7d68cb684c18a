"""The ASGI application: which request goes where, and the JSON endpoints."""

import logging
from collections.abc import Awaitable, Callable
from pathlib import Path
from time import monotonic
from typing import TYPE_CHECKING, Final
from urllib.parse import parse_qs

from stringd.runs.service import RunService
from stringd.runtime.runtime import Runtime
from stringd.runtime.session import release_all
from stringd.server.exec import ExecEndpoint
from stringd.server.guard import Guard
from stringd.server.http import (
    CORS_HEADERS,
    ClientGone,
    HttpError,
    Receive,
    Request,
    Scope,
    Send,
    send_empty,
    send_json,
)
from stringd.server.ws import WebSocketEndpoint
from stringd.wire.body import BodyError, JsonObject, parse_object
from stringd.wire.topic import InvalidTopicError, parse_topic

if TYPE_CHECKING:
    from stringd.runtime.session import Slot
    from stringd.server.log import EventLog
    from stringd.server.settings import Settings

logger = logging.getLogger("stringd.server")

Endpoint = Callable[[Request, Send], Awaitable[None]]

_USER_PATH: Final = "/users/"
_SESSION_PATH: Final = "/sessions/"


class App:
    """Everything the daemon answers over HTTP. `request_stop` ends the process that serves it."""

    def __init__(
        self, settings: "Settings", log: "EventLog", request_stop: Callable[[], None]
    ) -> None:
        self.runtime = Runtime(settings.runtime)
        self._log = log
        self._request_stop = request_stop
        self._guard = Guard(settings.allow_origins)
        self.runs = RunService(settings.data_dir, Path.cwd())
        self._web_socket = WebSocketEndpoint(self.runs, self._guard)
        self._started = monotonic()
        self._routes: dict[tuple[str, str], Endpoint] = {
            ("POST", "/exec"): ExecEndpoint(self.runtime, log, settings.queue_timeout),
            ("GET", "/users"): self._list_users,
            ("POST", "/users"): self._register_user,
            ("GET", "/sessions"): self._list_sessions,
            ("POST", "/sessions"): self._create_session,
            ("POST", "/shutdown"): self._shutdown,
            ("GET", "/ws"): _upgrade_failed,
        }

    async def close(self) -> None:
        """Release what the rooms hold; the daemon is stopping."""
        await self.runtime.close()

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] == "websocket":
            await self._web_socket(scope, receive, send)
            return
        request = Request(scope, receive)
        try:
            await self._answer(request, send)
        except HttpError as error:
            await send_json(send, error.status, error.body)
        except ClientGone:
            return
        except Exception as error:
            # The caller learns that it failed, the log learns why.
            logger.exception("request failed: %s %s", request.method, request.path)
            self._log.error("internal", path=request.path, error=repr(error))
            await send_json(send, 500, {"error": str(error) or type(error).__name__})

    async def _answer(self, request: Request, send: Send) -> None:
        if self._log.enabled:
            user_id = request.header(b"x-user-id")
            self._log.info("request", method=request.method, path=request.path, userId=user_id)
        if request.method == "OPTIONS":
            await send_empty(send, 204)
        elif request.method == "GET" and request.path == "/health":
            await send_json(send, 200, self._health())
        else:
            refusal = self._guard.refusal(request.scope["headers"])
            if refusal is not None:
                raise HttpError(403, refusal)
            await self._endpoint(request)(request, send)

    def _endpoint(self, request: Request) -> Endpoint:
        endpoint = self._routes.get((request.method, request.path))
        if endpoint is not None:
            return endpoint
        if request.method == "DELETE":
            if request.path.startswith(_USER_PATH):
                return self._delete_user
            if request.path.startswith(_SESSION_PATH) or request.path == "/sessions":
                return self._delete_session
        path = request.scope["raw_path"].decode("ascii", "replace")
        raise HttpError(404, f"Not found: {request.method} {path}")

    def _health(self) -> dict[str, object]:
        return {
            "ok": True,
            "users": len(self.runtime.users),
            "sessions": self.runtime.session_count(),
            "status": "ok",
            "uptime": int((monotonic() - self._started) * 1000),
            "activeRuns": self.runs.active_runs,
            "connectedClients": self.runs.connected_clients,
        }

    async def _list_users(self, _request: Request, send: Send) -> None:
        await send_json(send, 200, {"users": list(self.runtime.users)})

    async def _register_user(self, request: Request, send: Send) -> None:
        fields = await _fields(request)
        try:
            user_id = fields.text("id", "user_id")
            if user_id is None:
                raise BodyError("id required")
            home = fields.text("home")
            if home is None:
                raise BodyError("home required")
            if not home.startswith("/") or "\0" in home:
                raise BodyError("home must be an absolute path")
            allowed = fields.texts("allowed_paths")
            if not all(path.startswith("/") for path in allowed or ()):
                raise BodyError("allowed_paths must be absolute paths")
        except BodyError as error:
            raise HttpError(400, str(error)) from error
        registration, stale = self.runtime.register(user_id, home, allowed)
        await release_all(stale)
        created = registration.created
        self._log.info("user.register" if created else "user.update", userId=user_id, home=home)
        await send_json(send, 200, {"user_id": user_id, "home": home, "created": created})

    async def _delete_user(self, request: Request, send: Send) -> None:
        user_id = request.path.removeprefix(_USER_PATH)
        deleted, stale = self.runtime.remove_user(user_id)
        await release_all(stale)
        self._log.info("user.delete", userId=user_id, deleted=deleted)
        await send_json(send, 200, {"user_id": user_id, "deleted": deleted})

    async def _list_sessions(self, request: Request, send: Send) -> None:
        query = parse_qs(request.scope["query_string"].decode("utf-8", "replace"))
        wanted = query.get("user_id", [""])[0].strip() or None
        slots = self.runtime.sessions(wanted)
        await send_json(send, 200, {"sessions": [_session_item(slot) for slot in slots]})

    async def _create_session(self, request: Request, send: Send) -> None:
        fields = await _fields(request)
        try:
            user_id = fields.text("user_id")
            if user_id is None:
                raise BodyError("user_id required")
            if self.runtime.users.get(user_id) is None:
                raise HttpError(401, f"Unknown user: {user_id}")
            topic = parse_topic(fields.text("topic"))
        except (BodyError, InvalidTopicError) as error:
            raise HttpError(400, str(error)) from error
        slot = self.runtime.slot(user_id, topic)
        created = slot.session is None
        self.runtime.session(slot)
        if created:
            self._log.info("session.create", userId=user_id, topic=topic)
        body = {"user_id": user_id, "topic": topic.canonical, "topic_type": topic.type}
        await send_json(send, 200, {**body, "created": created})

    async def _delete_session(self, request: Request, send: Send) -> None:
        user_id, slash, raw = request.path.removeprefix(_SESSION_PATH).partition("/")
        if not slash or request.path == "/sessions":
            raise HttpError(400, "Expected /sessions/:user_id/:topic")
        try:
            topic = parse_topic(raw)
        except InvalidTopicError:
            await send_json(send, 200, {"user_id": user_id, "topic": raw, "deleted": False})
            return
        session = self.runtime.forget(user_id, topic)
        if session is not None:
            await session.release()
            self._log.info("session.delete", userId=user_id, topic=topic)
        body = {"user_id": user_id, "topic": topic.canonical, "deleted": session is not None}
        await send_json(send, 200, body)

    async def _shutdown(self, _request: Request, send: Send) -> None:
        await send_json(send, 200, {"ok": True, "message": "stringd shutting down"})
        self._request_stop()


async def _upgrade_failed(_request: Request, send: Send) -> None:
    data = b"WebSocket upgrade failed"
    headers = [(b"Content-Type", b"text/plain"), (b"Content-Length", b"%d" % len(data))]
    await send({"type": "http.response.start", "status": 400, "headers": [*headers, *CORS_HEADERS]})
    await send({"type": "http.response.body", "body": data})


async def _fields(request: Request) -> JsonObject:
    """The request's JSON object; what is no object has no fields."""
    return parse_object(await request.body()) or JsonObject({})


def _session_item(slot: "Slot") -> dict[str, object]:
    meta = slot.session.meta() if slot.session else None
    return {
        "user_id": slot.user_id,
        "topic": slot.topic.canonical,
        "topic_type": slot.topic.type,
        "executing": slot.queue.busy,
        "queue_length": slot.queue.length,
        "doc": None
        if meta is None
        else {"uri": meta.uri, "title": meta.title, "current_block": meta.current_block},
    }
