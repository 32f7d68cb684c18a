"""What a command handler receives."""

from typing import TYPE_CHECKING, NamedTuple

from stringd.runtime.topics.line import CommandLine

if TYPE_CHECKING:
    from stringd.runtime.topics.session import Session
    from stringd.runtime.workspace import Workspace


class Call(NamedTuple):
    """One command in one session. `cwd` is the directory the client vouches for."""

    runtime: "Workspace"
    session: "Session"
    line: CommandLine
    cwd: str | None

    @property
    def argument(self) -> str:
        return self.line.argument

    @property
    def body(self) -> str | None:
        return self.line.body
