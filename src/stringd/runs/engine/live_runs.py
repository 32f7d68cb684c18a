"""The runs this process knows, in the order they were prepared."""

from collections.abc import Iterator
from typing import Final

from stringd.runs.engine.run import Run
from stringd.wire.runs.types import RunSummary

# Finished runs stay listed; past this many the oldest are only on disk.
MAX_FINISHED: Final = 10_000


class LiveRuns:
    """Prepared, running and finished runs by id."""

    def __init__(self) -> None:
        self._runs: dict[str, Run] = {}

    def __iter__(self) -> Iterator[Run]:
        return iter(tuple(self._runs.values()))

    def get(self, run_id: str) -> Run | None:
        return self._runs.get(run_id)

    def add(self, run: Run) -> None:
        """Know this run, as the latest, in the place of another of its id."""
        self._runs.pop(run.id, None)
        self._runs[run.id] = run

    def remove(self, run_id: str) -> None:
        """Know nothing of it any more."""
        self._runs.pop(run_id, None)

    @property
    def active(self) -> int:
        """Runs prepared or running."""
        return sum(run.live for run in self._runs.values())

    def summaries(self) -> list[RunSummary]:
        return [run.summary() for run in self._runs.values()]

    def forget_oldest(self) -> None:
        """Keep as many finished runs as may stay listed."""
        if len(self._runs) <= MAX_FINISHED:
            return
        finished = [run.id for run in self if not run.live]
        for run_id in finished[: max(0, len(finished) - MAX_FINISHED)]:
            del self._runs[run_id]
