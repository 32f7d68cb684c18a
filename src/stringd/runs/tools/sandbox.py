"""The sandbox of a run: how far its commands reach without a question, and what is asked."""

import asyncio
import shutil
import tempfile
import threading
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from typing import Final

from stringd.system.sandbox import (
    Enclosed,
    Level,
    Network,
    Nothing,
    SandboxSpec,
    WayOut,
    available,
    enclose,
    find_available,
    standard_spec,
)

_ORDER: Final = (Level.READ_ONLY, Level.WORKSPACE, Level.OPEN)


def narrowest(*levels: Level) -> Level:
    return min(levels, key=_ORDER.index)


def is_wider(level: Level, than: Level) -> bool:
    return _ORDER.index(level) > _ORDER.index(than)


class RunSandbox:
    """What every command of one segment runs in; its /tmp lasts until `close`.

    `level` is the widest that needs no question, `hidden` the daemon's own places.
    """

    def __init__(self, level: Level, workspace: Path, hidden: Sequence[Path] = ()) -> None:
        self.level = level
        self._workspace = workspace
        self._hidden = tuple(hidden)
        self._temporary: Path | None = None
        self._making = threading.Lock()

    @property
    def used(self) -> bool:
        """Whether there is anything to `close`."""
        return self._temporary is not None

    async def has_walls(self) -> bool:
        """Whether this machine can make what the level asks for."""
        return not isinstance(await find_available(), Nothing)

    async def enclose(
        self,
        command: Sequence[str],
        environment: Mapping[str, str],
        *,
        level: Level,
        network: Network,
        directory: Path,
        way_out: WayOut | None = None,
    ) -> Enclosed:
        """What to start so that the command runs at a level. Raises `SandboxError`.

        `directory` is where it starts; whoever allowed it to be used let it be written to.
        """

        def enclosed() -> Enclosed:
            spec = replace(self._spec(level, network, directory), way_out=way_out)
            return enclose(spec, command, environment)

        return await asyncio.to_thread(enclosed)

    def enclose_helper(self, command: Sequence[str], environment: Mapping[str, str]) -> Enclosed:
        """What to start for a short command of the strategy's own, with the network; blocks.

        Without walls on this machine it runs as it is. Raises `SandboxError`.
        """
        level = Level.OPEN if isinstance(available(), Nothing) else self.level
        spec = self._spec(level, Network.OPEN, self._workspace.resolve())
        # It starts where the daemon did, which a sandbox may have files of its own over.
        with suppress(FileNotFoundError):
            spec = replace(spec, readable=(*spec.readable, Path.cwd()))
        return enclose(spec, command, environment)

    def _spec(self, level: Level, network: Network, directory: Path) -> SandboxSpec:
        return standard_spec(
            level,
            list(dict.fromkeys((self._workspace.resolve(), directory))),
            hide=self._hidden,
            network=network,
            temporary=self._own_temporary(),
        )

    def close(self) -> None:
        """Remove what its commands left in their /tmp."""
        if self._temporary is not None:
            shutil.rmtree(self._temporary, ignore_errors=True)
            self._temporary = None

    def _own_temporary(self) -> Path:
        # Commands of one answer are prepared side by side, in threads.
        with self._making:
            if self._temporary is None:
                self._temporary = Path(tempfile.mkdtemp(prefix="stringd-run-"))
            return self._temporary
