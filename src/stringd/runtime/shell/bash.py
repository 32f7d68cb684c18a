"""Launching an interactive bash: its terminal, its side channel, its process."""

import os
import secrets
import shutil
import socket
from collections.abc import Callable, Mapping
from contextlib import ExitStack, suppress
from pathlib import Path
from typing import Final, NamedTuple

from stringd.runtime.shell.errors import ShellUnavailableError
from stringd.runtime.shell.terminal import ShellTerminal
from stringd.runtime.shell.walls import NO_WALLS, ShellWalls
from stringd.system.environment import SHELL, child_environment
from stringd.system.files import make_private_directory
from stringd.system.processes.child import ChildProcess, start_child
from stringd.system.vouched import NOTHING_VOUCHED, with_vouched

_OPTIONS: Final = ("--noprofile", "--norc", "--noediting", "-i")


class Bash(NamedTuple):
    """A bash that has just been started. `mark` is in the environment of all it starts."""

    child: ChildProcess
    terminal: ShellTerminal
    control: socket.socket
    mark: str
    walled: bool = False
    """The child is a sandbox, and the shell is inside."""


def launch(
    *,
    home: str,
    cwd: str,
    base: Mapping[str, str],
    variables: Mapping[str, str] | None,
    on_data: Callable[[bytes], None],
    walls: ShellWalls = NO_WALLS,
    caller: Mapping[str, str] = NOTHING_VOUCHED,
) -> Bash:
    """Start bash in `cwd`. `home` is the user's; see `shell_environment` for the shell's own.

    Raises `ShellUnavailableError`.
    """
    path, mark = bash_path(), secrets.token_hex(16)
    environment = shell_environment(
        base, caller, home=home, variables=variables, walls=walls, mark=mark
    )
    directory = starting_directory(cwd, home)
    started = walls.enclosed(
        (path, *_OPTIONS), environment, home=home, cwd=directory, terminal=True
    )
    with ExitStack() as undo:
        try:
            terminal = ShellTerminal(on_data)
            undo.callback(terminal.close)
            ours, theirs = map(undo.enter_context, socket.socketpair())
            nowhere = undo.enter_context(open(os.devnull, "r+b", buffering=0))
            child = start_child(
                started.argv,
                environment=started.environment,
                cwd=directory,
                files=(theirs.fileno(), nowhere.fileno(), nowhere.fileno()),
                terminal=terminal.theirs,
            )
        except OSError as error:
            raise ShellUnavailableError(error.strerror or str(error)) from error
        undo.pop_all()
        nowhere.close()
        theirs.close()
    return Bash(child, terminal, ours, mark, walls.closed)


def shell_environment(
    base: Mapping[str, str],
    caller: Mapping[str, str],
    *,
    home: str,
    variables: Mapping[str, str] | None,
    walls: ShellWalls,
    mark: str | None = None,
) -> dict[str, str]:
    """What a shell sees: `base`, with what the `caller` vouches for in its place.

    Its `HOME` is the caller's. Without one, and behind walls, it is the user's String home.
    """
    own = caller.get("HOME", "")
    if walls.closed or not Path(own).is_absolute():
        own = home
    seen = walls.base(with_vouched(base, caller))
    return child_environment(SHELL, seen, home=own, additions=variables, mark=mark)


def starting_directory(cwd: str, home: str) -> str:
    """Where a shell can start: `cwd`, made if it is a home that nobody made yet, else the root."""
    if cwd == home:
        with suppress(OSError):
            make_private_directory(Path(home))
    return cwd if os.access(cwd, os.X_OK) else "/"


def bash_path() -> str:
    """Where bash is. Raises `ShellUnavailableError`."""
    path = "/bin/bash" if os.access("/bin/bash", os.X_OK) else shutil.which("bash")
    if path is None:
        raise ShellUnavailableError("bash is not installed")
    return path
