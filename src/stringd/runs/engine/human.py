"""A run's permissions: asked of its human, decided by its policies, and kept in its timeline."""

from typing import Any, Literal
from uuid import uuid4

import msgspec
from msgspec import UNSET

from stringd.runs.engine.run import Run
from stringd.runs.errors import UnansweredError
from stringd.runs.guard.errors import Denied
from stringd.runs.guard.permissions import PermissionRequest, Verdicts
from stringd.runs.record.events import DecidedBy, HumanInput, PermissionDecided, PromptAsked
from stringd.runs.record.recorder import open_call
from stringd.runs.record.store import RunStore
from stringd.system.clock import timestamp
from stringd.wire.runs import messages
from stringd.wire.runs.types import PolicyName


def verdicts(run: Run, store: RunStore) -> Verdicts:
    """How tools of the run come to a yes or a no."""

    async def ask(wish: PermissionRequest) -> str:
        async def send(request_id: str) -> str:
            try:
                return await run.ask(_request(run.id, request_id, wish))
            except UnansweredError as error:
                policy_decided(wish, "deny", "prompt-timeout")
                raise Denied(f"{error} whether {wish.resource} is allowed") from None

        call = open_call.get()
        if call is None:
            return await send(str(uuid4()))
        call.ledger.wait(call.key, waiting=True)
        key, about = call.prompt_key(), msgspec.json.encode(wish).decode()
        decision = await call.ledger.ask(key, "permission", wish.agent_name, about, send)
        call.ledger.wait(call.key, waiting=False)
        return decision

    def policy_decided(
        wish: PermissionRequest, verdict: Literal["allow", "deny"], policy: str
    ) -> None:
        store.append(run.id, decided(wish, verdict, DecidedBy(kind="policy", via=policy)))

    def chain_changed(tool: str, chain: list[str]) -> None:
        policies = [PolicyName(name=name) for name in chain]
        run.publish(messages.PolicyUpdated(run_id=run.id, tool=tool, policies=policies))

    return Verdicts(ask, policy_decided, chain_changed)


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


def decided(wish: PermissionRequest, decision: str, by: DecidedBy) -> PermissionDecided:
    """A decision as the timeline keeps it."""
    return PermissionDecided(
        ts=timestamp(),
        decision=decision,
        agent_name=wish.agent_name,
        tool_name=wish.tool_name,
        resource=wish.resource,
        operation=wish.operation,
        decided_by=by,
    )


def asked_for(prompt: messages.RequestPermission | PromptAsked) -> PermissionRequest:
    """What a permission request was about, whether it is open or on record."""
    if isinstance(prompt, PromptAsked):
        return msgspec.json.decode(prompt.about, type=PermissionRequest)
    tool = prompt.tool_name or ""
    return PermissionRequest(prompt.agent_name, tool, prompt.operation, prompt.resource)


def said(agent_name: str, text: str, by: DecidedBy) -> HumanInput:
    """A text for an agent as the timeline keeps it."""
    source: Literal["human", "agent"] = "human" if by.kind == "human" else "agent"
    return HumanInput(ts=timestamp(), agent_name=agent_name, text=text, source=source, by=by)
