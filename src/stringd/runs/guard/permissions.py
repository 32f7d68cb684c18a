"""The door every tool goes through: resolve, judge, ask the human, remember, record."""

from collections.abc import Awaitable, Callable, Mapping, Sequence
from typing import Any, Final, Literal, NamedTuple

from stringd.runs.guard.commands import read_ahead
from stringd.runs.guard.errors import Denied
from stringd.runs.guard.globs import GlobError
from stringd.runs.guard.guards import Ruling, RunGuards, ToolGuard
from stringd.runs.guard.policy import SessionEntry, Subject, Verdict
from stringd.runs.guard.workspace import Workspace, WorkspacePath

Operation = Literal["fs.read", "fs.write", "fs.exec"]
OPERATIONS: Final[Mapping[str, Operation]] = {
    "read": "fs.read",
    "write": "fs.write",
    "exec": "fs.exec",
}


EDITABLE: Final = "editable"
"""In the details of a request: it can be answered with another command."""
_EDITED: Final = " edited"


class PermissionRequest(NamedTuple):
    """What a tool asks the human for."""

    agent_name: str
    tool_name: str
    operation: Operation
    resource: str
    details: Mapping[str, Any] | None = None


class HumanAnswer(NamedTuple):
    """What the human said to a request: the decision word, and why if they gave a reason.

    `command` is what they allowed instead of the command that was asked about.
    """

    decision: str
    reason: str = ""
    command: str = ""

    @property
    def text(self) -> str:
        """As prompts are answered and recorded: the word, and the reason from the next line on."""
        if self.command:
            return f"{self.decision}{_EDITED}\n{self.command}"
        return f"{self.decision}\n{self.reason}" if self.reason else self.decision

    @classmethod
    def read(cls, text: str) -> "HumanAnswer":
        decision, _, rest = text.partition("\n")
        if decision.endswith(_EDITED):
            return cls(decision.removesuffix(_EDITED), command=rest)
        return cls(decision, rest)


class Verdicts(NamedTuple):
    """How the run reaches the human and keeps what was decided.

    `ask` returns the text of a `HumanAnswer`; `policy_decided` records what a policy settled by
    itself; `chain_changed` tells subscribers the policies of a tool.
    """

    ask: Callable[[PermissionRequest], Awaitable[str]]
    policy_decided: Callable[[PermissionRequest, Literal["allow", "deny"], str], None]
    chain_changed: Callable[[str, list[str]], None]


class Permissions:
    """The guards of a run's workspace, and the way to its human."""

    def __init__(self, workspace: Workspace, guards: RunGuards, verdicts: Verdicts) -> None:
        self.workspace = workspace
        self.guards = guards
        self._verdicts = verdicts

    async def path(
        self,
        agent: str,
        tool: str,
        direction: Literal["read", "write"],
        text: str,
        details: Mapping[str, Any] | None = None,
        *,
        granted: bool = False,
    ) -> WorkspacePath:
        """The real place a path names, allowed to be read or written. Raises `Denied`.

        What was `granted` in another way is not asked, but a policy may still deny it.
        """
        place = self.workspace.place(text)
        subject = Subject(direction, str(place.real), place.inside)
        if granted and _judge(self.guards.of(tool), subject).verdict == "ask":
            return place
        asked = {"path": text, "cwd": str(self.workspace.cwd), **(details or {})}
        await self._authorize(agent, tool, subject, asked)
        return place

    async def command(
        self,
        agent: str,
        tool: str,
        line: str,
        details: Mapping[str, Any],
        *,
        scope: str = "",
        leaves: Sequence[str] = (),
        editable: bool = False,
    ) -> str:
        """Permission to run a command line; returns the line to run. Raises `Denied`.

        That is another one where it is `editable` and whoever was asked changed it.

        `details.why` says what speaks against it. A grant counts for the same line in the same
        `scope` only. What `leaves` the sandbox is always asked about.
        """
        await read_ahead(line)
        why = [*leaves, *self.guards.of(tool).reasons(line)]
        told = {**details, "why": why} if why else dict(details)
        if editable:
            told[EDITABLE] = True
        subject = Subject("exec", line, scope=scope)
        edited = await self._authorize(agent, tool, subject, told, "ask" if leaves else "allow")
        if not edited:
            return line
        await read_ahead(edited)
        ruling = _judge(self.guards.of(tool), Subject("exec", edited, scope=scope))
        if ruling.verdict == "deny":
            # What nobody may run cannot be allowed by writing it into the answer.
            why = self.guards.of(tool).reasons(edited)
            raise Denied(f"Running {edited} is denied by {ruling.policy}: {'; '.join(why)}")
        return edited

    async def address(self, agent: str, tool: str, url: str, details: Mapping[str, Any]) -> None:
        """Leave to fetch from an address that is not public. Raises `Denied`."""
        await self._authorize(agent, tool, Subject("read", url), details)

    async def more(self, agent: str, tool: str, path: str, details: Mapping[str, Any]) -> None:
        """Leave for a file to do more than the run may; always asked for. Raises `Denied`."""
        await self._authorize(agent, tool, Subject("exec", path), details, otherwise="ask")

    async def asked(
        self,
        agent: str,
        tool: str,
        direction: Literal["read", "write", "exec"],
        resource: str,
        details: Mapping[str, Any],
    ) -> None:
        """What another program's agent asks its user for: so is ours. Raises `Denied`.

        What was decided for the session, or is denied by a policy, is not asked again.
        """
        subject = Subject(direction, resource)
        ruling = _judge(self.guards.of(tool), subject, "ask")
        wish = PermissionRequest(agent, tool, OPERATIONS[direction], resource, details)
        if ruling.verdict == "allow" and not ruling.policy.startswith("session-"):
            await self._ask(wish, subject)
        else:
            await self._authorize(agent, tool, subject, details, "ask")

    def can_access(self, tool: str, place: WorkspacePath, within: WorkspacePath) -> bool:
        """Whether a place may be shown by a tool that was let into the folder `within`.

        Nobody is asked again: what was allowed covers what is below, unless a policy denies it.
        """
        subject = Subject("read", str(place.real), place.inside)
        verdict = _judge(self.guards.of(tool), subject).verdict
        return verdict == "allow" or (verdict == "ask" and within.real in place.real.parents)

    async def _authorize(
        self,
        agent: str,
        tool: str,
        subject: Subject,
        details: Mapping[str, Any] | None,
        otherwise: Verdict = "allow",
    ) -> str:
        """Returns the command to run instead, where the human gave one. Raises `Denied`."""
        ruling = _judge(self.guards.of(tool), subject, otherwise)
        operation = OPERATIONS[subject.direction]
        wish = PermissionRequest(agent, tool, operation, subject.resource, details)
        if ruling.verdict == "ask":
            return await self._ask(wish, subject)
        if ruling.verdict == "deny" or ruling.policy.startswith("session-"):
            self._verdicts.policy_decided(wish, ruling.verdict, ruling.policy)
        if ruling.verdict == "deny":
            why = "; ".join((details or {}).get("why", ()))
            raise Denied(f"{_deed(wish)} is denied by {ruling.policy}{': ' if why else ''}{why}")
        return ""

    async def _ask(self, wish: PermissionRequest, subject: Subject) -> str:
        decision, reason, command = HumanAnswer.read(await self._verdicts.ask(wish))
        verdict: Literal["allow", "deny"] = "allow" if decision.startswith("allow") else "deny"
        if decision.endswith("-session"):
            entry = SessionEntry(verdict, subject.direction, subject.resource, subject.scope)
            chain = self.guards.remember(wish.tool_name, entry)
            self._verdicts.chain_changed(wish.tool_name, chain)
        if verdict == "deny":
            raise Denied(f"{_deed(wish)} was denied by the user{': ' if reason else ''}{reason}")
        return command


def _judge(guard: ToolGuard, subject: Subject, otherwise: Verdict = "allow") -> Ruling:
    try:
        return guard.judge(subject, otherwise)
    except GlobError as error:
        # A policy that cannot be read must not open anything.
        return Ruling("deny", str(error))


def _deed(wish: PermissionRequest) -> str:
    verb = {"fs.read": "Reading", "fs.write": "Writing", "fs.exec": "Running"}[wish.operation]
    return f"{verb} {wish.resource}"
