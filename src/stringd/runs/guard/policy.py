"""Policies: small objects that answer allow, deny or ask, or pass the question on."""

import re
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final, Literal, NamedTuple, Protocol

from stringd.runs.guard import globs

# A server may take these in an address for steps upwards, out of what was granted.
_CLIMBS: Final = re.compile(r"(?i)\.\.|\\|%(?:2[ef]|5c)")

Direction = Literal["read", "write", "exec"]
Verdict = Literal["allow", "deny", "ask"]


class Subject(NamedTuple):
    """What is about to be done. `inside` is the workspace-relative path, for paths within it.

    `scope` is what else a command depends on: where it runs, with which variables, how far it
    reaches.
    """

    direction: Direction
    resource: str
    inside: str | None = None
    scope: str = ""


class Policy(Protocol):
    @property
    def name(self) -> str: ...

    def judge(self, subject: Subject) -> Verdict | None:
        """A verdict, or None to pass."""
        ...


@dataclass
class ForbiddenGlobs:
    """What no grant can open: paths of the daemon itself, and globs set for every run."""

    forbidden: Sequence[str] = ()
    places: Sequence[Path] = ()
    name: str = "forbidden-globs"

    def judge(self, subject: Subject) -> Verdict | None:
        if subject.direction == "exec":
            return None
        path = Path(subject.resource)
        if any(path == place or place in path.parents for place in self.places):
            return "deny"
        return "deny" if _fits(self.forbidden, subject) else None


@dataclass
class PathPolicy:
    """Deny globs, then allow globs, then the default. Globs never match outside the workspace."""

    direction: Literal["read", "write"]
    allow: list[str] = field(default_factory=lambda: ["**"])
    deny: list[str] = field(default_factory=list)
    default: Verdict = "ask"

    @property
    def name(self) -> str:
        return f"{self.direction}-path-policy"

    def judge(self, subject: Subject) -> Verdict | None:
        if subject.direction != self.direction:
            return None
        if _fits(self.deny, subject):
            return "deny"
        return "allow" if _fits(self.allow, subject) else self.default


def _fits(patterns: Sequence[str], subject: Subject) -> bool:
    inside = subject.inside
    return inside is not None and any(globs.matches(pattern, inside) for pattern in patterns)


class CommandPolicy(Policy, Protocol):
    """A policy over command lines that can say why it answers so."""

    @property
    def verdict(self) -> Verdict: ...

    def reasons(self, line: str) -> list[str]:
        """What in this line it objects to; nothing when it passes."""
        ...


@dataclass(frozen=True)
class SessionEntry:
    """A human's answer that lasts until the segment ends."""

    verdict: Literal["allow", "deny"]
    direction: Direction
    resource: str
    scope: str = ""

    @property
    def name(self) -> str:
        plain = re.sub(r"[^A-Za-z0-9]", "-", self.resource)
        return f"session-{self.verdict}-{self.direction}-{plain}"

    def judge(self, subject: Subject) -> Verdict | None:
        same = (subject.direction, subject.scope) == (self.direction, self.scope)
        return self.verdict if same and self._covers(subject.resource) else None

    def _covers(self, resource: str) -> bool:
        if resource == self.resource:
            return True
        # Below a folder or an address, never merely a name that begins alike.
        below = self.resource.rstrip("/") + "/"
        if self.direction == "exec" or not resource.startswith(below):
            return False
        return "://" not in below or not _CLIMBS.search(resource)
