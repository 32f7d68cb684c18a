"""What an agent of a run is asked about before a command of it has an effect outside its topic.

A client outside speaks for the owner and is not asked. An agent's commands meet the same questions
as its other tools, where the effect happens: a process starts, a connection opens, a file is
written, something is installed. The words that led there do not matter.
"""

import re
import shlex
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple, Protocol

from stringd.actions.hosts import origin_of

if TYPE_CHECKING:
    from stringd.actions.run import CommandPermit
    from stringd.net.addresses import Resolved
    from stringd.net.fetch import HopJudge


class Permission(Protocol):
    """Asks a run's human, or its policies. Every method raises `CommandError` for a no."""

    async def command(self, line: str) -> None:
        """Before a command line is run."""

    async def write(self, path: str) -> None:
        """Before a file is made, changed or removed; `path` is where it really is."""

    def may_write(self, path: str) -> bool:
        """Whether `write` was answered with yes."""

    async def change(self, what: str) -> None:
        """Before something is installed, removed or stored for good, or a stored name is sent."""

    async def address(self, url: str, address: str) -> None:
        """Before a connection to an address that is not public."""


class _AskedConnections(NamedTuple):
    """Asks about every connection to an address that is not public."""

    permission: Permission

    def named(self, url: str, *, first: bool) -> None:
        """Names are not asked about, addresses are."""

    async def found(self, url: str, target: "Resolved") -> None:
        if target.reach != "public":
            await self.permission.address(url, target.addresses[0])


@dataclass
class _AskedNames:
    """Asks once before the values of stored names leave in a request."""

    permission: Permission
    names: Sequence[str]
    asked: bool = False

    def named(self, url: str, *, first: bool) -> None:
        """The question takes its time, so it is asked below."""

    async def found(self, url: str, target: "Resolved") -> None:  # noqa: ARG002
        if not self.asked:
            self.asked = True
            listed = ", ".join(f"${name}" for name in self.names)
            await self.permission.change(f"send {listed} to {origin_of(url)}")


def connection_judges(
    permission: Permission | None, names: Sequence[str] = ()
) -> "tuple[HopJudge, ...]":
    """Who judges the connections of a command; `names` are the stored names it would send."""
    if permission is None:
        return ()
    asked = (_AskedNames(permission, names),) if names else ()
    return (_AskedConnections(permission), *asked)


def command_permit(permission: Permission | None) -> "CommandPermit | None":
    """Who is asked before the command of an action starts."""
    if permission is None:
        return None

    async def permit(text: str, values: Mapping[str, str], directory: Path) -> None:
        line = _with_values(text, values)
        await permission.command(f"cd {shlex.quote(str(directory))} && {line}")

    return permit


def _with_values(text: str, values: Mapping[str, str]) -> str:
    """A command with the values it refers to, as if somebody had typed them.

    The references are always between double quotes.
    """
    for name, value in values.items():
        text = text.replace(f"${{{name}}}", re.sub(r'([\\"$`])', r"\\\1", value))
    return text
