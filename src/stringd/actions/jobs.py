"""The jobs that CLI actions of apps left running in their sandboxes."""

import asyncio
from collections.abc import Callable
from dataclasses import dataclass
from datetime import UTC, datetime

from stringd.system.detached import DetachedJob


@dataclass(frozen=True, slots=True)
class AppJob:
    """A running job; `home` is that of the user who has the app."""

    home: str
    app: str
    command: str
    since: datetime
    job: DetachedJob

    @property
    def pid(self) -> int:
        return self.job.pid


class AppJobs:
    """Every job that runs; one that ends is forgotten."""

    def __init__(self) -> None:
        self._running: list[AppJob] = []
        self._closed = False

    def keeper(self, home: str, app: str, command: str) -> Callable[[DetachedJob], None]:
        """Takes over what a command of an app detached."""

        def keep(job: DetachedJob) -> None:
            if self._closed:
                job.kill()
                return
            entry = AppJob(home, app, command, datetime.now(UTC), job)
            self._running.append(entry)
            job.ended.add_done_callback(lambda _status: self._running.remove(entry))

        return keep

    def of(self, home: str, app: str) -> list[AppJob]:
        """The jobs of one app, oldest first."""
        return [each for each in self._running if (each.home, each.app) == (home, app)]

    async def end(self, home: str, app: str) -> int:
        """End the jobs of an app; how many there were."""
        return await _end(self.of(home, app))

    async def close(self) -> None:
        """End all of them; there are no more to come."""
        self._closed = True
        await _end(list(self._running))


async def _end(jobs: list[AppJob]) -> int:
    await asyncio.gather(*(each.job.end() for each in jobs))
    return len(jobs)
