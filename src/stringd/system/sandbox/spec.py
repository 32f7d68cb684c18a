"""What a sandbox is asked for: a value, made once and passed around."""

from dataclasses import dataclass, field
from enum import StrEnum
from pathlib import Path
from typing import Final, NamedTuple

TEMPORARY: Final = ("/tmp", "/var/tmp")  # noqa: S108 - what is made there is the sandbox's own


class SandboxError(Exception):
    """The sandbox that was asked for cannot be made; the message says what to change."""


class Level(StrEnum):
    """How much of the machine a command may change."""

    READ_ONLY = "read-only"
    WORKSPACE = "workspace"
    OPEN = "open"
    """No sandbox at all."""


class Network(StrEnum):
    NONE = "none"
    HOSTS = "hosts"
    """A network of its own, out of which only a proxy leads."""
    OPEN = "open"


class WayOut(NamedTuple):
    """Where a proxy waits for what leads out of a network of named hosts."""

    proxy: Path
    """A Unix socket. Before the command starts, a listener inside is handed over there."""
    direct: tuple[str, ...] = ()
    """Hosts that programs reach without the proxy, inside."""


@dataclass(frozen=True, slots=True)
class Limits:
    """What everything inside may use together; None is unlimited.

    A limit on wall-clock time is the caller's: killing the one process it started ends everything
    inside.
    """

    processes: int | None = 512
    memory: int | None = None
    """Bytes."""
    cpu_seconds: int | None = None
    """For each process."""


@dataclass(frozen=True, slots=True)
class SandboxSpec:
    """Paths are absolute. Where two name places inside each other, the deeper one decides; at the
    same place hidden beats readable, and readable beats writable.
    """

    level: Level = Level.WORKSPACE
    workspace: tuple[Path, ...] = ()
    """Directories the command works in; writable unless the level is read-only. Whoever judges a
    workspace resolves its links first and passes what they led to."""
    writable: tuple[Path, ...] = ()
    """Also writable at level workspace, where present: caches."""
    named: tuple[Path, ...] = ()
    """Places that a call of the command names; like the workspace, but nothing hidden is shown for
    being named."""
    readable: tuple[Path, ...] = ()
    """Shown although their surroundings are hidden, or kept read-only inside the workspace."""
    hidden: tuple[str, ...] = ()
    """Absent inside. The last part of a path may be a pattern, as in `/home/me/.claude*`."""
    network: Network = Network.NONE
    way_out: WayOut | None = None
    """Needed for a network of named hosts."""
    limits: Limits = field(default_factory=Limits)
    temporary: Path | None = None
    """A private directory that serves as /tmp; without one each command gets a new, empty /tmp."""
    terminal: bool = False
    """The command keeps its controlling terminal. Only for a terminal of its own: whoever shares
    one with the user could type into the user's shell."""
    keeps_jobs: bool = False
    """What leaves the command's process group lives on after it. The command gets no input: on its
    standard input the process that is started takes a socket, says there with which status the
    command ended if anything lives on, and ends all of it when the socket is closed."""
