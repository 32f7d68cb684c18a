"""Where a document came from, and what that lets it do.

What a document may do is decided here and nowhere else. Its text never decides: a page that says it
is an app is still the web page it was loaded as.

| provenance           | on open       | HTTP          | commands | `$NAMES`       | `to:` |
|----------------------|---------------|---------------|----------|----------------|-------|
| installed app        | runs default  | its hosts     | yes      | own, declared  | yes   |
| home or trusted file | names default | anywhere      | yes      | the user's     | yes   |
| any other local file | nothing       | public hosts  | no       | none           | no    |
| web page             | nothing       | its origin    | no       | none           | no    |
| MCP resource         | nothing       | nowhere       | no       | none           | no    |
"""

import shlex
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Final, Literal, NamedTuple

from stringd.net.hosts import WebOrigin


@dataclass(frozen=True, slots=True)
class InstalledApp:
    """A file of a package that is still what the owner installed."""

    name: str
    hosts: tuple[str, ...] | None = None
    """What it declares; None when it declares nothing."""
    adopted: bool = False
    """It was installed by a version that knew no `hosts:`."""
    names: tuple[str, ...] | None = ()
    """Shared `$NAMES` it declares; None for one of a version in which it had all of them."""
    since: float = 0.0
    """Since when a package of its source has this name."""


@dataclass(frozen=True, slots=True)
class HomeFile:
    """A file of the user's String home. `app` is the app it was registered as, if any."""

    app: str | None = None


@dataclass(frozen=True, slots=True)
class TrustedFile:
    """A file the owner trusted with exactly this content."""

    path: str


@dataclass(frozen=True, slots=True)
class ForeignFile:
    """Any other local file. `reason` says why one that was an app's is not any more."""

    path: str
    reason: str | None = None
    saved: bool = False
    """It is in the String home because an action saved an answer there."""


@dataclass(frozen=True, slots=True)
class WebPage:
    """Text from the web. `public` says that it came from the public internet."""

    origin: WebOrigin | None
    public: bool = True


@dataclass(frozen=True, slots=True)
class McpResource:
    """What a mounted MCP server answered; it has no origin."""

    server: str


Provenance = InstalledApp | HomeFile | TrustedFile | ForeignFile | WebPage | McpResource


class Capabilities(NamedTuple):
    """What a document may do."""

    default: Literal["runs", "is named", "is ignored"]
    http: Literal["declared hosts", "anywhere", "public", "own origin", "nowhere"]
    commands: bool
    """CLI actions, and MCP actions of a mounted server."""
    names: Literal["app", "user", "none"]
    saves: Literal["app data", "workspace", "nowhere"]
    """Where `to:` may write; an app may write to its own data besides the workspace."""


_APP: Final = Capabilities("runs", "declared hosts", True, "app", "app data")
_OWN: Final = Capabilities("is named", "anywhere", True, "user", "workspace")
_FOREIGN: Final = Capabilities("is ignored", "public", False, "none", "nowhere")
_WEB: Final = Capabilities("is ignored", "own origin", False, "none", "nowhere")
_MCP: Final = Capabilities("is ignored", "nowhere", False, "none", "nowhere")


def capabilities(provenance: Provenance) -> Capabilities:
    """The table."""
    match provenance:
        case InstalledApp():
            return _APP
        case HomeFile() | TrustedFile():
            return _OWN
        case ForeignFile():
            return _FOREIGN
        case WebPage():
            return _WEB
        case McpResource():
            return _MCP


_STRONGEST_FIRST: Final = (InstalledApp, HomeFile, TrustedFile, ForeignFile, WebPage, McpResource)


def weakest(parts: Iterable[Provenance]) -> Provenance:
    """The provenance of a document made of several parts."""
    return max(parts, key=lambda part: _STRONGEST_FIRST.index(type(part)))


def owner(provenance: Provenance) -> str:
    """Whose the values are that its answers leave in the topic."""
    match provenance:
        case InstalledApp(name=name):
            return f"app:{name}"
        case HomeFile() | TrustedFile():
            return USER
        case ForeignFile(path=path):
            return f"file:{path}"
        case WebPage(origin=origin):
            return f"web:{origin}"
        case McpResource(server=server):
            return f"mcp:{server}"


def app_of(provenance: Provenance) -> str | None:
    """The name of the app it is, if it is one."""
    match provenance:
        case InstalledApp(name=name) | HomeFile(app=name):
            return name
        case _:
            return None


def is_foreign(owner: str | None) -> bool:
    """Whether values of this owner are those of a page that may reach only public addresses."""
    return owner is not None and owner.startswith(("file:", "web:", "mcp:"))


USER: Final = "user"
_OUTSIDE: Final = "is outside your String home"
_REMOTE: Final = (
    "CLI actions are only allowed from local file:// documents or locally installed apps. "
    "Remote SFMD can only run HTTP actions because remote content may change after review."
)


def command_refusal(provenance: Provenance) -> str:
    """Why its commands are not run, and what to do about it."""
    if not isinstance(provenance, ForeignFile):
        return _REMOTE
    return f"Not run: {_untrusted(provenance)}"


def name_refusal(provenance: Provenance) -> str:
    """Why it may not use `$NAMES`, and what to do about it."""
    match provenance:
        case ForeignFile():
            return f"It may not use $NAMES: {_untrusted(provenance)}"
        case WebPage():
            return "A web page may not use $NAMES.\nRecovery: /install it if you trust it."
        case _:
            return "An MCP resource may not use $NAMES."


def save_refusal(provenance: Provenance) -> str:
    """Why it may not write files, and what to do about it."""
    match provenance:
        case ForeignFile():
            return f"it may not write files: {_untrusted(provenance)}"
        case WebPage():
            return "a web page may not write files"
        case _:
            return "an MCP resource may not write files"


def network_refusal(foreign: ForeignFile, host: str) -> str:
    """Why it may not reach a private address, and what to do about it."""
    return f"{host} is a private address, which it may not reach: {_untrusted(foreign)}"


def _untrusted(foreign: ForeignFile) -> str:
    what = "holds an answer that an action saved" if foreign.saved else _OUTSIDE
    return foreign.reason or (
        f"this file {what} and you have not trusted it.\n"
        "Recovery: read it, and if you trust it, type in your own terminal: "
        f"stringd trust {shlex.quote(foreign.path)}"
    )
