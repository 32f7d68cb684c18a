"""Each request to its handler, each refusal to its error message."""

import asyncio
import logging
from collections.abc import Awaitable, Callable, Coroutine, Mapping
from typing import Any, NamedTuple

from stringd.runs.errors import RunServiceError
from stringd.runs.handlers.client import RunsClient
from stringd.wire.runs import Refusal, decode_request, messages, requests

log = logging.getLogger(__name__)

Answer = messages.Message | None
Now = Callable[[Any, RunsClient], Answer]
Later = Callable[[Any, RunsClient], Awaitable[Answer]]


class Handlers(NamedTuple):
    """By kind of request: those answered before the next frame, and those that take a while."""

    now: Mapping[type, Now]
    later: Mapping[type, Later]


class Dispatcher:
    """Frames in, handlers called. Answers go to the client the frame came from."""

    def __init__(self, handlers: Handlers, gone: Callable[[RunsClient], None]) -> None:
        self._handlers = handlers
        self._gone = gone

    def receive(self, client: RunsClient, frame: str | bytes) -> None:
        request = decode_request(frame)
        if isinstance(request, Refusal):
            client.reply(
                messages.Error(
                    code=request.code, message=request.message, request_id=request.request_id
                )
            )
            return
        now = self._handlers.now.get(type(request))
        if now is not None:
            _answer_now(now, request, client)
        else:
            background(client, _answer_later(self._handlers.later[type(request)], request, client))

    def gone(self, client: RunsClient) -> None:
        self._gone(client)


def background(client: RunsClient, work: Coroutine[Any, Any, None]) -> asyncio.Task[None]:
    """Do work for a client without keeping its next frame waiting."""
    task = asyncio.create_task(work)
    client.tasks.add(task)
    task.add_done_callback(client.tasks.discard)
    return task


def _answer_now(handler: Now, request: requests.RunsRequest, client: RunsClient) -> None:
    try:
        answer = handler(request, client)
    except Exception as error:  # noqa: BLE001  # one bad request must not end the connection
        answer = _error(error)
    _send(answer, request, client)


async def _answer_later(handler: Later, request: requests.RunsRequest, client: RunsClient) -> None:
    try:
        answer = await handler(request, client)
    except Exception as error:  # noqa: BLE001  # one bad request must not end the connection
        answer = _error(error)
    _send(answer, request, client)


def _send(answer: Answer, request: requests.RunsRequest, client: RunsClient) -> None:
    if answer is not None:
        answer.request_id = request.request_id
        client.reply(answer)


def _error(error: Exception) -> messages.Error:
    if isinstance(error, RunServiceError):
        return messages.Error(code=error.code, message=str(error))
    log.error("a request failed unexpectedly", exc_info=error)
    return messages.Error(code="INTERNAL_ERROR", message=str(error) or type(error).__name__)
