"""One agent call, whatever answers it: hooks, execution, memory, observers, in a fixed order.

message altered, before-hooks, model or human or code, record kept, result seen, response altered,
done.
"""

import asyncio
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass
from typing import Any, Protocol
from uuid import uuid4

from msgspec import UNSET

from stringd.runs.agents.hooks import CallInfo, Hooks
from stringd.runs.agents.memory import Memory
from stringd.runs.errors import CallError
from stringd.system.clock import timestamp
from stringd.wire.runs.stream import AgentStreamEvent, Done
from stringd.wire.runs.types import (
    AgentCallResult,
    ContextUsage,
    ConversationRecord,
    RetentionEvent,
    Usage,
)


@dataclass(frozen=True)
class AgentAnswer:
    """What an agent's body produced for one message."""

    text: str
    usage: Usage
    context_usage: ContextUsage | None
    finish_reason: str
    response_messages: list[dict[str, Any]]


def plain_answer(text: str) -> AgentAnswer:
    """An answer nobody paid tokens for."""
    return AgentAnswer(text, Usage(), None, "stop", [{"role": "assistant", "content": text}])


class CallObserver(Protocol):
    """The run around an agent: it steers the message, and sees, keeps and shows what happens."""

    async def steer(self, agent: "RunAgent", message: str, path: str) -> str: ...

    async def steer_between(self, agent: "RunAgent", key: str) -> list[str]: ...

    async def stream(self, agent: "RunAgent", event: AgentStreamEvent) -> None: ...

    async def record(self, agent: "RunAgent", record: ConversationRecord, path: str) -> None: ...

    async def retention(self, event: RetentionEvent) -> None: ...

    async def output(self, agent: "RunAgent", result: AgentCallResult) -> None: ...


class AgentTurn:
    """One call in flight, as a body sees it."""

    def __init__(self, agent: "RunAgent", info: CallInfo, message: str, path: str) -> None:
        self.agent = agent
        self.info = info
        self.message = message
        self.path = path

    async def emit(self, event: AgentStreamEvent) -> None:
        """Show one stream event to the hooks and to the run."""
        for hook in self.agent.hooks.on_stream_event:
            await hook(self.info, event)
        await self.agent.observer.stream(self.agent, event)


class Body(Protocol):
    """What answers: a model, a human or code. `shows` is False when nobody should watch it."""

    @property
    def shows(self) -> bool: ...

    @property
    def model(self) -> str | None: ...

    @property
    def context_window(self) -> int | None: ...

    async def answer(self, call: AgentTurn) -> AgentAnswer: ...


class RunAgent:
    """A named agent of one run, with its memory."""

    def __init__(
        self, name: str, body: Body, memory: Memory, hooks: Hooks, observer: CallObserver
    ) -> None:
        self.name = name
        self.body = body
        self.memory = memory
        self.hooks = hooks
        self.observer = observer
        self._called = False

    async def call(self, message: str, path: str) -> AgentCallResult:
        """Answer a message. `path` names this call within the run. Raises `CallError`."""
        info = CallInfo(self.name, first=not self._called)
        self._called = True
        try:
            return await self._call(info, message, path)
        except asyncio.CancelledError:
            raise
        except Exception as error:  # hooks and custom code may raise anything
            raise CallError(error) from error

    async def replayed(self, record: ConversationRecord) -> AgentCallResult:
        """The result of a call an earlier segment completed."""
        info = CallInfo(self.name, first=not self._called)
        self._called = True
        result = _result(record.text, record)
        result.text = await self.hooks.response(info, result.text)
        return result

    async def _call(self, info: CallInfo, message: str, path: str) -> AgentCallResult:
        message = await self.hooks.message(info, message)
        message = await self.observer.steer(self, message, path)
        await self.hooks.before(info, message)
        call = AgentTurn(self, info, message, path)
        answer = await self.body.answer(call)
        record = _record(self.name, call.message, answer)
        self.memory.records.append(record)
        await self.observer.record(self, record, path)
        result = _result(record.text, record)
        await self.hooks.result(info, result)
        await self.observer.output(self, result)
        result = _result(await self.hooks.response(info, record.text), record)
        await call.emit(Done(result=result))
        return result


def _record(agent_name: str, message: str, answer: AgentAnswer) -> ConversationRecord:
    return ConversationRecord(
        id=str(uuid4()),
        agent_name=agent_name,
        created_at=timestamp(),
        user_message={"role": "user", "content": message},
        response_messages=answer.response_messages,
        text=answer.text,
        usage=answer.usage,
        context_usage=UNSET if answer.context_usage is None else answer.context_usage,
        finish_reason=answer.finish_reason,
    )


def _result(text: str, record: ConversationRecord) -> AgentCallResult:
    return AgentCallResult(
        text=text,
        usage=record.usage,
        context_usage=record.context_usage,
        finish_reason=record.finish_reason,
    )


class UserBody:
    """The human: asked when nothing came in, else the message goes through.

    `ask` gets the agent's name and the path of the call.
    """

    shows = False
    model: str | None = None
    context_window: int | None = None

    def __init__(
        self,
        require_input: bool,
        preset_message: str | None,
        ask: Callable[[str, str], Awaitable[str]],
    ) -> None:
        self._require_input = require_input
        self._preset = preset_message
        self._ask = ask

    async def answer(self, call: AgentTurn) -> AgentAnswer:
        if self._require_input:
            text = call.message or await self._ask(call.agent.name, call.path)
        else:
            text = call.message if self._preset is None else self._preset
        return plain_answer(text)


class CustomBody:
    """Registered code."""

    shows = True
    model: str | None = None
    context_window: int | None = None

    def __init__(self, code: Callable[..., Awaitable[str]], config: Mapping[str, Any]) -> None:
        self._code = code
        self._config = config

    async def answer(self, call: AgentTurn) -> AgentAnswer:
        return plain_answer(await self._code(call.message, self._config))
