"""What a tool receives when it is called, and what the tools of one run share."""

from collections.abc import Awaitable, Callable, Coroutine, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, NamedTuple, Protocol

from stringd.runs.guard.budget import RunBudget
from stringd.runs.guard.permissions import Permissions
from stringd.runs.record.events import ToolMutation
from stringd.runs.strategy.discover import Discovery
from stringd.runs.strategy.skills import Skill
from stringd.runs.tools.sandbox import RunSandbox
from stringd.runs.tools.todo_list import Todos
from stringd.runs.tools.trash import Trash

if TYPE_CHECKING:
    from stringd.net.fetch import Fetcher

WebFormat = Literal["text", "markdown", "html"]


@dataclass(frozen=True)
class ToolContext:
    """Who calls, where, and how to reach the human. `ask` returns the answer to a question."""

    run_id: str
    agent_name: str
    cwd: Path
    ask: Callable[[str, str], Coroutine[Any, Any, str]]
    desk: "Desk"


class StringQuestions(Protocol):
    """Asked before a String command has an effect outside its topic. All raise `Denied`."""

    async def command(self, line: str) -> None:
        """Before a command line is run."""

    async def write(self, path: str) -> None:
        """Before a file is made, changed or removed."""

    async def change(self, what: str) -> None:
        """Before something is installed, removed or stored for good."""

    async def address(self, url: str, address: str) -> None:
        """Before a connection to an address that is not public."""


class StringPort(Protocol):
    """One String command in a topic of this daemon; returns the text of the reply.

    Raises `ToolFailure`, and `Denied` when the answer to a question was no.
    """

    async def __call__(
        self, topic: str, command: str, cwd: Path, questions: StringQuestions
    ) -> str: ...


class PrivilegedPort(Protocol):
    """Asks the gate to run a pipeline; returns what became of it, in words."""

    async def __call__(
        self, pipeline: Sequence[Sequence[str]], reason: str, cwd: Path, *, privileged: bool
    ) -> str: ...


class HtmlPort(Protocol):
    """A web page as text a model reads. Raises `ToolFailure` for one it cannot convert."""

    async def __call__(self, html: str, wanted: WebFormat, /) -> str: ...


class DaemonPorts(NamedTuple):
    """Ways into other parts of the daemon, handed in by the server; None where there is none."""

    string: StringPort | None = None
    privileged: PrivilegedPort | None = None
    html: HtmlPort | None = None
    fetcher: "Fetcher | None" = None


class Launched(NamedTuple):
    """A strategy that ran inside a tool call."""

    name: str
    path: Path
    text: str
    finish_reason: str


class Launch(Protocol):
    """Runs another strategy to its end. Raises `RunServiceError`."""

    def __call__(
        self, agent_name: str, name: str, message: str, model_override: str | None
    ) -> Awaitable[Launched]: ...


@dataclass
class Desk:
    """`mutated` records a change of a file, `discover` finds the strategies at hand.

    `launch` is None where nothing can be launched.
    """

    permissions: Permissions
    discover: Callable[[], Discovery]
    trash: Trash
    mutated: Callable[[ToolMutation], None]
    budget: RunBudget
    sandbox: RunSandbox
    skills: Sequence[Skill] = ()
    todos: Todos = field(default_factory=Todos)
    ports: DaemonPorts = field(default_factory=DaemonPorts)
    launch: Launch | None = None
