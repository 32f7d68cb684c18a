"""`POST /exec`: one command in, three events out. This is the hot path; keep it short."""

import asyncio
from collections.abc import Awaitable
from functools import lru_cache
from pathlib import Path
from time import perf_counter
from typing import TYPE_CHECKING, Final

import msgspec

from stringd.runtime.editing.paths import is_directory
from stringd.runtime.errors import (
    CallerLeftError,
    QueueFullError,
    QueueTimeoutError,
    TopicClosedError,
    UnknownUserError,
)
from stringd.runtime.runtime import Answer, Saving
from stringd.runtime.topics.call import Caller
from stringd.server.http.messages import (
    CORS_HEADERS,
    ClientGone,
    HttpError,
    HttpRequest,
    HttpResponse,
)
from stringd.server.pages import speaker_of
from stringd.system.vouched import NOTHING_VOUCHED, vouched
from stringd.wire.body import BodyError, parse_exec_body
from stringd.wire.exec import SSE_HEADERS, command_label, exec_events
from stringd.wire.result import is_sendable, sendable
from stringd.wire.topic import InvalidTopicError, Topic, parse_topic

if TYPE_CHECKING:
    from stringd.runtime.runtime import Runtime
    from stringd.runtime.topics.session import Slot
    from stringd.server.log import EventLog

_HEAD: Final = SSE_HEADERS + CORS_HEADERS
_LONG: Final = 64 * 1024
"""Longer text that is not UTF-8 is tidied beside the loop."""

_parse_topic = lru_cache(maxsize=4096)(parse_topic)


class ExecRequest(msgspec.Struct, frozen=True, gc=False):
    """A validated request: what to run, where, and how to name it in the answer."""

    user_id: str
    text: str
    topic: Topic
    request_id: str | None
    cwd: str | None
    diff: bool | None = None
    env: dict[str, str] | None = None


class ExecEndpoint:
    """Runs commands in their topics' turn."""

    def __init__(self, runtime: "Runtime", log: "EventLog", queue_timeout: float) -> None:
        self._runtime = runtime
        self._log = log
        self._queue_timeout = queue_timeout

    def __call__(self, request: HttpRequest) -> HttpResponse | Awaitable[HttpResponse]:
        try:
            user_id = require_user(self._runtime, request)
            command = parse_request(user_id, request.typed_body())
        except HttpError as error:
            self._log.info("exec.validation", status=error.status, error=error)
            raise
        slot = self._runtime.topics.slot(user_id, command.topic)
        if slot.queue.enter_free():
            return self._run(request, command, slot)
        return self._run_beside(request, command, slot) or self._run_in_turn(request, command, slot)

    def _run_in_turn(
        self, request: HttpRequest, command: ExecRequest, slot: "Slot"
    ) -> HttpResponse | Awaitable[HttpResponse]:
        try:
            turn = slot.queue.take_turn(
                self._queue_timeout, request.peer.left, command=command.text
            )
        except QueueFullError as error:
            self._log.info("exec.queue_full", userId=slot.user_id, topic=slot.topic)
            raise HttpError(429, "QUEUE_FULL", slot.crowded) from error
        if turn is None:
            return self._run(request, command, slot)
        self._log.info("exec.queued", userId=slot.user_id, topic=slot.topic)
        return self._run_later(request, command, slot, turn)

    def _run(
        self, request: HttpRequest, command: ExecRequest, slot: "Slot"
    ) -> HttpResponse | Awaitable[HttpResponse]:
        """Run the command now that it has its turn; most commands answer at once."""
        started = perf_counter() if self._log.enabled else 0.0
        try:
            answer = self._runtime.execute(slot, command.text, _caller(request, command))
        except UnknownUserError as error:
            self._runtime.topics.leave(slot)
            raise HttpError(401, str(error)) from error
        except BaseException:
            self._runtime.topics.leave(slot)
            raise
        if isinstance(answer, Answer):
            self._runtime.topics.leave(slot)
            return self._response(command, answer, started)
        if not isinstance(answer, Saving):
            # What takes time shows soon that it runs.
            request.peer.stream_soon(_HEAD)
        return self._finish(command, slot, answer, started)

    def _run_beside(
        self, request: HttpRequest, command: ExecRequest, slot: "Slot"
    ) -> Awaitable[HttpResponse] | None:
        """Answer what speaks to the running command; None when this must wait instead."""
        started = perf_counter()
        answer = self._runtime.beside(slot, command.text, _caller(request, command))
        if answer is None:
            return None
        request.peer.stream_soon(_HEAD)
        return self._answer(command, answer, started)

    async def _run_later(
        self, request: HttpRequest, command: ExecRequest, slot: "Slot", turn: Awaitable[None]
    ) -> HttpResponse:
        try:
            await turn
        except CallerLeftError as error:
            raise ClientGone from error
        except QueueTimeoutError as error:
            self._log.info("exec.queue_timeout", userId=slot.user_id, topic=slot.topic)
            raise HttpError(504, "QUEUE_TIMEOUT", str(error)) from error
        except TopicClosedError:
            self._log.info("exec.dropped", userId=slot.user_id, topic=slot.topic)
            return self._response(command, Answer(slot.dropped(command.text), None), perf_counter())
        response = self._run(request, command, slot)
        return response if isinstance(response, HttpResponse) else await response

    async def _finish(
        self, command: ExecRequest, slot: "Slot", answer: Awaitable[Answer], started: float
    ) -> HttpResponse:
        try:
            return await self._answer(command, answer, started)
        finally:
            self._runtime.topics.leave(slot)

    async def _answer(
        self, command: ExecRequest, answer: Awaitable[Answer], started: float
    ) -> HttpResponse:
        return self._response(command, await _tidied(await answer), started)

    def _response(self, command: ExecRequest, answer: Answer, started: float) -> HttpResponse:
        label = command_label(command.text)
        body = exec_events(
            user_id=command.user_id,
            topic=command.topic,
            label=label,
            request_id=command.request_id,
            result=answer.result,
            meta=answer.meta,
            with_diff=answer.result.diff is not None and self._shows_diff(command),
        )
        if self._log.enabled:
            self._log.info(
                "exec",
                userId=command.user_id,
                topic=command.topic,
                cmd=label.partition(" ")[0],
                ok=answer.result.ok,
                code=answer.result.code,
                durationMs=round((perf_counter() - started) * 1000, 1),
            )
        return HttpResponse(200, _HEAD, body, says_keep_alive=True)

    def _shows_diff(self, command: ExecRequest) -> bool:
        """Whether this reply shows what an edit changed: the request says, or its user, or all."""
        if command.diff is not None:
            return command.diff
        user = self._runtime.topics.users.get(command.user_id)
        if user is None or user.diffs is msgspec.UNSET:
            return self._runtime.services.settings.diffs
        return user.diffs


async def _tidied(answer: Answer) -> Answer:
    """The answer with content that can be sent, if finding that out takes long."""
    content = answer.result.content
    if content is None or len(content) <= _LONG or is_sendable(content):
        return answer
    tidy = await asyncio.to_thread(sendable, content)
    return Answer(msgspec.structs.replace(answer.result, content=tidy), answer.meta)


def _caller(request: HttpRequest, command: ExecRequest) -> Caller:
    client = request.headers.get(b"user-agent", b"")
    speaker = speaker_of(request.peer.visitor, request.headers)
    said = vouched(command.env) if command.env else NOTHING_VOUCHED
    return Caller(command.cwd, None, speaker, client, said)


def named_user(request: HttpRequest) -> str | None:
    """The user a request names; later clients call it an agent."""
    return request.header(b"x-user-id") or request.header(b"x-agent-id")


def require_user(runtime: "Runtime", request: HttpRequest) -> str:
    """The registered user a request acts as. Raises `HttpError`."""
    user_id = named_user(request)
    if not user_id:
        raise HttpError(400, "X-User-Id header required")
    if runtime.topics.users.get(user_id) is None:
        raise HttpError(401, f"Unknown user: {user_id}")
    return user_id


def parse_request(user_id: str, body: bytes) -> ExecRequest:
    """The command in a request body. Raises `HttpError` with the protocol's own sentences."""
    try:
        fields = parse_exec_body(body)
        if fields is None:
            raise HttpError(400, 'Invalid JSON body — expected { "cmd": "..." }')
        text = fields.cmd
        if not text or text.isspace():
            raise HttpError(400, 'Empty command — provide non-empty "cmd" field')
        topic = _parse_topic(fields.topic)
        request_id = fields.request_id.strip() or None if fields.request_id else None
        cwd = working_directory(fields.cwd)
        return ExecRequest(user_id, text, topic, request_id, cwd, fields.diff, fields.env)
    except (BodyError, InvalidTopicError) as error:
        raise HttpError(400, str(error)) from error


def working_directory(cwd: str | None) -> str | None:
    """The directory a client vouches for. Raises `BodyError` when it is none."""
    if not cwd:
        return None
    if "\0" in cwd or not cwd.startswith("/") or not is_directory(Path(cwd)):
        raise BodyError("cwd must be an absolute path to a directory")
    return cwd
