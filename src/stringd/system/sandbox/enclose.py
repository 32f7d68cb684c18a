"""The door of the room: a command and a spec in, the command that runs behind walls out."""

import os
import secrets
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from functools import cache
from pathlib import Path
from typing import NamedTuple

import stringd.system.sandbox.hidden as hidden
import stringd.system.sandbox.limits as limits
from stringd.system.network_walls import network_walls
from stringd.system.sandbox.bubblewrap import Bubblewrap, bubblewrap_argv
from stringd.system.sandbox.environment import part
from stringd.system.sandbox.landlock import Landlock, landlock_argv
from stringd.system.sandbox.programs import INTERPRETER, named_in
from stringd.system.sandbox.spec import Level, Limits, Network, SandboxError, SandboxSpec
from stringd.system.sandbox.view import view
from stringd.system.sandbox.walls import INSTALL, Walls, available


class Enclosed(NamedTuple):
    """What to start in place of the command: these arguments with this environment, no more."""

    argv: list[str]
    environment: dict[str, str]


def standard_spec(
    level: Level,
    workspace: Sequence[Path],
    *,
    hide: Sequence[str | os.PathLike[str]] = (),
    network: Network = Network.NONE,
    environment: Mapping[str, str] = os.environ,
    limit: Limits | None = None,
    temporary: Path | None = None,
    terminal: bool = False,
    keeps_jobs: bool = False,
) -> SandboxSpec:
    """The usual walls around a workspace: secrets and sockets hidden, caches writable.

    `hide` is added to what is always hidden: the daemon's data directory, above all.
    `environment` is the daemon's own, for where home and the user's sockets are.
    """
    return SandboxSpec(
        level=level,
        workspace=tuple(workspace),
        writable=hidden.cache_paths(environment),
        readable=(*hidden.needed_of_run(), *hidden.own_places(environment)),
        hidden=hidden.hidden_paths(environment, hide),
        network=network,
        limits=limit or Limits(),
        temporary=temporary,
        terminal=terminal,
        keeps_jobs=keeps_jobs,
    )


def enclose(
    spec: SandboxSpec,
    command: Sequence[str],
    environment: Mapping[str, str],
    walls: Walls | None = None,
    sockets: Iterable[str] | None = None,
) -> Enclosed:
    """What to start so that `command` runs behind walls with `environment`.

    Killing the process that is started ends everything inside. It must be started from a thread
    that lives as long as it does: the kernel takes that thread's end for its parent's. A command
    that a signal ended exits with 128 and the signal's number. Level `open` changes nothing.
    `walls` are this machine's, and `sockets` those it listens on, unless given.
    Raises `SandboxError` where no walls can be made.
    """
    if spec.level is Level.OPEN:
        return Enclosed(list(command), dict(environment))
    if spec.network is Network.OPEN:
        # What runs there reaches our own ports, and must not leave through them.
        network_walls.note()
    if spec.network is Network.HOSTS:
        if spec.way_out is None:
            raise SandboxError("A network of named hosts needs a proxy")
        spec = replace(spec, readable=(*spec.readable, *named_in([INTERPRETER])))
    outside, inside = part(environment)
    group = _new_group(spec.limits)
    match available() if walls is None else walls:
        case Bubblewrap() as walls:
            entries = view(spec, hidden.listening_sockets() if sockets is None else sockets)
            argv = bubblewrap_argv(walls, spec, entries, command, variables=inside, group=group)
        case Landlock(freezes=False) if spec.network is Network.HOSTS:
            # Landlock judges ports, not hosts, and nothing but connections.
            raise SandboxError(
                "A network of named hosts needs a network of its own, which this account may not "
                f"make here: {INSTALL}, or ask for the whole network"
            )
        case Landlock() as walls:
            # It refuses Unix sockets as such, so none needs hiding.
            argv = landlock_argv(walls, spec, view(spec), command, variables=inside, group=group)
        case nothing:
            raise SandboxError(f"{nothing.reason}: {INSTALL}, or allow level open")
    return Enclosed(argv, outside)


@cache
def group_parent() -> Path | None:
    """Where control groups for sandboxes are made; None where limits are the shell's."""
    return limits.delegated_parent()


def _new_group(wanted: Limits) -> limits.Group | None:
    parent = group_parent()
    settings = limits.group_settings(wanted)
    if parent is None or not settings:
        return None
    limits.sweep(parent)
    return limits.Group(f"{parent}/{limits.PREFIX}{secrets.token_hex(8)}", settings)
