"""What a command handler receives."""

from typing import TYPE_CHECKING, Final

import msgspec

from stringd.runtime.topics.line import CommandLine
from stringd.system.vouched import NOTHING_VOUCHED

if TYPE_CHECKING:
    from collections.abc import Mapping

    from stringd.runtime.services import Services
    from stringd.runtime.topics.observer import ClientName
    from stringd.runtime.topics.permission import Permission
    from stringd.runtime.topics.session import Session
    from stringd.runtime.topics.topics import Topics
    from stringd.system.lineage import Speaker


class Caller(msgspec.Struct, frozen=True, gc=False):
    """Who sends a command."""

    cwd: str | None = None
    """The directory its client vouches for."""
    permission: "Permission | None" = None
    """Whom an agent of a run has to ask; None for clients, which speak for the owner."""
    speaker: "Speaker | None" = None
    """Who is at the other end of the connection, where there is one."""
    client: "ClientName" = b""
    """What the client calls itself."""
    environment: "Mapping[str, str]" = NOTHING_VOUCHED
    """The variables its client vouches for; a new shell has them, and its `HOME`."""
    limit: float | None = None
    """Seconds its shell command may run, where it asks for more or less than usual."""

    brief: bool = False
    """Whether its reader is a model that pays for every word: replies carry only news."""

    async def is_the_owner(self) -> bool:
        """Whether this may be the owner's word; what the daemon itself started is not.

        What an agent of a run does counts once its human was asked.
        """
        return self.speaker is None or await self.speaker.outsider() is not None


ANYONE: Final = Caller()


class Call(msgspec.Struct, frozen=True, gc=False):
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
