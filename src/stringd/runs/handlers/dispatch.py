"""Each request to its handler, each refusal to its error message."""

import asyncio
import logging
from collections.abc import Awaitable, Callable, Coroutine, Mapping
from typing import Any, Final, NamedTuple

from msgspec import UNSET

from stringd.runs.errors import NotRecordedError, RunServiceError, UntrustedError
from stringd.runs.handlers.client import ConnectedClient
from stringd.wire.runs import Refusal, decode_request, messages, requests

log = logging.getLogger(__name__)

Answer = messages.Message | None
Now = Callable[[Any, ConnectedClient], Answer]
Later = Callable[[Any, ConnectedClient], Awaitable[Answer]]


DECISIONS: Final = frozenset(
    {
        requests.PermissionDecision,
        requests.QuestionResponse,
        requests.UserInput,
        requests.UpdatePolicy,
        requests.RevokeDecision,
        requests.SetCredential,
        requests.RemoveCredential,
        requests.HubInstall,
        requests.HubUpdate,
        requests.HubRemove,
    }
)
"""What the owner decides: not taken from a process that the daemon started."""
_SIGNED: Final = DECISIONS | {requests.SteerRun}
"""Requests the timeline keeps with the name of their sender."""


class Handlers(NamedTuple):
    """By kind of request: those answered before the next frame, and those that take a while."""

    now: Mapping[type, Now]
    later: Mapping[type, Later]


class Dispatcher:
    """Frames in, handlers called. Answers go to the client the frame came from."""

    def __init__(self, handlers: Handlers, gone: Callable[[ConnectedClient], None]) -> None:
        self._handlers = handlers
        self._gone = gone

    def receive(self, client: ConnectedClient, frame: str | bytes) -> None:
        request = decode_request(frame)
        if isinstance(request, Refusal):
            client.reply(
                messages.Error(
                    code=request.code, message=request.message, request_id=request.request_id
                )
            )
            return
        if client.speaker is not None and type(request) in _SIGNED:
            client.hold()
            background(client, self._ask_who(request, client))
        else:
            self._handle(request, client)

    async def _ask_who(self, request: requests.ClientMessage, client: ConnectedClient) -> None:
        """Handle a request that counts as the word of whoever sent it."""
        try:
            sender = await client.identify()
            if sender is None and type(request) in DECISIONS:
                client.reply(_not_yours(request))
            else:
                self._handle(request, client)
        finally:
            client.go_on()

    def _handle(self, request: requests.ClientMessage, client: ConnectedClient) -> None:
        now = self._handlers.now.get(type(request))
        if now is not None:
            _answer_now(now, request, client)
        else:
            background(client, _answer_later(self._handlers.later[type(request)], request, client))

    def gone(self, client: ConnectedClient) -> None:
        self._gone(client)


def _not_yours(request: requests.ClientMessage) -> messages.Error:
    name = type(request).__struct_config__.tag
    return messages.Error(
        code="FORBIDDEN",
        message=f"{name} is refused: it came from a process this daemon started, or from one that "
        "cannot be identified. A person decides that in a terminal or page of their own: "
        "stringd runs shows what waits and the command that answers it.",
        request_id=request.request_id,
    )


def background(client: ConnectedClient, work: Coroutine[Any, Any, None]) -> asyncio.Task[None]:
    """Do work for a client without keeping its next frame waiting."""
    task = asyncio.create_task(work)
    client.add_task(task)
    return task


def _answer_now(handler: Now, request: requests.RunsRequest, client: ConnectedClient) -> None:
    try:
        answer = handler(request, client)
    except Exception as error:  # noqa: BLE001  # one bad request must not end the connection
        answer = _error(error)
    _send(answer, request, client)


async def _answer_later(
    handler: Later, request: requests.RunsRequest, client: ConnectedClient
) -> None:
    async with client.working():
        try:
            answer = await handler(request, client)
        except Exception as error:  # noqa: BLE001  # one bad request must not end the connection
            answer = _error(error)
        _send(answer, request, client)


def _send(answer: Answer, request: requests.RunsRequest, client: ConnectedClient) -> None:
    if answer is not None:
        answer.request_id = request.request_id
        client.reply(answer)


def _error(error: Exception) -> messages.Error:
    if isinstance(error, UntrustedError):
        return messages.Error(code=error.code, message=str(error), trust=error.path or UNSET)
    if isinstance(error, NotRecordedError):
        return messages.Error(code="INTERNAL_ERROR", message=str(error))
    if isinstance(error, RunServiceError):
        return messages.Error(code=error.code, message=str(error))
    log.error("a request failed unexpectedly", exc_info=error)
    return messages.Error(code="INTERNAL_ERROR", message=str(error) or type(error).__name__)
