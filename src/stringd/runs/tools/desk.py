"""What the tools of one run share."""

from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import NamedTuple, Protocol

from stringd.runs.budgets import Budget
from stringd.runs.guard.permissions import Permissions
from stringd.runs.skills import Skill
from stringd.runs.timeline import ToolMutation
from stringd.runs.tools.port import Tool
from stringd.runs.tools.todo_list import Todos
from stringd.runs.trash import Trash


class StringPort(Protocol):
    """One String command in a topic of this daemon; returns the text of the reply."""

    async def __call__(self, topic: str, command: str, cwd: Path) -> str: ...


class PrivilegedPort(Protocol):
    """Asks the gate to run a pipeline; returns what became of it, in words."""

    async def __call__(
        self, pipeline: Sequence[Sequence[str]], reason: str, cwd: Path, *, privileged: bool
    ) -> str: ...


class Ports(NamedTuple):
    """Ways into other parts of the daemon, handed in by the server; None where there is none."""

    string: StringPort | None = None
    privileged: PrivilegedPort | None = None


class Launched(NamedTuple):
    """A strategy that ran inside a tool call."""

    name: str
    path: Path
    text: str
    finish_reason: str


class McpTools(Protocol):
    """The tools of the MCP servers this run is connected to."""

    def tools(self, server_ids: Sequence[str]) -> Sequence[Tool]: ...


class Launch(Protocol):
    """Runs another strategy to its end. Raises `RunsError`."""

    def __call__(
        self, agent_name: str, name: str, message: str, model_override: str | None
    ) -> Awaitable[Launched]: ...


@dataclass
class Desk:
    """`mutated` records a change of a file; `launch` is None where nothing can be launched."""

    permissions: Permissions
    data_dir: Path
    trash: Trash
    mutated: Callable[[ToolMutation], None]
    budget: Budget
    skills: Sequence[Skill] = ()
    todos: Todos = field(default_factory=Todos)
    mcp: McpTools | None = None
    ports: Ports = field(default_factory=Ports)
    launch: Launch | None = None
