"""A run's permissions: asked of its human, decided by its policies, and kept in its timeline."""

from typing import Any, Literal
from uuid import uuid4

from msgspec import UNSET

from stringd.runs.clock import timestamp
from stringd.runs.guard.permissions import Verdicts, Wish
from stringd.runs.ledger import open_call
from stringd.runs.run import Run
from stringd.runs.store import RunStore
from stringd.runs.timeline import DecidedBy, PermissionDecided
from stringd.wire.runs import messages
from stringd.wire.runs.types import PolicyName


def verdicts(run: Run, store: RunStore) -> Verdicts:
    """How tools of the run come to a yes or a no."""

    async def ask(wish: Wish) -> str:
        call = open_call.get()
        if call is not None:
            call.ledger.wait(call.key, waiting=True)
        decision = await run.ask(_request(run.id, wish))
        if call is not None:
            call.ledger.wait(call.key, waiting=False)
        return decision

    def policy_decided(wish: Wish, verdict: Literal["allow", "deny"], policy: str) -> None:
        store.append(run.id, _decided(wish, verdict, DecidedBy(kind="policy", via=policy)))

    def chain_changed(tool: str, chain: list[str]) -> None:
        policies = [PolicyName(name=name) for name in chain]
        run.publish(messages.PolicyUpdated(run_id=run.id, tool=tool, policies=policies))

    return Verdicts(ask, policy_decided, chain_changed)


def _request(run_id: str, wish: Wish) -> messages.RequestPermission:
    details: dict[str, Any] | None = dict(wish.details) if wish.details else None
    return messages.RequestPermission(
        run_id=run_id,
        request_id=str(uuid4()),
        agent_name=wish.agent_name,
        tool_name=wish.tool_name,
        operation=wish.operation,
        resource=wish.resource,
        details=details or UNSET,
    )


def _decided(wish: Wish, decision: str, by: DecidedBy) -> PermissionDecided:
    return PermissionDecided(
        ts=timestamp(),
        decision=decision,
        agent_name=wish.agent_name,
        tool_name=wish.tool_name,
        resource=wish.resource,
        operation=wish.operation,
        decided_by=by,
    )


def human_decided(
    prompt: messages.RequestPermission, decision: str, client_id: str
) -> PermissionDecided:
    """A human's answer as the timeline keeps it."""
    return PermissionDecided(
        ts=timestamp(),
        decision=decision,
        agent_name=prompt.agent_name,
        tool_name=prompt.tool_name,
        resource=prompt.resource,
        operation=prompt.operation,
        decided_by=DecidedBy(kind="human", via=f"client {client_id}"),
    )
