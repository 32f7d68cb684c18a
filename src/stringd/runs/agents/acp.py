"""An agent that is somebody else's program: a coding agent the user has, over ACP.

What it says, thinks, plans and does are events of the run, its permission requests are prompts of
the run, and the run's stop is its stop.
"""

import asyncio
from collections.abc import Mapping, Sequence
from typing import Any, Final

from stringd.runs.acp.session import CANCEL_SECONDS, AcpSession
from stringd.runs.agents.acp_host import RunHost
from stringd.runs.agents.acp_turn import AcpTurn
from stringd.runs.agents.agent import AgentAnswer, AgentTurn
from stringd.runs.strategy.definition import AcpAgent
from stringd.runs.tools.context import ToolContext
from stringd.runs.tools.environment import child_environment
from stringd.wire.runs import stream
from stringd.wire.runs.types import ConversationRecord, Usage

_KEY: Final = "acpSession"
_ENDINGS: Final = {"end_turn": "stop", "max_tokens": "length", "refusal": "content-filter"}


class AcpBody:
    """One coding agent of one segment; its process starts with the first call."""

    shows = True
    context_window: int | None = None

    def __init__(self, definition: AcpAgent, context: ToolContext) -> None:
        self.model: str | None = f"acp/{definition.label}"
        self._definition = definition
        self._context = context
        self._host = RunHost(context)
        self._session: AcpSession | None = None
        self._used = Usage()

    async def answer(self, call: AgentTurn) -> AgentAnswer:
        session, fresh = await self._started(call)
        turn = AcpTurn(call)
        self._host.turn = turn
        message = call.message if not fresh else self._introduced(call)
        await call.emit(stream.StepStart())
        try:
            ended = await session.prompt(message)
            while turn.reasons:
                # The protocol has no place for why something was denied; the next prompt has.
                told, turn.reasons = "\n".join(turn.reasons), []
                await turn.say("\n\n")
                ended = await session.prompt(told)
        except asyncio.CancelledError:
            await self._stop(session)
            raise
        finally:
            await turn.end_thought()
        reason = _ENDINGS.get(str(ended.get("stopReason")), "stop")
        said = {"role": "assistant", "content": turn.text, _KEY: session.id}
        return AgentAnswer(turn.text, self._spent(ended), None, reason, [said])

    async def close(self) -> None:
        """End the agent's process."""
        session, self._session = self._session, None
        if session is not None:
            await session.close()

    async def _started(self, call: AgentTurn) -> tuple[AcpSession, bool]:
        """The session, and whether it knows nothing of what was said before."""
        if self._session is not None:
            return self._session, False
        session = AcpSession(self._definition.command, self._host)
        self._session = session
        environment = child_environment(self._definition.environment)
        earlier = _earlier(call.agent.memory.records)
        known = await session.start(environment, self._context.cwd, earlier)
        return session, not known

    def _introduced(self, call: AgentTurn) -> str:
        """The first message of a session: what it is for, and what was said in others."""
        parts = [self._definition.system_prompt or ""]
        for record in call.agent.memory.records:
            parts.append(f"Before, you were asked:\n{record.user_message.get('content')}")
            parts.append(f"and answered:\n{record.text}")
        return "\n\n".join([*filter(None, parts), call.message])

    async def _stop(self, session: AcpSession) -> None:
        try:
            async with asyncio.timeout(CANCEL_SECONDS):
                await session.cancel()
        except TimeoutError:
            pass
        finally:
            await self.close()

    def _spent(self, ended: Mapping[str, Any]) -> Usage:
        """What this turn used: agents report what the whole session has."""
        told = ended.get("usage")
        if not isinstance(told, dict):
            return Usage()
        now = Usage(
            prompt_tokens=int(told.get("inputTokens") or 0),
            completion_tokens=int(told.get("outputTokens") or 0),
        )
        before, self._used = self._used, now
        spent = Usage(
            prompt_tokens=max(0, now.prompt_tokens - before.prompt_tokens),
            completion_tokens=max(0, now.completion_tokens - before.completion_tokens),
        )
        self._context.desk.budget.spend(spent, None)
        return spent


def _earlier(records: Sequence[ConversationRecord]) -> str | None:
    for record in reversed(records):
        for message in record.response_messages:
            if isinstance(message.get(_KEY), str):
                return str(message[_KEY])
    return None
