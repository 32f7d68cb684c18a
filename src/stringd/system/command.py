"""Running one program to its end or to a time limit: no terminal, no input, nothing left behind.

The program is an argument list, so a caller can wrap it (into a sandbox, say) before it comes
here. What it prints goes to the caller's sinks as it arrives.
"""

import asyncio
import os
import secrets
import signal
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from enum import Enum, auto
from functools import partial
from typing import Final, NamedTuple

from stringd.system.detached import DetachedJob, JobReport, OpenJob, SandboxJob
from stringd.system.environment import MARK
from stringd.system.processes.child import ChildProcess, spawn_child, start_child
from stringd.system.processes.orphans import adopt_orphans, orphans_of
from stringd.system.processes.table import holds, send_signal
from stringd.system.processes.tree import GRACE_SECONDS, end_orphans, end_tree

Sink = Callable[[bytes], None]

# When the program is gone, what its detached jobs still print is not waited for.
_LINGER_SECONDS: Final = 0.5
_READS_PER_TURN: Final = 16
_FIRST: Final = asyncio.FIRST_COMPLETED


class CommandEnding(Enum):
    """How a command ended."""

    COMPLETED = auto()
    TIMED_OUT = auto()
    CLOSED = auto()
    """Somebody closed it early."""


class CommandEnded(NamedTuple):
    """`status` is 128 + n when `signal` n ended the program."""

    ending: CommandEnding
    status: int
    signal: signal.Signals | None


class Command:
    """A started program: await `wait`, or `close` it early.

    Everything it started ends with it. With `keeps_detached`, jobs live on: processes that left its
    group or have streams of their own; such a program also starts faster, as nobody has to watch
    its descendants. `kept` is handed what lives on. Where the program is a sandbox that keeps jobs
    (`sandboxed`), its end is that of the command inside. One that is ended early leaves no job that
    `kept` would be handed.
    """

    def __init__(
        self,
        argv: Sequence[str],
        *,
        environment: Mapping[str, str],
        directory: str | int,
        out: Sink,
        err: Sink | None = None,
        keeps_detached: bool = False,
        kept: Callable[[DetachedJob], None] | None = None,
        sandboxed: bool = False,
        ends_by: signal.Signals = signal.SIGHUP,
        largest_file: int | None = None,
    ) -> None:
        """Start `argv` in a directory, given by path or by an open descriptor.

        Without `err` both streams go to `out`, in the order of arrival. `ends_by` is how the
        program is asked to end. `largest_file`, in bytes, is for programs that keep no jobs. Raises
        `OSError`, or `ValueError` for text no program can take.
        """
        self._ends_by = ends_by
        self._keeps_detached = keeps_detached
        self._kept = kept
        self._report = JobReport() if sandboxed else None
        self._ending = CommandEnding.COMPLETED
        self._closing: asyncio.Task[None] | None = None
        self._mark = secrets.token_hex(16)
        self._pipes: list[_Pipe] = []
        environment = {**environment, MARK: self._mark}
        ends: list[int] = []
        nothing = os.open(os.devnull, os.O_RDONLY | os.O_CLOEXEC)
        try:
            for sink in (out,) if err is None else (out, err):
                pipe = _Pipe(sink)
                self._pipes.append(pipe)
                ends.append(pipe.theirs)
            start = spawn_child if keeps_detached else start_child
            if keeps_detached:
                adopt_orphans()
            elif largest_file is not None:
                start = partial(start_child, largest_file=largest_file)
            files = (self._report.theirs if self._report else nothing, ends[0], ends[-1])
            self._child: ChildProcess = start(
                argv, environment=environment, cwd=directory, files=files
            )
        except BaseException:
            for pipe in self._pipes:
                pipe.finish()
            if self._report:
                self._report.close()
            raise
        finally:
            for descriptor in (nothing, *ends):
                os.close(descriptor)
        for pipe in self._pipes:
            pipe.listen()
        self._over: set[asyncio.Future[int]] = {self._child.exited}
        if self._report:
            self._report.listen()
            self._over.add(self._report.status)

    @property
    def ended(self) -> bool:
        return any(each.done() for each in self._over)

    async def wait(self, limit: float, grace: float = GRACE_SECONDS) -> CommandEnded:
        """How it ended, at most `limit` seconds from now.

        A program past its time has `grace` seconds to end when it is asked to.
        """
        patience = GRACE_SECONDS
        try:
            done, _ = await asyncio.wait(self._over, timeout=limit, return_when=_FIRST)
            if not done:
                self._ending, patience = CommandEnding.TIMED_OUT, grace
        finally:
            await self._end(patience)
        if self._report and self._report.status.done():
            # Whatever ended its sandbox since then did not end the command.
            return CommandEnded(self._ending, self._report.status.result(), self._report.signal)
        ended_by = self._report.signal if self._report else self._child.signal
        return CommandEnded(self._ending, self._child.exited.result(), ended_by)

    async def close(self) -> None:
        """End it early; `wait` returns what there is."""
        if not self.ended and self._closing is None:
            self._ending = CommandEnding.CLOSED
        await self._end(GRACE_SECONDS)

    async def _end(self, grace: float) -> None:
        # Whoever asks may go away; what was begun is finished.
        if self._closing is None:
            self._closing = asyncio.create_task(self._finish(grace))
        await asyncio.shield(self._closing)

    async def _finish(self, grace: float) -> None:
        try:
            if self._report:
                await self._end_sandbox(self._report, grace)
            elif self._keeps_detached:
                await self._end_group(grace)
            else:
                await end_tree(self._child, self._mark, grace, self._ends_by)
        finally:
            for pipe in self._pipes:
                pipe.finish()

    async def _end_sandbox(self, report: JobReport, grace: float) -> None:
        # Loaded only where there are sandboxes.
        from stringd.system.sandbox.inside import ask_to_end

        early = not self.ended
        if early:
            await asyncio.to_thread(ask_to_end, self._child.pid)
            await asyncio.wait(self._over, timeout=grace, return_when=_FIRST)
        job = SandboxJob(self._child, report)
        if self._child.exited.done():
            report.close()
        elif early or self._kept is None:
            await job.end()
        else:
            self._child.exited.add_done_callback(lambda _status: report.close())
            self._kept(job)

    async def _end_group(self, grace: float) -> None:
        early = not self.ended
        if early:
            self._signal_group(signal.SIGTERM)
            await asyncio.wait({self._child.exited}, timeout=grace)
            self._signal_group(signal.SIGKILL)
            await self._child.exited
        # What it printed last is still in the pipe; a detached job may hold it open for ever.
        await asyncio.wait([pipe.drained for pipe in self._pipes], timeout=_LINGER_SECONDS)
        if early and self._kept is not None:
            await end_orphans(self._child.pid, self._mark)
        elif early:
            self._signal_group(signal.SIGKILL)
        else:
            self._end_talkers()
            job = None if self._kept is None else OpenJob.of(self._child.pid, self._mark)
            if job is not None and self._kept is not None:
                self._kept(job)

    def _end_talkers(self) -> None:
        """Kill what would print for ever into a reply that is over; the rest of the group are jobs
        with streams of their own.
        """
        streams = [pipe.name for pipe in self._pipes if not pipe.drained.done()]
        if not streams:
            return
        for process in orphans_of(self._child.pid, self._mark):
            if process.group == self._child.pid and holds(process.pid, streams):
                send_signal(process, signal.SIGKILL)

    def _signal_group(self, number: signal.Signals) -> None:
        """The child leads its own session, so its id names its whole group."""
        with suppress(ProcessLookupError, PermissionError):
            os.killpg(self._child.pid, number)


class _Pipe:
    """One stream. `drained` is done when nobody can write to it any more."""

    def __init__(self, sink: Sink) -> None:
        self._sink = sink
        self._loop = asyncio.get_running_loop()
        self.drained: asyncio.Future[None] = self._loop.create_future()
        self._ours, self.theirs = os.pipe()
        os.set_blocking(self._ours, False)

    @property
    def name(self) -> str:
        """What the kernel calls it in lists of open files."""
        return f"pipe:[{os.fstat(self._ours).st_ino}]"

    def listen(self) -> None:
        self._loop.add_reader(self._ours, self._readable)

    def finish(self) -> None:
        """Take what is still there and close our end."""
        if self._ours < 0:
            return
        while self._read():
            pass
        self._loop.remove_reader(self._ours)
        os.close(self._ours)
        self._ours = -1

    def _readable(self) -> None:
        for _ in range(_READS_PER_TURN):
            if not self._read():
                return

    def _read(self) -> bool:
        try:
            data = os.read(self._ours, 65536)
        except (BlockingIOError, InterruptedError):
            return False
        if not data:
            self._loop.remove_reader(self._ours)
            if not self.drained.done():
                self.drained.set_result(None)
            return False
        self._sink(data)
        return True


async def ask_program(
    argv: Sequence[str], question: bytes, environment: Mapping[str, str]
) -> bytes:
    """What a helper program of our own prints in answer to its input; killed with the caller."""
    child = await asyncio.create_subprocess_exec(
        *argv,
        stdin=asyncio.subprocess.PIPE,
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.DEVNULL,
        env=environment,
        start_new_session=True,
    )
    try:
        answer, _ = await child.communicate(question)
    finally:
        if child.returncode is None:
            child.kill()
            await child.wait()
    return answer


def output_of(argv: Sequence[str], environment: Mapping[str, str], limit: float) -> str:
    """What a short program prints, for callers outside the loop.

    Raises `TimeoutError` or another `OSError`.
    """
    import subprocess

    with subprocess.Popen(
        list(argv),
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        env=environment,
        start_new_session=True,
    ) as program:
        try:
            printed, _ = program.communicate(timeout=limit)
        except subprocess.TimeoutExpired:
            # With what it started, which would hold the pipe open and outlive it.
            os.killpg(program.pid, signal.SIGKILL)
            raise TimeoutError from None
    return printed.decode("utf-8", "replace")
