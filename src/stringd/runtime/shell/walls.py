"""The sandbox of a shell, for a topic or a daemon that asks for one."""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Final, NamedTuple

from stringd.runtime.shell.errors import ShellUnavailableError
from stringd.system.environment import AGENT
from stringd.system.sandbox import (
    Enclosed,
    Level,
    Network,
    SandboxError,
    enclose,
    on_path,
    standard_spec,
)

TERMINAL: Final = "/dev/tty"
"""What a shell behind walls calls its terminal: the real name is not in its list of devices."""


class ShellWalls(NamedTuple):
    """How far a shell reaches. `hide` are the daemon's own places, `own` the names in a user's home
    that are stringd's.
    """

    level: Level = Level.OPEN
    hide: tuple[Path, ...] = ()
    own: tuple[str, ...] = ()

    @property
    def closed(self) -> bool:
        return self.level is not Level.OPEN

    def base(self, environment: Mapping[str, str]) -> Mapping[str, str]:
        """What a shell may inherit: behind walls no tokens."""
        if not self.closed:
            return environment
        return {
            name: value for name, value in environment.items() if AGENT.inherits.fullmatch(name)
        }

    def enclosed(
        self,
        command: Sequence[str],
        environment: Mapping[str, str],
        *,
        home: str,
        cwd: str,
        terminal: bool,
    ) -> Enclosed:
        """What to start: the user's home and where the shell starts are writable, the network is
        there. Raises `ShellUnavailableError`.
        """
        if not self.closed:
            return Enclosed(list(command), dict(environment))
        places = dict.fromkeys(Path(each).resolve() for each in (home, cwd))
        spec = standard_spec(
            self.level,
            [each for each in places if each.is_dir() and each != Path("/")],
            hide=self.hide,
            network=Network.OPEN,
            terminal=terminal,
            keeps_jobs=not terminal,
        )
        kept = (path for name in self.own if (path := Path(home, name)).exists())
        seen = on_path(environment.get("PATH", ""))
        try:
            spec = replace(spec, readable=(*spec.readable, *kept, *seen))
            return enclose(spec, command, environment)
        except SandboxError as error:
            raise ShellUnavailableError(str(error)) from error


NO_WALLS: Final = ShellWalls()
