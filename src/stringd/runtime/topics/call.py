"""What a command handler receives."""

from typing import TYPE_CHECKING, Final, NamedTuple

from stringd.runtime.topics.line import CommandLine

if TYPE_CHECKING:
    from stringd.runtime.services import Services
    from stringd.runtime.topics.session import Session
    from stringd.runtime.topics.topics import Topics


class Caller(NamedTuple):
    """Who sends a command. `cwd` is the directory its client vouches for."""

    cwd: str | None = None


ANYONE: Final = Caller()


class Call(NamedTuple):
    """One command in one session."""

    services: "Services"
    topics: "Topics"
    session: "Session"
    line: CommandLine
    caller: Caller = ANYONE

    @property
    def argument(self) -> str:
        return self.line.argument

    @property
    def body(self) -> str | None:
        return self.line.body

    @property
    def cwd(self) -> str | None:
        return self.caller.cwd
