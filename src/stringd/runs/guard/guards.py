"""One guard per tool, made when it is first needed, and changed by the human while a run lives."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from itertools import count
from pathlib import Path
from typing import Final, Literal, NamedTuple

from stringd.runs.guard.commands import DANGEROUS, approval
from stringd.runs.guard.policy import (
    CommandPolicy,
    Direction,
    ForbiddenGlobs,
    PathPolicy,
    Policy,
    SessionEntry,
    Subject,
    Verdict,
)


class Ruling(NamedTuple):
    """A verdict and the policy that gave it."""

    verdict: Verdict
    policy: str


@dataclass
class ToolGuard:
    """The ordered policies of one tool."""

    forbidden: ForbiddenGlobs = field(default_factory=ForbiddenGlobs)
    commands: tuple[CommandPolicy, ...] = ()
    session: list[SessionEntry] = field(default_factory=list)
    read: PathPolicy = field(default_factory=lambda: PathPolicy("read"))
    write: PathPolicy = field(default_factory=lambda: PathPolicy("write"))

    def chain(self) -> list[Policy]:
        """In the order they are asked: a newer answer of the human before an older one."""
        dangers = [policy for policy in self.commands if policy.verdict == "deny"]
        approvals = [policy for policy in self.commands if policy.verdict != "deny"]
        session = reversed(self.session)
        return [self.forbidden, *dangers, *session, *approvals, self.read, self.write]

    def names(self) -> list[str]:
        return [policy.name for policy in self.chain()]

    def reasons(self, line: str) -> list[str]:
        """What its policies have against a command line."""
        return [why for policy in self.commands for why in policy.reasons(line)]

    def judge(self, subject: Subject, otherwise: Verdict = "allow") -> Ruling:
        """The first answer decides; `otherwise` is what holds without one."""
        for policy in self.chain():
            verdict = policy.judge(subject)
            if verdict is not None:
                return Ruling(verdict, policy.name)
        return Ruling(otherwise, "no policy")


@dataclass(frozen=True)
class GuardDefaults:
    """What every guard of a daemon starts with; `commands` judge the lines of tools in `shells`."""

    forbidden_places: tuple[Path, ...] = ()
    commands: tuple[CommandPolicy, ...] = (DANGEROUS, approval(()))
    shells: frozenset[str] = frozenset()


_PLAIN: Final = GuardDefaults()


class Standing(NamedTuple):
    """What a human decided for the rest of a segment: an answer, or a glob of a policy."""

    id: str
    tool: str
    verdict: Literal["allow", "deny"]
    direction: Direction
    resource: str
    kind: Literal["session", "policy"]
    entry: SessionEntry | None = None


class RunGuards:
    """The guards of one run. They end with its segment, and every grant with them.

    Those of a launched strategy have grants of their own under the policies of its `parent`.
    """

    __slots__ = ("_guards", "_numbers", "_parent", "_standing", "defaults")

    def __init__(self, defaults: GuardDefaults = _PLAIN, parent: "RunGuards | None" = None) -> None:
        self.defaults = defaults
        self._parent = parent
        self._guards: dict[str, ToolGuard] = {}
        self._standing: dict[str, Standing] = {}
        self._numbers = count(1)

    @property
    def standing(self) -> list[Standing]:
        """What was decided for the rest of the segment and still counts, oldest first."""
        return list(self._standing.values())

    def of(self, tool: str) -> ToolGuard:
        if tool not in self._guards:
            self._guards[tool] = self._made(tool)
        return self._guards[tool]

    def _made(self, tool: str) -> ToolGuard:
        if self._parent is not None:
            above = self._parent.of(tool)
            return ToolGuard(above.forbidden, above.commands, read=above.read, write=above.write)
        forbidden = ForbiddenGlobs(places=self.defaults.forbidden_places)
        return ToolGuard(forbidden, self.defaults.commands if tool in self.defaults.shells else ())

    def remember(self, tool: str, entry: SessionEntry) -> list[str]:
        """Keep a session answer; returns the chain as it is now."""
        guard = self.of(tool)
        guard.session.append(entry)
        self._keep(tool, entry.verdict, entry.direction, entry.resource, "session", entry)
        return guard.names()

    def revoke(self, decision_id: str) -> tuple[str, list[str]] | None:
        """Take a decision back; its tool with the chain as it is now, or None for an unknown id."""
        decision = self._standing.pop(decision_id, None)
        if decision is None:
            return None
        guard = self.of(decision.tool)
        if decision.entry is not None:
            guard.session = [each for each in guard.session if each is not decision.entry]
        else:
            policy = guard.read if decision.direction == "read" else guard.write
            globs = policy.allow if decision.verdict == "allow" else policy.deny
            globs.remove(decision.resource)
        return decision.tool, guard.names()

    def _keep(
        self,
        tool: str,
        verdict: Literal["allow", "deny"],
        direction: Direction,
        resource: str,
        kind: Literal["session", "policy"],
        entry: SessionEntry | None = None,
    ) -> None:
        id_ = str(next(self._numbers))
        self._standing[id_] = Standing(id_, tool, verdict, direction, resource, kind, entry)

    def update(
        self,
        tool: str | None,
        mode: Literal["read", "write"],
        *,
        allow: Sequence[str] = (),
        deny: Sequence[str] = (),
        default: Verdict | None = None,
    ) -> list[tuple[str, list[str]]]:
        """Change one tool's path policy, or every one that exists; returns each with its chain."""
        tools = list(self._guards) if tool is None else [tool]
        for name in tools:
            guard = self.of(name)
            policy = guard.read if mode == "read" else guard.write
            policy.deny += deny
            policy.allow += allow
            policy.default = policy.default if default is None else default
            for glob in deny:
                self._keep(name, "deny", mode, glob, "policy")
            for glob in allow:
                self._keep(name, "allow", mode, glob, "policy")
        return [(name, self.of(name).names()) for name in tools]
