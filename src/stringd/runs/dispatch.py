"""Each request to its handler, each refusal to its error message."""

import asyncio
import logging
from collections.abc import Awaitable, Callable, Coroutine
from typing import TYPE_CHECKING, Any

from stringd.runs.audience import Client
from stringd.runs.errors import RefusedError, RunsError
from stringd.wire.runs import Refusal, decode_request, messages, requests

if TYPE_CHECKING:
    from stringd.runs.service import RunService

log = logging.getLogger(__name__)

Answer = messages.Message | None


class Dispatcher:
    """Frames in, service calls out. Answers go to the client the frame came from."""

    def __init__(self, service: "RunService") -> None:
        self._service = service
        self._now: dict[type, Callable[[Any, Client], Answer]] = {
            requests.Ping: lambda _request, _client: messages.Pong(),
            requests.StartRun: service.start_run,
            requests.ContinueRun: service.continue_run,
            requests.StopRun: lambda request, _client: service.stop_run(request.run_id),
            requests.UserInput: lambda request, _client: service.user_input(request),
            requests.QuestionResponse: lambda request, _: service.question_response(request),
            requests.PermissionDecision: service.permission_decision,
            requests.UpdatePolicy: lambda request, _client: service.update_policy(request),
            requests.SteerRun: service.steer_run,
            requests.Subscribe: service.subscribe,
            requests.Unsubscribe: lambda request, client: service.unsubscribe(
                request.run_id, client
            ),
            requests.ListStrategies: self._list_strategies,
        }
        self._later: dict[type, Callable[[Any, Client], Awaitable[Answer]]] = {
            requests.PrepareRun: service.prepare_run,
            requests.ListRuns: self._list_runs,
            requests.GetTimeline: lambda request, _client: service.timeline(request.run_id),
        }

    def handle(self, request: type, answer: Callable[[Any, Client], Awaitable[Answer]]) -> None:
        """Plug in, or replace, the handler of one kind of request."""
        self._later[request] = answer

    def receive(self, client: Client, frame: str | bytes) -> None:
        request = decode_request(frame)
        if isinstance(request, Refusal):
            client.reply(
                messages.Error(
                    code=request.code, message=request.message, request_id=request.request_id
                )
            )
            return
        sync = self._now.get(type(request))
        if sync is not None:
            self._answer_now(sync, request, client)
        else:
            later = self._later.get(type(request), _not_implemented)
            self.background(client, self._answer_later(later, request, client))

    def gone(self, client: Client) -> None:
        self._service.disconnect(client)

    def background(self, client: Client, work: Coroutine[Any, Any, None]) -> None:
        """Do work for a client without keeping its next frame waiting."""
        task = asyncio.create_task(work)
        client.tasks.add(task)
        task.add_done_callback(client.tasks.discard)

    def _answer_now(
        self, handler: Callable[[Any, Client], Answer], request: requests.Request, client: Client
    ) -> None:
        try:
            answer = handler(request, client)
        except Exception as error:  # noqa: BLE001  # one bad request must not end the connection
            answer = _error(error)
        _send(answer, request, client)

    async def _answer_later(
        self,
        handler: Callable[[Any, Client], Awaitable[Answer]],
        request: requests.Request,
        client: Client,
    ) -> None:
        try:
            answer = await handler(request, client)
        except Exception as error:  # noqa: BLE001  # one bad request must not end the connection
            answer = _error(error)
        _send(answer, request, client)

    def _list_strategies(self, _request: requests.ListStrategies, _client: Client) -> Answer:
        return messages.StrategyList(runs=self._service.summaries())

    async def _list_runs(self, request: requests.ListRuns, _client: Client) -> Answer:
        cwd = request.cwd if isinstance(request.cwd, str) else None
        return messages.RunList(runs=await self._service.overviews(cwd))


def _send(answer: Answer, request: requests.Request, client: Client) -> None:
    if answer is not None:
        answer.request_id = request.request_id
        client.reply(answer)


def _error(error: Exception) -> messages.Error:
    if isinstance(error, RunsError):
        return messages.Error(code=error.code, message=str(error))
    log.error("a request failed unexpectedly", exc_info=error)
    return messages.Error(code="INTERNAL_ERROR", message=str(error) or type(error).__name__)


async def _not_implemented(request: requests.Request, _client: Client) -> Answer:
    name = request.__struct_config__.tag
    raise RefusedError("NOT_IMPLEMENTED", f"{name} is not available in this daemon")
