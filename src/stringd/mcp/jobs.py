"""Calls that outlast their client's patience: after a while the caller gets a handle, the work
continues, and `wait` picks it up again.
"""

import asyncio
from collections.abc import Awaitable, Callable, Coroutine
from secrets import token_hex
from typing import Any, Final

from stringd.mcp.outcome import ToolError, ToolOutcome, failed, said

MAX_FINISHED: Final = 256
"""Outcomes kept for callers that have not come back; past this many the oldest are forgotten."""

FIRST_BEAT_SECONDS: Final = 1.0
BEAT_SECONDS: Final = 5.0
"""How soon, and how often, a waiting caller is told that the work continues."""

Report = Callable[[float, str], Awaitable[None]]
"""Tells the caller about progress: seconds so far, and what is going on."""

Attend = Callable[[], float | None]
"""Says that a caller still wants the work; the seconds it may take from now on, where limited."""


def unlimited() -> None:
    """For work that no attention is needed for."""


class Job:
    """Work under way for one user."""

    def __init__(
        self,
        user_id: str,
        what: str,
        task: "asyncio.Task[ToolOutcome]",
        attend: Attend = unlimited,
    ) -> None:
        self.handle = f"job-{token_hex(6)}"
        self.user_id = user_id
        self.what = what
        self.task = task
        self.attend = attend
        self.started = asyncio.get_running_loop().time()

    @property
    def seconds(self) -> float:
        return asyncio.get_running_loop().time() - self.started


class Jobs:
    """The jobs that were left with a handle."""

    def __init__(self, hold: float) -> None:
        self._hold = hold
        self._left: dict[str, Job] = {}

    async def run(
        self,
        user_id: str,
        what: str,
        work: Coroutine[Any, Any, ToolOutcome],
        report: Report,
        attend: Attend = unlimited,
    ) -> ToolOutcome:
        """The outcome of the work, or a handle once the holding time is over."""
        job = Job(user_id, what, asyncio.ensure_future(work), attend)
        try:
            outcome = await self._wait(job, report)
        except asyncio.CancelledError:
            # Nobody knows a handle yet, so nobody could ever come back for it.
            job.task.cancel()
            raise
        if outcome is None:
            self._forget_oldest()
            self._left[job.handle] = job
        return outcome or still_running(job)

    async def resume(self, user_id: str, handle: str, report: Report) -> ToolOutcome:
        """Wait for a job again. Raises `ToolError` for a handle that names none."""
        job = self._left.get(handle)
        if job is None or job.user_id != user_id:
            raise ToolError(
                f"No call is under way with the handle {handle}. Its result may have been "
                "forgotten, or the daemon restarted: look at the state before repeating anything."
            )
        job.attend()
        return await self._wait(job, report) or still_running(job)

    async def close(self) -> None:
        """End what is still under way."""
        tasks = [job.task for job in self._left.values()]
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)

    async def _wait(self, job: Job, report: Report) -> ToolOutcome | None:
        loop = asyncio.get_running_loop()
        end = loop.time() + self._hold
        beat = FIRST_BEAT_SECONDS
        while not job.task.done() and (left := end - loop.time()) > 0:
            await asyncio.wait((job.task,), timeout=min(left, beat))
            beat = BEAT_SECONDS
            if not job.task.done():
                await report(job.seconds, f"{job.what}: {job.seconds:.0f} s")
        if not job.task.done():
            return None
        if job.task.cancelled():
            return failed(f"{job.what} was stopped because the daemon is ending.")
        error = job.task.exception()
        if isinstance(error, ToolError):
            return failed(str(error))
        return job.task.result()

    def _forget_oldest(self) -> None:
        finished = [handle for handle, job in self._left.items() if job.task.done()]
        for handle in finished[: max(0, len(finished) - MAX_FINISHED + 1)]:
            del self._left[handle]


def still_running(job: Job) -> ToolOutcome:
    """What a caller is told whose time is over before the work is."""
    left = job.attend()
    limit = (
        f" It is ended in {left:.0f} s unless wait is called again; each call renews that. "
        "timeout='20m' of string allows more from the start."
        if left is not None
        else ""
    )
    return said(
        f"[still running after {job.seconds:.0f} s: {job.what}]\n"
        f'It keeps running; do not start it again. Call wait with handle "{job.handle}" '
        f"for its result.{limit}"
    )
