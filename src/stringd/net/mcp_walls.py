"""The sandbox of MCP servers that are started by a command: the network, but no secrets."""

import os
import shutil
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import NamedTuple

from stringd.system.sandbox import (
    Enclosed,
    Level,
    Network,
    Nothing,
    available,
    enclose,
    named_in,
    standard_spec,
)


class ServerWalls(NamedTuple):
    """How far a server reaches. Directories that its command names are writable when `owned`:
    the command is the word of the daemon's owner.
    """

    level: Level
    workspace: tuple[Path, ...] = ()
    hide: tuple[Path, ...] = ()
    owned: bool = False


def enclosed_server(
    walls: ServerWalls | None,
    command: Sequence[str],
    environment: Mapping[str, str],
    directory: str | os.PathLike[str] | None = None,
) -> Enclosed:
    """What to start in a directory; blocks for a while. Raises `FileNotFoundError`,
    `SandboxError`.
    """
    if walls is None or walls.level is Level.OPEN or isinstance(available(), Nothing):
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
    spec = standard_spec(
        walls.level, list(dict.fromkeys(places)), hide=walls.hide, network=Network.OPEN
    )
    readable = (*spec.readable, *named_in([program, *command[1:]]))
    return enclose(replace(spec, readable=readable), command, environment)
