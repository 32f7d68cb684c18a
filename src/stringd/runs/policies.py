"""The path policies of a run's tools, as `update_policy` changes them."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Literal

Mode = Literal["read", "write"]
Verdict = Literal["allow", "deny", "ask"]


@dataclass
class PathPolicy:
    """Deny globs first, then allow globs, then the default. Outside the cwd we ask."""

    deny: list[str] = field(default_factory=list)
    allow: list[str] = field(default_factory=list)
    default: Verdict = "ask"


@dataclass
class ToolPolicies:
    read: PathPolicy = field(default_factory=PathPolicy)
    write: PathPolicy = field(default_factory=PathPolicy)

    def names(self) -> list[str]:
        """The chain, in the order it is consulted."""
        return ["forbidden-globs", "read-path-policy", "write-path-policy"]


class RunPolicies:
    """One set per tool, made when first needed."""

    def __init__(self) -> None:
        self._tools: dict[str, ToolPolicies] = {}

    def of(self, tool: str) -> ToolPolicies:
        return self._tools.setdefault(tool, ToolPolicies())

    def update(
        self,
        tool: str | None,
        mode: Mode,
        *,
        allow: Sequence[str] = (),
        deny: Sequence[str] = (),
        default: Verdict | None = None,
    ) -> list[tuple[str, list[str]]]:
        """Change one tool's policy, or every one that exists; returns each with its chain."""
        tools = list(self._tools) if tool is None else [tool]
        for name in tools:
            policy = getattr(self.of(name), mode)
            policy.deny += deny
            policy.allow += allow
            policy.default = policy.default if default is None else default
        return [(name, self.of(name).names()) for name in tools]
