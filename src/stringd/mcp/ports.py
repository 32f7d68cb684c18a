"""What the MCP server needs of the daemon. The daemon's assembly fills these ports."""

from typing import TYPE_CHECKING, NamedTuple, Protocol

from stringd.system.vouched import NOTHING_VOUCHED

if TYPE_CHECKING:
    from collections.abc import Mapping

    from stringd.system.lineage import Speaker
    from stringd.wire.result import Result
    from stringd.wire.runs.messages import DaemonMessage
    from stringd.wire.runs.requests import ClientMessage


class McpCaller(NamedTuple):
    """Who calls: what the client program, never the model, said about itself."""

    user_id: str
    cwd: str | None = None
    gate_socket: str | None = None
    tools: frozenset[str] | None = None
    """The tools this client wants; None means all."""
    environment: "Mapping[str, str]" = NOTHING_VOUCHED
    """The variables its client vouches for, for a shell it starts."""
    speaker: "Speaker | None" = None
    """The program at the other end of the connection."""
    client: str = ""
    """The client's own name and version."""
    client_pid: int = 0
    """The client's process, as a program that speaks for it says; 0 if it speaks itself."""


class ResourcePage(NamedTuple):
    """A document open in a topic."""

    topic: str
    uri: str
    title: str | None


class Commands(Protocol):
    """Topics and the commands that run in them."""

    async def run(
        self,
        caller: McpCaller,
        topic: str,
        cmd: str,
        limit: float | None = None,
        *,
        brief: bool = False,
    ) -> "Result":
        """Run a command in its topic's turn; a shell's may take `limit` seconds.

        With `brief` the reply carries only what is news. Raises `InvalidTopicError`.
        """

    def attend(self, caller: McpCaller, topic: str) -> float | None:
        """Renew the time limit of a topic's shell command; the seconds it has now."""

    def pages(self, caller: McpCaller) -> list[ResourcePage]:
        """The documents the caller's topics show."""


class RunsConnection(Protocol):
    """One client of the runs, as on their wire."""

    def send(self, request: "ClientMessage") -> None:
        """Send a request; answers come in order."""

    async def receive(self) -> "DaemonMessage":
        """The next message. Raises `RunsGoneError` when there will be none."""

    def close(self) -> None:
        """Leave; the runs continue."""


class RunsPort(Protocol):
    """The runs of this daemon."""

    async def connect(self, speaker: "Speaker | None" = None) -> RunsConnection:
        """Become a client of the runs, for the program that speaks."""

    async def find(self, strategy: str, cwd: str | None) -> str:
        """The path of the strategy a caller names; what names none comes back as it is."""


class RunsGoneError(Exception):
    """The runs have ended: the daemon is stopping."""


class McpPorts(NamedTuple):
    """Everything the server is assembled from; `hold` is how many seconds a call may last."""

    commands: Commands
    runs: RunsPort
    hold: float
    gate_socket: str
