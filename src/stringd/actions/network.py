"""Where the requests of one action may go, by the provenance of the document that declares it."""

import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

from stringd.actions.hosts import declared_hosts, origin_of
from stringd.actions.provenance import (
    ForeignFile,
    HomeFile,
    InstalledApp,
    McpResource,
    Provenance,
    TrustedFile,
    WebPage,
    network_refusal,
)
from stringd.actions.templates import Variable, cut
from stringd.documents import Action
from stringd.net.addresses import Resolved
from stringd.net.fetch import AddressRefusedError
from stringd.net.hosts import Host, WebOrigin, written

# What a host may be followed by; anything else, a hole included, would be part of its name.
_LITERAL: Final = re.compile(r"(https?)://([^/?#\s{}$@\\]+)(?=[/?#]|$)", re.IGNORECASE)


class NotSentError(AddressRefusedError):
    """The document an action belongs to may not ask this address."""


@dataclass(frozen=True, slots=True)
class ActionNetwork:
    """Judges every connection of one action. `stored` are the `$NAMES` its document may use."""

    provenance: Provenance
    action: Action
    stored: Mapping[str, str]

    def named(self, url: str, *, first: bool) -> None:
        """Judge an address before its name is looked up. Raises `NotSentError`."""
        asked = origin_of(url)
        if asked is None or not first:
            return
        match self.provenance:
            case InstalledApp() as app:
                if not any(host.covers(asked) for host in self._hosts(app)):
                    raise NotSentError(_undeclared(app, asked))
            case WebPage(origin=origin):
                if asked != origin:
                    raise NotSentError(
                        f"an action of this page may only be sent to {origin or 'no address'}"
                    )
            case McpResource():
                raise NotSentError("an MCP resource has no origin, so none of its actions is sent")
            case _:
                pass

    async def found(self, url: str, target: Resolved) -> None:
        """Judge an address whose name was looked up. Raises `NotSentError`."""
        asked = origin_of(url)
        if target.reach == "public" or asked is None:
            return
        match self.provenance:
            case HomeFile() | TrustedFile():
                return
            case InstalledApp() as app:
                if not any(host.covers(asked) for host in self._private_hosts(app)):
                    raise NotSentError(_undeclared(app, asked))
            case WebPage(origin=origin, public=public):
                # A page of a private address was asked for by name, so it may ask itself.
                if public or asked != origin:
                    raise NotSentError(
                        f"a web page may not lead to the private address {asked.host}"
                    )
            case ForeignFile() as foreign:
                raise NotSentError(network_refusal(foreign, asked.host))
            case McpResource():
                raise NotSentError("an MCP resource has no origin")

    def _hosts(self, app: InstalledApp) -> list[Host]:
        if app.hosts is not None:
            return list(declared_hosts(app.hosts, self.stored))
        literal = literal_host(self.action)
        return [*([literal] if literal else []), *self._private_hosts(app)]

    def _private_hosts(self, app: InstalledApp) -> list[Host]:
        """The hosts that may be private ones."""
        if app.hosts is not None:
            return list(declared_hosts(app.hosts, self.stored))
        named = [stored_host(self.action, self.stored)]
        if app.adopted:
            named.append(literal_host(self.action))
        return [host for host in named if host is not None]


@dataclass(frozen=True, slots=True)
class PartsNetwork:
    """Judges where the menus and includes of a local document may be fetched from.

    `stored` are the `$NAMES` it may use.
    """

    provenance: Provenance
    stored: Mapping[str, str]

    def named(self, url: str, *, first: bool) -> None:
        """Any public host may be asked, so names do not matter."""

    async def found(self, url: str, target: Resolved) -> None:
        """Judge an address whose name was looked up. Raises `NotSentError`."""
        asked = origin_of(url)
        if target.reach == "public" or asked is None:
            return
        match self.provenance:
            case HomeFile() | TrustedFile() | InstalledApp(hosts=None, adopted=True):
                return
            case InstalledApp(hosts=hosts) as app:
                if not any(host.covers(asked) for host in declared_hosts(hosts or (), self.stored)):
                    raise NotSentError(_undeclared(app, asked))
            case _:
                raise NotSentError(f"this page may not reach the private address {asked.host}")


def names_sent(action: Action, stored: Mapping[str, str]) -> list[str]:
    """The stored names whose values a request of the action would carry."""
    defaults = (field.default or "" for field in action.fields)
    headers = (value for _, value in action.headers)
    texts = (action.target, action.body or "", *headers, *defaults)
    pieces = (piece for text in texts for piece in cut(text))
    named = (piece.name for piece in pieces if isinstance(piece, Variable))
    return [name for name in dict.fromkeys(named) if name in stored]


def literal_host(action: Action) -> Host | None:
    """The host an action's author wrote out; None when a value decides about it."""
    match = _LITERAL.match(action.target)
    origin = origin_of(match[0]) if match else None
    return Host(origin.host, origin.port) if origin else None


def stored_host(action: Action, stored: Mapping[str, str]) -> Host | None:
    """The host of an action whose address begins with a `$NAME` of the user's."""
    pieces = list(cut(action.target))
    if not pieces or not isinstance(pieces[0], Variable):
        return None
    after = pieces[1] if len(pieces) > 1 else ""
    # Text that continues with the host's name would make another one of it.
    if not isinstance(after, str) or (after and after[0] not in "/?#"):
        return None
    origin = origin_of(stored.get(pieces[0].name, ""))
    return Host(origin.host, origin.port) if origin else None


def _undeclared(app: InstalledApp, asked: WebOrigin) -> str:
    host = written(asked.host, asked.port, asked.scheme)
    return (
        f"app:{app.name} does not declare {host}, so nothing was sent there.\n"
        f"Recovery: its author adds it to the frontmatter, hosts: [{host}]; then /install it again."
    )
