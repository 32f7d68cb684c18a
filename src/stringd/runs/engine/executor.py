"""A segment from its first timeline event to its last: begun, run, ended, recorded."""

import asyncio
import logging
from contextlib import suppress
from typing import Final

from msgspec import UNSET

from stringd.runs.agents.steering import Steer
from stringd.runs.engine.launch import Launcher
from stringd.runs.engine.run import Prepared, Run
from stringd.runs.engine.segment import Segment, SegmentParts
from stringd.runs.engine.services import RunServices
from stringd.runs.engine.slots import RunSlots
from stringd.runs.errors import ExecutionError, NotRecordedError
from stringd.runs.guard.budget import RunBudget
from stringd.runs.record import events
from stringd.runs.record.resume import Journal
from stringd.system.clock import timestamp
from stringd.wire.runs import messages
from stringd.wire.runs.types import ErrorInfo

log = logging.getLogger(__name__)

CANCELLED: Final = ErrorInfo(code="CANCELLED", message="Run cancelled by client")


class RunExecutor:
    """Starts and stops segments. What it accepted is in the timeline before anyone hears of it."""

    def __init__(self, services: RunServices, slots: RunSlots) -> None:
        self._services = services
        self._store = services.store
        self._slots = slots
        # Why runs that unwind were stopped, for their timelines.
        self._stopped: dict[str, ErrorInfo] = {}

    def begin(self, run: Run, prepared: Prepared, text: str, *, resume: bool) -> None:
        """Run the flow in the background, once `record_start` has succeeded."""
        run.started = True
        run.status = "running"
        run.persist()
        if resume:
            for left in prepared.journal.steering:
                run.mailbox.put(Steer(left, between=True))
        run.task = asyncio.create_task(
            self._execute(run, prepared, text, resume=resume), name=f"run {run.id}"
        )

    def stop(self, run: Run, recorded: ErrorInfo = CANCELLED) -> None:
        """End a live run now; what still unwinds is recorded but no longer heard.

        Watchers hear that it was cancelled. What is `recorded` decides whether it had asked in
        vain: an `INTERRUPTED` run can still be answered, and resumed.
        """
        run.end("cancelled")
        left = _undelivered(run)
        run.publish(
            messages.StrategyError(
                run_id=run.id, error=CANCELLED, undelivered_steering=left or UNSET
            )
        )
        if run.task is None:
            self._drop_unstarted(run)
            return
        self._stopped[run.id] = recorded
        if run.begun:
            # A task cancelled before its first step would never get to record its end.
            run.task.cancel()

    def _drop_unstarted(self, run: Run) -> None:
        new = run.prepared is not None and run.prepared.kind == "new"
        run.release()
        if new:
            self._store.drop_selection(run.id)
            self._store.drop_strategy(run.id)

    async def _execute(self, run: Run, prepared: Prepared, text: str, *, resume: bool) -> None:
        run.begun = True
        try:
            if run.status == "running":
                async with self._slots.hold(run.id):
                    await self._segment(run, prepared, text, resume=resume)
        except asyncio.CancelledError:
            run.status = "cancelled"
        finally:
            why = self._stopped.pop(run.id, CANCELLED)
            if run.status == "cancelled":
                await self._record_failure(run, "cancelled", why)
                run.release()
            run.task = None

    async def _segment(self, run: Run, prepared: Prepared, text: str, *, resume: bool) -> None:
        try:
            await self._services.recorder(run.id).sync()
        except NotRecordedError as error:
            await self._finish_failed(run, ErrorInfo(code=error.code, message=str(error)))
            return
        limits = self._services.config.limits.tightened(prepared.limits)
        run.observe(
            messages.StrategyStarted(
                run_id=run.id,
                strategy_name=prepared.strategy.name,
                agents=list(prepared.strategy.agents),
                flow_tree=prepared.strategy.flow_tree,
                budget=limits.told,
            )
        )
        journal = prepared.journal if resume else None
        parts = SegmentParts(
            recorder=self._services.recorder(run.id),
            mailbox=run.mailbox,
            guards=run.policies,
            budget=RunBudget(limits),
            journal=journal or Journal(),
        )
        segment = Segment(self._services, run, prepared, parts, Launcher)
        try:
            result = await segment.execute(journal.input if journal else text)
        except ExecutionError as error:
            told = self._store.lost(run.id) or error
            await self._finish_failed(run, ErrorInfo(code=told.code, message=str(told)))
        except Exception as error:  # our own fault must not leave a ghost running
            log.error("run %s failed unexpectedly", run.id, exc_info=error)
            await self._finish_failed(run, ErrorInfo(code=ExecutionError.code, message=str(error)))
        else:
            await self._finish(run, segment, result)

    def record_start(self, run: Run, prepared: Prepared, text: str, *, resume: bool) -> None:
        """Keep the start of a segment, before it begins. Raises `NotRecordedError`."""
        settings = prepared.settings
        event = events.RunStarted(
            ts=timestamp(),
            strategy_path=str(prepared.strategy.path),
            strategy_name=prepared.strategy.name,
            cwd=settings.cwd,
            initial_input=text,
            manifest_path=settings.manifest_path or UNSET,
            model_override=settings.model_override or UNSET,
            enabled_mcp_server_ids=list(prepared.mcp.enabled) if prepared.mcp else [],
            resume=True if resume else UNSET,
        )
        self._services.recorder(run.id).run_started(event)
        for waiting in run.mailbox:
            self.record_steering(run, waiting.text, waiting.by)

    def record_steering(self, run: Run, text: str, by: events.DecidedBy) -> None:
        """Keep an accepted text, before its sender is told it was. Raises `NotRecordedError`."""
        self._services.recorder(run.id).steering_accepted(text, by)

    async def _finish(self, run: Run, segment: Segment, result: str) -> None:
        try:
            left = await self._complete(run)
        except NotRecordedError as error:
            # Whoever watches must not take for done what the timeline does not have.
            run.status = "running"
            await self._finish_failed(run, ErrorInfo(code=error.code, message=str(error)))
            return
        run.publish(
            messages.StrategyCompleted(
                run_id=run.id,
                result=result,
                usage=segment.usage,
                undelivered_steering=left or UNSET,
                request_id=run.request_id,
            )
        )
        run.release()

    async def _finish_failed(self, run: Run, error: ErrorInfo) -> None:
        left = self._settle(run, "error")
        await self._record_failure(run, "error", error)
        # A client that reacts to the ending must find the run ready to be prepared again.
        run.prepared = None
        run.publish(
            messages.StrategyError(
                run_id=run.id,
                error=error,
                undelivered_steering=left or UNSET,
                request_id=run.request_id,
            )
        )
        run.release()

    async def _complete(self, run: Run) -> list[str]:
        """Record that the run completed, then end it. Raises `NotRecordedError`."""
        _still_running(run)
        recorder = self._services.recorder(run.id)
        recorder.run_ended("completed")
        left = self._settle(run, "completed")
        await recorder.sync()
        run.prepared = None
        return left

    async def _record_failure(self, run: Run, status: events.Ending, error: ErrorInfo) -> None:
        """Record an end as well as it can be; a run that failed has failed all the same."""
        recorder = self._services.recorder(run.id)
        recorder.run_failed(status, error)
        with suppress(NotRecordedError):
            await recorder.sync()

    def _settle(self, run: Run, status: events.Ending) -> list[str]:
        """End the run's state; returns the steering nobody took."""
        _still_running(run)
        run.end(status)
        return _undelivered(run)


def _still_running(run: Run) -> None:
    if run.status != "running":
        # Code that swallowed its cancellation does not turn a stopped run into another ending.
        raise asyncio.CancelledError


def _undelivered(run: Run) -> list[str]:
    """Steering nobody is left to take; senders who asked for a receipt are told."""
    left = run.mailbox.drain()
    for steer in left:
        if steer.receipt is not None:
            steer.receipt(None)
    return [steer.text for steer in left]
