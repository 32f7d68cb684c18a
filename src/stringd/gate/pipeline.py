"""The processes of one pipeline, from the first to the last. There is no shell here.

Children run in `/` with umask 077 and see descriptors 0, 1 and 2 only; a text that an interpreter
runs and that may change on the disk has its unchangeable copy as 3. Unprivileged ones get a
session of their own, so that nothing can reach the approver's terminal. Privileged ones share one
process group in this session, which holds the terminal while it runs: sudo may ask there, and
Ctrl-C ends it.
"""

import fcntl
import os
import signal
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from typing import Final

from stringd.gate.capture import Capture
from stringd.gate.decide import Permit
from stringd.gate.display import clipped
from stringd.gate.environment import plain_environment
from stringd.gate.errors import AbortedError, TroubleError, os_text
from stringd.gate.opened import OpenedWatch
from stringd.gate.processes import ALL_SIGNALS, QUIET, Child, end
from stringd.gate.program import ShownProgram
from stringd.gate.resolve import confirm, executable, resolve, unwritable
from stringd.gate.sudo import (
    CHANGED_CODE,
    CHANGED_TEXT,
    checked_words,
    refused_by_sudo,
    sudo_words,
    would_run,
)
from stringd.gate.watch import READABLE, Watch
from stringd.wire.gate import Stage

# A background process that keeps a pipe open must not hold up the answer.
DRAIN_SECONDS: Final = 2.0
# What Ctrl-C was pressed for may tidy up for so long before it is killed.
INTERRUPT_SECONDS: Final = 5.0
_PIPE_BYTES: Final = 1_048_576
# Where a child finds the copy of the text it is to run.
_COPY: Final = 3
# Of what sudo says, so much is passed on.
_SHOWN: Final = 200

_Actions = Sequence[tuple[int, int, int]]


@dataclass(frozen=True, slots=True)
class Outcome:
    """How a pipeline ended, with everything it printed that was kept."""

    codes: tuple[int, ...]
    stdout: Capture
    stderrs: tuple[Capture, ...]
    duration_ms: int

    def stages(self) -> tuple[Stage, ...]:
        return tuple(
            Stage(
                # The wire says -1 for every signal; which one it was is beside it.
                exit_code=code if code >= 0 else -1,
                stderr=stderr.blob(),
                stderr_truncated=stderr.truncated,
                signal=-code if code < 0 else None,
                stderr_open=stderr.is_open,
            )
            for code, stderr in zip(self.codes, self.stderrs, strict=True)
        )


class Pipeline:
    """Starts, feeds and ends the processes of one permit."""

    def __init__(self, permit: Permit, own_env: Mapping[str, str]) -> None:
        self._permit = permit
        self._request = permit.request
        self._own_env = own_env
        self._sudo = permit.sudo.path if permit.sudo is not None else None
        self._children: dict[int, Child] = {}
        self._codes: dict[int, int] = {}
        self._streams: dict[int, Capture] = {}
        self._stdout = Capture()
        self._stderrs = [Capture() for _ in self._request.pipeline]
        self._opened: OpenedWatch | None = None
        self._was_opened = True
        self._guard: Child | None = None
        self._guarding = -1
        self._is_interrupted = False
        self._deadline = 0.0
        self.group = 0

    @property
    def is_single(self) -> bool:
        return len(self._request.pipeline) == 1

    @property
    def may_ask_twice(self) -> bool:
        """Whether more than one sudo might ask for a password; root is never asked."""
        return self._request.privileged and not self.is_single and os.geteuid() != 0

    def run(self, watch: Watch, deadline: float) -> None:
        """From the first process to the last. Raises `TimeoutError` at the deadline."""
        if self.may_ask_twice:
            self.authenticate(watch, deadline)
        self.start()
        self.pump(watch, deadline)

    def open_group(self) -> None:
        """Have a process group before anything is in it, with a process that waits for Ctrl-C.

        The terminal sends the signal to the whole group. sudo may catch it, at its password for
        instance, and then only end with a code like any other; the one that waits ends by it.
        """
        with self._naming(0):
            path = confirm(resolve("cat"))
            read, self._guarding = os.pipe()
            # Its input ends with us, whatever ends us.
            actions = [*QUIET[1:], (os.POSIX_SPAWN_DUP2, read, 0)]
            try:
                pid = os.posix_spawn(
                    path,
                    ["cat"],
                    {},
                    file_actions=actions,
                    setpgroup=0,
                    setsigmask=[],
                    setsigdef=ALL_SIGNALS,
                )
            finally:
                os.close(read)
        self._guard = Child(pid)
        self.group = pid

    def authenticate(self, watch: Watch, deadline: float) -> None:
        """Let sudo ask once before the first stage: several asking at once share one keyboard."""
        if self._sudo is None:
            return
        with self._naming(0):
            pid = self._spawn_in_group(self._sudo, ["sudo", "-v"], [])
        child = self._children[0] = Child(pid)
        if not watch.wait({child.pidfd: READABLE}, deadline - time.monotonic(), caller=False):
            raise TimeoutError
        if (code := self._children.pop(0).reap()) != 0:
            self._check_interrupt()
            raise TroubleError(f"sudo did not authenticate (exit code {code})")

    def start(self) -> None:
        """Start every stage, after every program was found to be the one that was shown."""
        for index, program in enumerate(self._permit.programs):
            with self._naming(index):
                confirm(program)
        with self._naming(0):
            stdin = os.open(os.devnull, os.O_RDONLY | os.O_CLOEXEC)
        self._streams[stdin] = self._stdout
        for index in range(len(self._request.pipeline)):
            with self._naming(index):
                stdin = self._start_stage(index, stdin)

    def pump(self, watch: Watch, deadline: float) -> None:
        """Collect output until every child has ended. Raises `TimeoutError` at the deadline."""
        self._stdout.is_open = True
        for stderr in self._stderrs:
            stderr.is_open = True
        self._deadline = deadline
        try:
            while self._children:
                self._turn(watch, self._deadline - time.monotonic())
        except TimeoutError:
            if self._is_interrupted:
                raise AbortedError from None
            raise
        self._check_interrupt()
        drained = time.monotonic() + DRAIN_SECONDS
        with suppress(TimeoutError):
            while self._streams:
                self._turn(watch, drained - time.monotonic())

    def end(self) -> list[int]:
        """Kill what still runs; the processes that could not be killed."""
        children = list(self._children.values())
        self._children.clear()
        return end(children, self._sudo) if children else []

    def close(self) -> None:
        for descriptor in self._streams:
            os.close(descriptor)
        self._streams.clear()
        if self._opened is not None:
            self._was_opened = self._opened.was_opened()
            self._opened.close()
            self._opened = None
        self.end()
        self._end_guard()

    def outcome(self, started: float) -> Outcome:
        codes = tuple(self._codes[index] for index in range(len(self._stderrs)))
        duration = round((time.monotonic() - started) * 1000)
        return Outcome(codes, self._stdout, tuple(self._stderrs), duration)

    def check_started(self, outcome: Outcome) -> None:
        """Raise `TroubleError` if root did not get as far as the command.

        What was printed says so, and a command could print it too: it counts only where we see
        the reason ourselves.
        """
        if self._sudo is None:
            return
        for program, code, stderr in zip(
            self._permit.programs, outcome.codes, outcome.stderrs, strict=True
        ):
            if not program.is_fixed and _is_changed(code, stderr):
                confirm(program)
        if not self.is_single or os.geteuid() == 0 or outcome.stdout.total:
            return
        line = refused_by_sudo(outcome.codes[0], outcome.stderrs[0].head)
        if line and not would_run(self._sudo, self._command(0), self._own_env):
            said = clipped(line, _SHOWN)
            if self._was_opened:
                # sudo may remember no password, so that `would_run` is always a no.
                raise TroubleError(f"not certain whether the command ran; it or sudo says: {said}")
            raise TroubleError(f"sudo did not run the command: {said}")

    def _start_stage(self, index: int, stdin: int) -> int:
        """Start one stage reading from `stdin`, which is closed; the end its output comes from."""
        program = self._permit.programs[index]
        out, err = self._pipe(self._stdout), self._pipe(self._stderrs[index])
        with out as (out_read, out_write), err as (_, err_write), unwritable(program):
            pid = self._spawn(index, program, (stdin, out_write, err_write))
        del self._streams[stdin]
        os.close(stdin)
        self.group = self.group or pid
        self._children[index] = Child(pid)
        return out_read

    @contextmanager
    def _pipe(self, stream: Capture) -> Iterator[tuple[int, int]]:
        """A pipe into a stream. Its end to write to is ours until a child has it.

        Whatever fails, `close` closes the other end and ends the stages before.
        """
        read, write = os.pipe()
        self._streams[read] = stream
        try:
            with suppress(OSError):
                fcntl.fcntl(write, fcntl.F_SETPIPE_SZ, _PIPE_BYTES)
            yield read, write
        finally:
            os.close(write)

    def _spawn(self, index: int, program: ShownProgram, standard: tuple[int, int, int]) -> int:
        words = list(self._request.pipeline[index])
        actions = [(os.POSIX_SPAWN_DUP2, source, target) for target, source in enumerate(standard)]
        if self._sudo is None:
            path, copy = executable(program, _COPY)
            if copy is not None:
                # Last, because the number may be one of the others' until then.
                actions.append((os.POSIX_SPAWN_DUP2, copy, _COPY))
            env = plain_environment(self._request, self._own_env)
            return os.posix_spawn(
                path,
                words,
                env,
                file_actions=actions,
                setsid=True,
                setsigmask=[],
                setsigdef=ALL_SIGNALS,
            )
        words = sudo_words("sudo", self._request.env, self._command(index))
        if self.is_single and os.geteuid() != 0 and program.path is not None:
            # What the command prints does not prove that it was not started.
            self._opened = OpenedWatch(program.path)
        return self._spawn_in_group(self._sudo, words, actions)

    def _command(self, index: int) -> list[str]:
        """What sudo is asked to run for a stage."""
        program, words = self._permit.programs[index], list(self._request.pipeline[index])
        if not program.is_fixed and program.identity is not None:
            confirm(program)
            return checked_words(program, words)
        return [confirm(program), *words[1:]]

    def _spawn_in_group(self, path: str, words: list[str], actions: _Actions) -> int:
        return os.posix_spawn(
            path,
            words,
            self._own_env,
            file_actions=actions,
            setpgroup=self.group,
            setsigmask=[],
            setsigdef=ALL_SIGNALS,
        )

    @contextmanager
    def _naming(self, index: int) -> Iterator[None]:
        """Tell the caller which stage could not be started."""
        try:
            yield
        except OSError as error:
            stage = f"spawn pipeline stage {index}"
            what = "execute command" if self.is_single else stage
            raise TroubleError(f"failed to {what}: {os_text(error)}") from None

    def _turn(self, watch: Watch, seconds: float) -> None:
        ending = {child.pidfd: index for index, child in self._children.items()}
        wanted = dict.fromkeys([*self._streams, *ending], READABLE)
        if self._guard is not None:
            wanted[self._guard.pidfd] = READABLE
        # The caller may leave: a started command runs to its end all the same.
        happened = watch.wait(wanted, seconds, caller=False) if seconds > 0 else {}
        if not happened:
            raise TimeoutError
        if self._guard is not None and happened.pop(self._guard.pidfd, 0):
            # The command has the signal too and may end in its own way first.
            self._end_guard()
            self._deadline = min(self._deadline, time.monotonic() + INTERRUPT_SECONDS)
        for descriptor in happened:
            if descriptor in ending:
                self._codes[ending[descriptor]] = self._children.pop(ending[descriptor]).reap()
            else:
                self._read(descriptor)

    def _check_interrupt(self) -> None:
        """Raise `AbortedError` if Ctrl-C was pressed."""
        self._end_guard()
        if self._is_interrupted:
            raise AbortedError

    def _end_guard(self) -> None:
        """Let the one that waited for Ctrl-C end, and see how: a signal comes before the end."""
        if self._guarding >= 0:
            os.close(self._guarding)
            self._guarding = -1
        if self._guard is not None:
            self._is_interrupted = self._guard.reap() in (-signal.SIGINT, -signal.SIGQUIT)
            self._guard = None

    def _read(self, descriptor: int) -> None:
        stream = self._streams[descriptor]
        count = os.readv(descriptor, [stream.room()])
        if count:
            stream.took(count)
            return
        self._streams.pop(descriptor).is_open = False
        os.close(descriptor)


def _is_changed(code: int, stderr: Capture) -> bool:
    """Whether root found another file than the one that was shown, and ran nothing."""
    return code == CHANGED_CODE and stderr.head.rstrip().endswith(CHANGED_TEXT.encode())
