"""`fork_run`: a new run from the completed steps of another."""

import asyncio

from stringd.runs.engine.live_runs import LiveRuns
from stringd.runs.errors import PrepareError, RefusedError
from stringd.runs.handlers.client import ConnectedClient
from stringd.runs.record.fork import (
    completed_steps,
    find_point,
    forked_events,
    forked_frames,
    with_strategy,
)
from stringd.runs.record.store import RunStore, check_run_id
from stringd.runs.record.views import latest_start
from stringd.wire.runs import messages, requests
from stringd.wire.runs.names import new_run_id


class Forks:
    """What was completed is kept and never done again; the run it came from is not touched."""

    def __init__(self, known: LiveRuns, store: RunStore) -> None:
        self._known = known
        self._store = store
        self._making: set[str] = set()

    async def __call__(
        self, request: requests.ForkRun, _client: ConnectedClient
    ) -> messages.Message:
        """Write the new run down; it rests until it is resumed. Raises `RefusedError`."""
        run_id = request.new_run_id or ""
        if run_id:
            check_run_id(run_id)
        if run_id and (run_id in self._making or self._known.get(run_id) is not None):
            raise _taken(run_id)
        self._making.add(run_id)
        try:
            return await asyncio.to_thread(self._fork, request, run_id)
        finally:
            self._making.discard(run_id)

    def _fork(self, request: requests.ForkRun, run_id: str) -> messages.RunForked:
        source = request.run_id
        try:
            check_run_id(source)
            events = self._store.timeline(source)
        except PrepareError:
            events = []
        started = latest_start(events)
        if started is None:
            raise RefusedError("RUN_NOT_FOUND", f"Run not found: {source}")
        point = find_point(source, events, request.at)
        if point is None:
            known = ", ".join(f"{each.path} ({each.name})" for each in completed_steps(events))
            raise RefusedError(
                "STEP_NOT_FOUND",
                f"Run {source} has not completed a step {request.at!r}. "
                f"Completed: {known or 'none yet'}",
            )
        kept = self._store.kept_strategy(source)
        if kept is not None and started.strategy_path != str(kept.path):
            kept = None
        run_id = run_id or new_run_id(started.strategy_path if kept is None else source)
        frames = (frame for _, frame in self._store.broadcasts(source, 1))
        if self._store.exists(run_id):
            raise _taken(run_id)
        try:
            chosen = self._store.selection(source)
            if chosen is not None:
                self._store.save_selection(run_id, chosen)
            forked = forked_events(events, point)
            if kept is not None:
                # Its own: the run it came from may be deleted, or get another strategy.
                own = self._store.keep_strategy(run_id, kept.data)
                forked = with_strategy(forked, str(kept.path), str(own))
            self._store.create(run_id, forked, forked_frames(frames, point, run_id))
        except FileExistsError:
            raise _taken(run_id) from None
        except OSError as error:
            raise PrepareError(
                f"The fork cannot be kept: {error.strerror or error}. "
                "Make room in the data directory and fork again."
            ) from error
        return messages.RunForked(run_id=run_id, forked_from=point.origin)


def _taken(run_id: str) -> PrepareError:
    return PrepareError(f"Run already exists: {run_id}")
