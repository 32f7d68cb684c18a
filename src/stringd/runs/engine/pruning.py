"""Old events are forgotten; what was said stays in the timelines.

Events serve clients that come back to a run. They are many times larger than its timeline, so only
those of the newest runs are kept, and of all that are running or could still be resumed.
"""

import asyncio
import logging
from typing import Final

from stringd.runs.engine.live_runs import LiveRuns
from stringd.runs.record.store import RunStore

log = logging.getLogger(__name__)

KEEP_EVENTS: Final = 1000
_PAUSE_SECONDS: Final = 3600.0


class Pruning:
    """`keep` is how many runs keep their events, the newest first."""

    def __init__(self, store: RunStore, known: LiveRuns, keep: int | None = None) -> None:
        self._store = store
        self._known = known
        self._keep = KEEP_EVENTS if keep is None else keep

    async def forever(self) -> None:
        """Prune now, and again every hour."""
        while True:
            await self.prune()
            await asyncio.sleep(_PAUSE_SECONDS)

    async def prune(self) -> None:
        """Forget the events of completed runs past the newest."""
        surplus = await asyncio.to_thread(self._store.surplus, self._keep)
        for run_id in surplus:
            run = self._known.get(run_id)
            if run is None or not run.live:
                self._store.forget_broadcasts(run_id)
            # A run must not wait until all files are rewritten.
            await asyncio.sleep(0)
        if surplus:
            log.info("forgot the events of %d old runs", len(surplus))
