"""Runs an approved pipeline within its time. Nothing runs without a `Permit`."""

import os
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractContextManager, suppress
from pathlib import Path

from stringd.gate.decide import Permit
from stringd.gate.errors import TroubleError
from stringd.gate.pipeline import Outcome, Pipeline
from stringd.gate.watch import Watch
from stringd.system.memory import keep_freed_memory

Lend = Callable[[int], AbstractContextManager[None]]


class OverrunError(TroubleError):
    """The time limit passed. `survivors` could not be ended, which only happens to root's."""

    def __init__(self, message: str, survivors: Sequence[int]) -> None:
        super().__init__(message)
        self.survivors = tuple(survivors)


class Executor:
    """Runs permits.

    Creating one readies this process to be a parent: in `/`, umask 077, no descriptor passed on.
    """

    def __init__(self, time_limit: int, own_env: Mapping[str, str]) -> None:
        self._time_limit = time_limit
        self._own_env = own_env
        os.chdir("/")
        os.umask(0o077)
        _keep_descriptors_private()
        keep_freed_memory()

    def run(self, permit: Permit, watch: Watch, lend: Lend) -> Outcome:
        """Run to the end. Raises `TroubleError` when it cannot start or overruns its time.

        `lend` gives the terminal to a process group; only a privileged pipeline gets it.
        """
        started = time.monotonic()
        pipeline = Pipeline(permit, self._own_env)
        try:
            if permit.request.privileged:
                # First the terminal, then sudo: one that finds itself in the background may give up
                # where it would have asked.
                pipeline.open_group()
                with lend(pipeline.group):
                    pipeline.run(watch, started + self._time_limit)
            else:
                pipeline.run(watch, started + self._time_limit)
        except TimeoutError:
            raise self._overrun(pipeline) from None
        finally:
            pipeline.close()
        outcome = pipeline.outcome(started)
        pipeline.check_started(outcome)
        return outcome

    def _overrun(self, pipeline: Pipeline) -> OverrunError:
        survivors = pipeline.end()
        what = "command" if pipeline.is_single else "pipeline"
        return OverrunError(f"{what} timed out after {self._time_limit}s", survivors)


def _keep_descriptors_private() -> None:
    """Whatever we were started with besides 0, 1 and 2 stays with us."""
    for entry in Path("/proc/self/fd").iterdir():
        if (number := int(entry.name)) > 2:
            # The listing's own descriptor is closed by now.
            with suppress(OSError):
                os.set_inheritable(number, False)
