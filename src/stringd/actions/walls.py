"""The sandbox of CLI actions, for an owner who wants one around them."""

import asyncio
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Final, NamedTuple

from stringd.actions.errors import ActionError
from stringd.actions.place import ActionContext
from stringd.system.sandbox import (
    Enclosed,
    Level,
    Network,
    SandboxError,
    enclose,
    find_available,
    standard_spec,
)

_WRITABLE: Final = ("CWD", "STRING_WORK_DIR")


class ActionWalls(NamedTuple):
    """How far commands of actions reach; `hide` are the daemon's own places."""

    level: Level = Level.OPEN
    hide: tuple[Path, ...] = ()

    async def enclosed(
        self, place: ActionContext, command: Sequence[str], environment: Mapping[str, str]
    ) -> Enclosed:
        """What to start: the caller's directory and the app's data are writable, the network is
        there. Raises `ActionError` where no walls can be made.
        """
        if self.level is Level.OPEN:
            return Enclosed(list(command), dict(environment))
        await find_available()
        try:
            return await asyncio.to_thread(self._enclosed, place, command, environment)
        except SandboxError as error:
            raise ActionError("LOAD_ERROR", f"Cannot run the command: {error}") from error

    def _enclosed(
        self, place: ActionContext, command: Sequence[str], environment: Mapping[str, str]
    ) -> Enclosed:
        named = (place.names.context.get(name, "") for name in _WRITABLE)
        places = [place.directory, *(Path(text) for text in named if text.startswith("/"))]
        workspace = dict.fromkeys(each.resolve() for each in places if each.is_dir())
        spec = standard_spec(
            self.level, list(workspace), hide=self.hide, network=Network.OPEN, keeps_jobs=True
        )
        return enclose(spec, command, environment)
