"""The sandbox of CLI actions: how far the command of a call reaches."""

import asyncio
import os
import re
import shutil
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Final, NamedTuple

from stringd.actions.cli import bash_command
from stringd.actions.errors import ActionError
from stringd.actions.hosts import declared_hosts
from stringd.actions.named_paths import named_paths, paths_in, place_around
from stringd.actions.place import ActionContext
from stringd.actions.provenance import InstalledApp, app_of, owner
from stringd.net.host_proxy import HostProxy
from stringd.system.lineage import temporary_prefix
from stringd.system.open_apps import OpenApps
from stringd.system.sandbox import (
    TEMPORARY,
    Enclosed,
    Level,
    Network,
    Nothing,
    SandboxError,
    WayOut,
    enclose,
    find_available,
    homes,
    is_hidden,
    on_path,
    standard_spec,
)

_WRITABLE: Final = ("CWD", "STRING_CALLER_DIR", "STRING_WORK_DIR")
# What programs print when walls are in their way.
_REFUSED: Final = re.compile(
    r"permission denied|read-only|operation not permitted|not permitted|unable to open database|"
    r"(?:cannot|can't) (?:create|open|write|connect)|could not (?:open|read|create|connect)|"
    r"failed to connect to (?:the )?\S*bus|need auth|no password|"
    r"host key verification|logged in|log ?in|credential|authenticat|no space left",
    re.IGNORECASE,
)
# Hidden places look empty, and so do most of the temporary ones.
_ABSENT: Final = re.compile(r"no such file|not found|does not exist|doesn't exist", re.IGNORECASE)
_MOST_LINES: Final = 100


class _ActionReach(NamedTuple):
    level: Level
    network: Network
    way_out: WayOut | None


class ActionWalls:
    """How far commands of actions reach. `hide` are the daemon's own places, `own` the names in a
    user's home that are stringd's. Without a `level`, commands run at level workspace where this
    machine has walls, and reach what their own line names besides; elsewhere without walls.
    `network` is that of installed apps; by `hosts`, those an app declares.
    """

    def __init__(
        self,
        level: Level | None = Level.OPEN,
        hide: Sequence[Path] = (),
        own: Sequence[str] = (),
        open_apps: OpenApps | None = None,
        network: Network = Network.OPEN,
    ) -> None:
        self._level = level
        self._hide = tuple(hide)
        self._own = tuple(own)
        self._open_apps = open_apps
        self._network = network
        self._temporary: dict[tuple[str, str], Path] = {}

    async def level(self, place: ActionContext) -> Level:
        """What commands of a place run in."""
        if self._level is Level.OPEN or self._is_opened(place):
            return Level.OPEN
        if self._level is None:
            none = isinstance(await find_available(), Nothing)
            return Level.OPEN if none and self._network is Network.OPEN else Level.WORKSPACE
        return self._level

    async def enclosed(self, place: ActionContext, call: "CommandCall", level: Level) -> Enclosed:
        """What to start: the caller's directory, the app's data and what the call names are
        writable, the network is there. Raises `ActionError` where no walls can be made.
        """
        if level is Level.OPEN:
            return Enclosed(list(call.command), dict(call.environment))
        app = place.provenance if isinstance(place.provenance, InstalledApp) else None
        network = self._network if app else Network.OPEN
        proxy = None
        if app and network is Network.HOSTS:
            # It ends with the last job that the command leaves.
            proxy = HostProxy(declared_hosts(app.hosts or (), place.names.stored))
        try:
            reach = _ActionReach(level, network, proxy.way_out if proxy else None)
            return await asyncio.to_thread(self._enclosed, place, call, reach)
        except (SandboxError, OSError) as error:
            if proxy:
                await proxy.close()
            raise ActionError("LOAD_ERROR", f"Cannot run the command: {error}") from error

    def close(self) -> None:
        """Remove what commands left in their /tmp."""
        for path in self._temporary.values():
            shutil.rmtree(path, ignore_errors=True)
        self._temporary.clear()

    def _is_opened(self, place: ActionContext) -> bool:
        app = app_of(place.provenance)
        if app is None or self._open_apps is None:
            return False
        opened = self._open_apps.opened_at(app)
        # What was installed under the name later, from elsewhere, is not what the owner opened.
        since = getattr(place.provenance, "since", 0.0)
        return opened is not None and since <= opened

    def _enclosed(self, place: ActionContext, call: "CommandCall", reach: _ActionReach) -> Enclosed:
        context = place.names.context
        workspace = _workspace(place)
        spec = standard_spec(
            reach.level,
            workspace,
            hide=self._hide,
            network=reach.network,
            temporary=self._own_temporary(place),
            keeps_jobs=True,
        )
        home = os.path.realpath(context.get("HOME") or "/nowhere")
        kept = tuple(path for name in self._own if (path := Path(home, name)).exists())
        page = Path(context.get("STRING_APP_DIR") or place.directory)
        seen = on_path(call.environment.get("PATH", ""))
        if page.resolve() not in workspace:
            seen = (*seen, page)
        named = self._named(place, call, home, (*kept, *spec.readable))
        spec = replace(spec, named=tuple(named), readable=(*spec.readable, *kept, *seen))
        spec = replace(spec, way_out=reach.way_out)
        return enclose(spec, call.command, call.environment)

    def _named(
        self, place: ActionContext, call: "CommandCall", home: str, kept: Sequence[Path]
    ) -> Iterator[Path]:
        all_homes = homes(os.environ)
        values = [*call.values]
        if self._level is None:
            # Only pages that are the owner's, or that the owner let in, have commands.
            values += paths_in(call.text, call.environment)
        found = named_paths(values, place.directory, call.environment.get("HOME", ""))
        for path in found:
            around = place_around(path, (*all_homes, home))
            if around is not None and not _is_kept(around, home, kept):
                yield around

    def _own_temporary(self, place: ActionContext) -> Path:
        """One /tmp for all commands of an app, so that one finds what another left there."""
        key = (place.names.context.get("HOME", ""), owner(place.provenance))
        if key not in self._temporary:
            made = tempfile.mkdtemp(prefix=temporary_prefix(), dir=TEMPORARY[0])
            self._temporary[key] = Path(made)
        return self._temporary[key]


class CommandCall(NamedTuple):
    """The command of a call. `values` are what its caller or owner gave it, paths among them."""

    text: str
    environment: Mapping[str, str]
    values: Sequence[str] = ()

    @property
    def command(self) -> list[str]:
        return bash_command(self.text)


def wall_hint(place: ActionContext, level: Level, printed: str) -> str:
    """How to go on when the walls may be why a command failed; empty when they are not."""
    if level is Level.OPEN or not (_REFUSED.search(printed) or _misses(place, printed)):
        return ""
    app = app_of(place.provenance)
    reach = (
        "It changes no files."
        if level is Level.READ_ONLY
        else "It changes only files in your directory, its own data and what the call names, and "
        "sees no keys and passwords."
    )
    way_on = (
        f"stringd sandbox open {app}"
        if app is not None
        else "start the daemon with STRINGD_ACTION_SANDBOX=open"
    )
    return f"[It ran in a sandbox. {reach} If that is why it failed: {way_on}]"


def _workspace(place: ActionContext) -> list[Path]:
    given = [place.names.context.get(name, "") for name in _WRITABLE]
    places = [place.directory, *(Path(text) for text in given if text.startswith("/"))]
    found = (each.resolve() for each in places if each.is_dir())
    # Whoever calls from the top of the machine does not mean all of it.
    return list(dict.fromkeys(each for each in found if each != Path("/")))


def _misses(place: ActionContext, printed: str) -> bool:
    """Whether a line says that something is absent that walls make look so."""
    lines = [line for line in printed.splitlines()[-_MOST_LINES:] if _ABSENT.search(line)]
    paths = [path.rstrip(":.") for line in lines for path in paths_in(line, {})]
    near = _workspace(place) if paths else []
    return any(
        is_hidden(path, os.environ) or any(Path(path).is_relative_to(each) for each in TEMPORARY)
        for path in paths
        if not any(Path(path).is_relative_to(each) for each in near)
    )


def _is_kept(path: Path, home: str, kept: Sequence[Path]) -> bool:
    # Where all of stringd's own is read-only, the files of a user's home in there are not.
    return any(
        path.is_relative_to(each.resolve())
        and not (Path(home).is_relative_to(each.resolve()) and path.is_relative_to(home))
        for each in kept
    )
