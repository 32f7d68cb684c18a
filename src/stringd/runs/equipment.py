"""What a daemon gives the tools of its runs, and how it becomes the desk of one run."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal
from uuid import uuid4

from msgspec import UNSET

from stringd.runs.budgets import Budget, Limits
from stringd.runs.clock import timestamp
from stringd.runs.guard.commands import DANGEROUS, approval
from stringd.runs.guard.guards import GuardDefaults, RunGuards
from stringd.runs.guard.paths import Workspace
from stringd.runs.guard.permissions import Permissions, Verdicts, Wish
from stringd.runs.ledger import open_call
from stringd.runs.mcp.servers import McpPool
from stringd.runs.store import RunStore
from stringd.runs.timeline import DecidedBy, PermissionDecided, ToolMutation
from stringd.runs.tools.desk import Desk, Ports
from stringd.runs.trash import Trash
from stringd.wire.runs import messages
from stringd.wire.runs.types import PolicyName

if TYPE_CHECKING:
    from stringd.runs.run import Prepared, Run


@dataclass(frozen=True)
class Equipment:
    """The same for every run. `approve_commands` are expressions of commands to ask about."""

    data_dir: Path
    ports: Ports = field(default_factory=Ports)
    limits: Limits = field(default_factory=Limits)
    approve_commands: Sequence[str] = ()
    max_depth: int = 8
    pool: McpPool = field(default_factory=McpPool)

    def guard_defaults(self, cwd: Path) -> GuardDefaults:
        """What every guard of a run in this workspace starts with. Raises `re.error`."""
        return _guard_defaults(self.data_dir, cwd, tuple(self.approve_commands))


@lru_cache(maxsize=64)
def _guard_defaults(data_dir: Path, cwd: Path, approve: tuple[str, ...]) -> GuardDefaults:
    return GuardDefaults(
        forbidden_places=_forbidden(data_dir, cwd), commands=(DANGEROUS, approval(approve))
    )


def _forbidden(data_dir: Path, cwd: Path) -> tuple[Path, ...]:
    """The daemon's own state; a workspace that lies in it keeps only the secrets out."""
    data, work = data_dir.resolve(), cwd.resolve()
    secrets = (data / "credentials.json", data / "runs")
    return secrets if work == data or data in work.parents else (data,)


def run_desk(
    run: "Run", prepared: "Prepared", equipment: Equipment, store: RunStore, guards: RunGuards
) -> Desk:
    """The desk of one segment: grants, budget and to-dos begin and end with it."""
    cwd = Path(prepared.settings.cwd)
    permissions = Permissions(Workspace(cwd), guards, _verdicts(run, store))

    def mutated(event: ToolMutation) -> None:
        store.append(run.id, event)

    return Desk(
        permissions=permissions,
        data_dir=equipment.data_dir,
        trash=Trash(equipment.data_dir / "trash", cwd),
        mutated=mutated,
        budget=Budget(equipment.limits.tightened(prepared.limits)),
        skills=prepared.skills,
        mcp=prepared.mcp,
        ports=equipment.ports,
    )


def _verdicts(run: "Run", store: RunStore) -> Verdicts:
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
