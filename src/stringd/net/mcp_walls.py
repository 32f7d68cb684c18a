"""The sandbox of MCP servers that are started by a command: the network, but no secrets."""

import os
import shutil
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Literal, NamedTuple

from stringd.net.host_proxy import HostProxy, hosts_in
from stringd.net.hosts import Host
from stringd.system.sandbox import (
    Enclosed,
    Level,
    Network,
    Nothing,
    WayOut,
    available,
    enclose,
    named_in,
    standard_spec,
)

ServerNetwork = Literal[Network.NONE, Network.OPEN] | tuple[Host, ...]
"""None, all of it, or the hosts that are reached through a proxy."""


def server_network(value: object) -> ServerNetwork:
    """What `"network"` of a definition means. Raises `HostListError`."""
    match value:
        case "none":
            return Network.NONE
        case list() | tuple():
            return hosts_in(map(str, value))
        case _:
            return Network.OPEN


class ServerWalls(NamedTuple):
    """How far a server reaches. Directories that its command names are writable when `owned`:
    the command is the word of the daemon's owner.
    """

    level: Level
    workspace: tuple[Path, ...] = ()
    hide: tuple[Path, ...] = ()
    owned: bool = False
    network: "ServerNetwork" = Network.OPEN


def proxy_for(walls: ServerWalls | None) -> HostProxy | None:
    """What leads out of the network of a server that is about to be started; it ends with it."""
    if walls is None or walls.level is Level.OPEN or not isinstance(walls.network, tuple):
        return None
    return HostProxy(walls.network)


def enclosed_server(
    walls: ServerWalls | None,
    command: Sequence[str],
    environment: Mapping[str, str],
    directory: str | os.PathLike[str] | None = None,
    way_out: WayOut | None = None,
) -> Enclosed:
    """What to start in a directory; blocks for a while. `way_out` is that of its `proxy_for`.

    Raises `FileNotFoundError`, `SandboxError`.
    """
    if walls is None or walls.level is Level.OPEN:
        return Enclosed(list(command), dict(environment))
    if walls.network is Network.OPEN and isinstance(available(), Nothing):
        return Enclosed(list(command), dict(environment))
    path = environment.get("PATH") or os.environ.get("PATH", os.defpath)
    # A program with a slash in its name is found from where the server will run.
    first = (
        str(Path.cwd().joinpath(directory or "", command[0])) if "/" in command[0] else command[0]
    )
    program = shutil.which(first, path=path)
    if program is None:
        # The walls start all the same; only what they print would tell.
        raise FileNotFoundError(command[0])
    named = [Path(word) for word in command[1:] if word.startswith("/")] if walls.owned else []
    places = [each.resolve() for each in (*walls.workspace, *named) if each.is_dir()]
    network = Network.HOSTS if isinstance(walls.network, tuple) else walls.network
    spec = standard_spec(walls.level, list(dict.fromkeys(places)), hide=walls.hide, network=network)
    readable = (*spec.readable, *named_in([program, *command[1:]]))
    return enclose(replace(spec, readable=readable, way_out=way_out), command, environment)
