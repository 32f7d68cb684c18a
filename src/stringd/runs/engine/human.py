"""The human of a run: asked for input, answers and permissions, each recorded in its timeline.

What an interrupted segment asked about the very same thing keeps its id, and is not asked again
when it has been answered since.
"""

from collections.abc import Awaitable, Callable
from itertools import count
from typing import Any, Literal
from uuid import uuid4

import msgspec
from msgspec import UNSET

from stringd.runs.agents.tool_calls import current_call
from stringd.runs.engine.pending import Prompt
from stringd.runs.engine.run import Run
from stringd.runs.errors import UnansweredError
from stringd.runs.guard.errors import Denied
from stringd.runs.guard.permissions import PermissionRequest, Verdicts
from stringd.runs.record.events import DecidedBy, PermissionDecided, PromptAsked, PromptKind
from stringd.runs.record.recorder import Recorder
from stringd.runs.record.resume import Journal, approval_key, is_approval
from stringd.system.clock import timestamp
from stringd.wire.runs import messages
from stringd.wire.runs.approvals import TOOL_NAME, StepApproval, approval_question, read_approval
from stringd.wire.runs.types import PolicyName


class Human:
    """How one segment reaches the human. `seconds` is how long an answer may take.

    `first_input` answers the first request for input, when there is one.
    """

    def __init__(
        self,
        run: Run,
        recorder: Recorder,
        journal: Journal,
        seconds: float | None,
        first_input: str = "",
    ) -> None:
        self._run = run
        self._recorder = recorder
        self._journal = journal
        self._seconds = seconds
        self._first_input = first_input

    async def input(self, agent_name: str, path: str) -> str:
        """What the human tells an agent at this place of the flow. Raises `UnansweredError`."""
        given, self._first_input = self._first_input, ""
        if given:
            return given

        async def send(_request_id: str) -> str:
            prompt = messages.RequestInput(run_id=self._run.id, agent_name=agent_name, prompt="")
            prompt.request_id = self._run.request_id
            return await self._run.ask(prompt, self._seconds)

        return await self._ask(f"{path}?1", "input", agent_name, "", send)

    async def question(self, agent_name: str, question: str) -> str:
        """The answer to an agent's question. Raises `UnansweredError`."""

        async def send(request_id: str) -> str:
            prompt = messages.RequestQuestion(
                run_id=self._run.id,
                request_id=request_id,
                agent_name=agent_name,
                question=question,
            )
            return await self._run.ask(prompt, self._seconds)

        call = current_call()
        if call is None:
            return await send(str(uuid4()))
        return await self._ask(call.prompt_key(), "question", agent_name, question, send)

    async def approval(self, name: str, text: str, message: str, path: str) -> StepApproval:
        """What the human decides at a step of the flow. Raises `UnansweredError`."""
        for number in count(1):
            question = approval_question(text, message, again=number > 1)

            async def send(request_id: str, question: str = question) -> str:
                prompt = _approval(self._run.id, request_id, name, question)
                return await self._run.ask(prompt, self._seconds)

            key = approval_key(path, number)
            said = read_approval(await self._ask(key, "question", name, question, send))
            if said is not None:
                return said
        raise AssertionError("unreachable")

    def verdicts(self) -> Verdicts:
        """How tools of the run come to a yes or a no."""
        return Verdicts(self._permission, self._policy_decided, self._chain_changed)

    async def _permission(self, wish: PermissionRequest) -> str:
        async def send(request_id: str) -> str:
            prompt = _request(self._run.id, request_id, wish)
            try:
                return await self._run.ask(prompt, self._seconds)
            except UnansweredError as error:
                self._policy_decided(wish, "deny", "prompt-timeout")
                raise Denied(f"{error} whether {wish.resource} is allowed") from None

        call = current_call()
        if call is None:
            return await send(str(uuid4()))
        self._recorder.tool_waiting(call.key, waiting=True)
        key, about = call.prompt_key(), msgspec.json.encode(wish).decode()
        decision = await self._ask(key, "permission", wish.agent_name, about, send)
        self._recorder.tool_waiting(call.key, waiting=False)
        return decision

    def _policy_decided(
        self, wish: PermissionRequest, verdict: Literal["allow", "deny"], policy: str
    ) -> None:
        settled = decided(wish, verdict, DecidedBy(kind="policy", via=policy))
        self._recorder.permission_decided(settled)

    def _chain_changed(self, tool: str, chain: list[str]) -> None:
        policies = [PolicyName(name=name) for name in chain]
        self._run.publish(messages.PolicyUpdated(run_id=self._run.id, tool=tool, policies=policies))

    async def _ask(
        self,
        key: str,
        kind: PromptKind,
        agent_name: str,
        about: str,
        send: Callable[[str], Awaitable[str]],
    ) -> str:
        """The human's answer. `send` asks under an id and waits."""
        before = self._journal.prompt(key, about)
        if before is not None and before.answer is not None:
            return before.answer
        asked = (
            self._recorder.prompt_asked(key, kind, agent_name, about)
            if before is None
            else before.asked
        )
        answer = await send(asked.request_id)
        self._recorder.prompt_answered(asked.request_id, answer)
        return answer


def _request(run_id: str, request_id: str, wish: PermissionRequest) -> messages.RequestPermission:
    details: dict[str, Any] | None = dict(wish.details) if wish.details else None
    return messages.RequestPermission(
        run_id=run_id,
        request_id=request_id,
        agent_name=wish.agent_name,
        tool_name=wish.tool_name,
        operation=wish.operation,
        resource=wish.resource,
        details=details or UNSET,
    )


def _approval(run_id: str, request_id: str, name: str, question: str) -> messages.RequestQuestion:
    return messages.RequestQuestion(
        run_id=run_id,
        request_id=request_id,
        agent_name=name,
        tool_name=TOOL_NAME,
        question=question,
    )


def decided(
    wish: PermissionRequest, decision: str, by: DecidedBy, reason: str = "", command: str = ""
) -> PermissionDecided:
    """A decision as the timeline keeps it."""
    return PermissionDecided(
        ts=timestamp(),
        decision=decision,
        agent_name=wish.agent_name,
        tool_name=wish.tool_name,
        resource=wish.resource,
        operation=wish.operation,
        decided_by=by,
        reason=reason or UNSET,
        command=command or UNSET,
    )


def prompt_of(run_id: str, asked: PromptAsked) -> Prompt:
    """A prompt on record as it was sent."""
    agent = asked.agent_name
    if asked.kind == "permission":
        return _request(run_id, asked.request_id, asked_for(asked))
    if is_approval(asked.key):
        return _approval(run_id, asked.request_id, agent, asked.about)
    if asked.kind == "question":
        return messages.RequestQuestion(
            run_id=run_id, request_id=asked.request_id, agent_name=agent, question=asked.about
        )
    return messages.RequestInput(run_id=run_id, agent_name=agent, prompt="")


def asked_for(prompt: messages.RequestPermission | PromptAsked) -> PermissionRequest:
    """What a permission request was about, whether it is open or on record."""
    if isinstance(prompt, PromptAsked):
        return msgspec.json.decode(prompt.about, type=PermissionRequest)
    tool, details = prompt.tool_name or "", prompt.details or None
    return PermissionRequest(prompt.agent_name, tool, prompt.operation, prompt.resource, details)
