"""`POST /exec`: one command in, three events out. This is the hot path; keep it short."""

import asyncio
from pathlib import Path
from time import perf_counter
from typing import TYPE_CHECKING, Final, NamedTuple

from stringd.runtime.errors import QueueFullError, QueueTimeoutError, UnknownUserError
from stringd.runtime.queue import MAX_WAITING
from stringd.runtime.runtime import Answer
from stringd.server.http import CORS_HEADERS, ClientGone, HttpError, Request, Send
from stringd.wire.body import BodyError, JsonObject, parse_object
from stringd.wire.exec import SSE_HEADERS, command_label, exec_events
from stringd.wire.topic import InvalidTopicError, Topic, parse_topic

if TYPE_CHECKING:
    from stringd.runtime.runtime import Runtime
    from stringd.runtime.session import Slot
    from stringd.server.log import EventLog

_START: Final = {
    "type": "http.response.start",
    "status": 200,
    "headers": [*SSE_HEADERS, *CORS_HEADERS],
}


class Command(NamedTuple):
    """A validated request: what to run, where, and how to name it in the answer."""

    text: str
    topic: Topic
    request_id: str | None
    cwd: str | None


class ExecEndpoint:
    """Runs commands in their topics' turn."""

    def __init__(self, runtime: "Runtime", log: "EventLog", queue_timeout: float) -> None:
        self._runtime = runtime
        self._log = log
        self._queue_timeout = queue_timeout

    async def __call__(self, request: Request, send: Send) -> None:
        user_id = self._user(request)
        command = parse_command_body(await request.body())
        slot = self._runtime.slot(user_id, command.topic)
        await self._take_turn(request, slot)
        started = perf_counter()
        try:
            begun = False
            answer = self._runtime.execute(slot, command.text, command.cwd)
            if not isinstance(answer, Answer):
                # What takes time shows at once that it runs.
                await send(_START)
                begun = True
                answer = await answer
        except UnknownUserError as error:
            raise HttpError(401, str(error)) from error
        finally:
            slot.queue.leave()
            if slot.session is None:
                self._runtime.discard_if_idle(slot)
        label = command_label(command.text)
        body = exec_events(
            user_id=user_id,
            topic=command.topic,
            label=label,
            request_id=command.request_id,
            result=answer.result,
            meta=answer.meta,
        )
        if not begun:
            await send(_START)
        await send({"type": "http.response.body", "body": body})
        if self._log.enabled:
            self._log.info(
                "exec",
                userId=user_id,
                topic=command.topic,
                cmd=label.partition(" ")[0],
                ok=answer.result.ok,
                code=answer.result.code,
                durationMs=round((perf_counter() - started) * 1000, 1),
            )

    def _user(self, request: Request) -> str:
        user_id = request.header(b"x-user-id")
        if not user_id:
            raise HttpError(400, "X-User-Id header required")
        if self._runtime.users.get(user_id) is None:
            raise HttpError(401, f"Unknown user: {user_id}")
        return user_id

    async def _take_turn(self, request: Request, slot: "Slot") -> None:
        """Return when it is this request's turn. Raises when it never will be."""
        try:
            place = slot.queue.enter()
            if place is None:
                return
            self._log.info("exec.queued", userId=slot.user_id, topic=slot.topic)
            await self._wait(request, slot, place)
        except QueueFullError as error:
            self._log.info("exec.queue_full", userId=slot.user_id, topic=slot.topic)
            raise HttpError(
                429,
                "QUEUE_FULL",
                f"Topic {slot.user_id}:{slot.topic} has {MAX_WAITING} commands queued. "
                "Try again later.",
            ) from error
        except QueueTimeoutError as error:
            self._log.info("exec.queue_timeout", userId=slot.user_id, topic=slot.topic)
            raise HttpError(504, "QUEUE_TIMEOUT", str(error)) from error

    async def _wait(self, request: Request, slot: "Slot", place: asyncio.Future[None]) -> None:
        state = request.scope["state"]
        state["waiting"] = True
        gone = asyncio.ensure_future(request.disconnected())
        try:
            if not state.get("half_closed"):
                await asyncio.wait(
                    (place, gone),
                    timeout=self._queue_timeout,
                    return_when=asyncio.FIRST_COMPLETED,
                )
            if gone.done() or state.get("half_closed"):
                raise ClientGone
            if not place.done():
                raise QueueTimeoutError
        except BaseException:
            slot.queue.abandon(place)
            raise
        finally:
            state["waiting"] = False
            gone.cancel()


def parse_command_body(body: bytes) -> Command:
    """The command in a request body. Raises `HttpError` with the protocol's own sentences."""
    fields = parse_object(body)
    if fields is None:
        raise HttpError(400, 'Invalid JSON body — expected { "cmd": "..." }')
    try:
        text = fields.raw_text("cmd") or ""
        if not text.strip():
            raise HttpError(400, 'Empty command — provide non-empty "cmd" field')
        topic = parse_topic(fields.text("topic"))
        return Command(text, topic, fields.text("request_id"), working_directory(fields))
    except (BodyError, InvalidTopicError) as error:
        raise HttpError(400, str(error)) from error


def working_directory(fields: JsonObject) -> str | None:
    """The directory a client vouches for. Raises `BodyError` when it is none."""
    cwd = fields.raw_text("cwd")
    if not cwd:
        return None
    if "\0" in cwd or not cwd.startswith("/") or not Path(cwd).is_dir():
        raise BodyError("cwd must be an absolute path to a directory")
    return cwd
