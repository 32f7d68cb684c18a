"""Runs an approved pipeline on another machine, over ssh, with the limits of one that runs here."""

import os
import secrets
import select
import time
from collections.abc import Mapping
from contextlib import suppress
from typing import Final, NamedTuple

from stringd.gate.decide import Permit
from stringd.gate.display import clipped
from stringd.gate.errors import AbortedError, StoppingError, TroubleError
from stringd.gate.hosts import HostEntry
from stringd.gate.pipeline import DRAIN_SECONDS, Outcome
from stringd.gate.processes import ALL_SIGNALS, Child
from stringd.gate.program import Route
from stringd.gate.remote_script import GRACE_SECONDS, GarbledError, RemoteTalk, greeting, script
from stringd.gate.resolve import confirm
from stringd.gate.ssh import Connections, unreachable
from stringd.gate.watch import READABLE, Watch

# What is told to end there may take so long to say that it did.
ENDING_SECONDS: Final = GRACE_SECONDS + 2.0
_READ_BYTES: Final = 65_536
_SHOWN: Final = 200


class Connected(NamedTuple):
    """A machine that was just reached, and the call that starts a session there."""

    host: HostEntry
    ssh: str
    words: tuple[str, ...]
    started: float


class RemoteExecutor:
    """Runs permits that name another machine."""

    def __init__(
        self, time_limit: int, own_env: Mapping[str, str], connections: Connections
    ) -> None:
        self._time_limit = time_limit
        self._own_env = own_env
        self._connections = connections

    def connect(self, route: Route, watch: Watch, *, agent: bool) -> Connected:
        """Have a connection to the machine; nothing runs yet.

        Raises `TroubleError` without one, and what `watch` raises while it is made.
        """
        started = time.monotonic()
        ssh = confirm(route.ssh)
        words = self._connections.command(ssh, route.host, watch, agent=agent)
        return Connected(route.host, ssh, (*words, "exec sh"), started)

    def close(self) -> None:
        """End the connections that were kept for the next command."""
        self._connections.close()

    def run(self, permit: Permit, connected: Connected, watch: Watch) -> Outcome:
        """Run to the end. Raises `TroubleError`, with what is known of the processes there."""
        started, entry, request = connected.started, connected.host, permit.request
        session = _Session(permit, connected, self._own_env)
        try:
            session.run(watch, started + self._time_limit)
        except TimeoutError:
            what = "command" if len(request.pipeline) == 1 else "pipeline"
            known = session.end()
            text = f"{what} timed out after {self._time_limit}s on {entry.name}; {known}"
            raise TroubleError(text) from None
        except AbortedError:
            raise TroubleError(f"{AbortedError()}; {session.end()}") from None
        except StoppingError:
            session.end(1.0)
            raise
        except GarbledError:
            known = session.end()
            text = f"the answer of {entry.name} could not be understood; {known}"
            raise TroubleError(text) from None
        finally:
            session.close()
        return session.outcome(started)


class _Session:
    """One `ssh` and what comes from it."""

    def __init__(self, permit: Permit, connected: Connected, own_env: Mapping[str, str]) -> None:
        request = permit.request
        token = secrets.token_hex(16)
        text = script(
            request.pipeline,
            request.env,
            token,
            as_root=request.privileged,
            agent=request.forward_agent,
        )
        self._entry = connected.host
        self._script: bytes | None = text.encode()
        self._unsent = memoryview(greeting(token).encode())
        self._talk = RemoteTalk(token, len(request.pipeline))
        self._start(connected.ssh, connected.words, own_env)

    def _start(self, ssh: str, words: tuple[str, ...], own_env: Mapping[str, str]) -> None:
        pipes = [os.pipe() for _ in range(3)]
        (stdin, self._input), (out, stdout), (err, stderr) = pipes
        theirs = (stdin, stdout, stderr)
        try:
            pid = os.posix_spawn(
                ssh,
                words,
                own_env,
                file_actions=[(os.POSIX_SPAWN_DUP2, end, n) for n, end in enumerate(theirs)],
                setsid=True,
                setsigmask=[],
                setsigdef=ALL_SIGNALS,
            )
        except OSError as error:
            for descriptor in (self._input, out, err):
                os.close(descriptor)
            text = f"ssh could not be started: {error.strerror}; nothing was run"
            raise TroubleError(text) from None
        finally:
            for descriptor in theirs:
                os.close(descriptor)
        os.set_blocking(self._input, False)
        self._readers = {out: self._talk.feed_stdout, err: self._talk.feed_stderr}
        self._out, self._err = out, err
        self._child: Child | None = Child(pid)
        self._open = {out, err}

    def run(self, watch: Watch, deadline: float) -> None:
        """Until every stage there has ended. Raises `TimeoutError` at the deadline."""
        while not self._talk.has_all and self._open:
            self._turn(watch, deadline - time.monotonic())
        drained = time.monotonic() + DRAIN_SECONDS
        with suppress(TimeoutError):
            while self._open:
                self._turn(watch, drained - time.monotonic())
        self._talk.finish()

    def outcome(self, started: float) -> Outcome:
        """What it came to. Raises `TroubleError` if it did not come to its end."""
        talk = self._talk
        if talk.refusal is not None:
            why = clipped(talk.refusal, _SHOWN)
            raise TroubleError(f"sudo on {self._entry.name} did not run the command: {why}")
        if not talk.has_all:
            raise TroubleError(self._lost())
        talk.stdout.is_open = self._out in self._open
        talk.stderrs[-1].is_open = self._err in self._open
        codes = tuple(talk.codes[index] for index in range(talk.stages))
        duration = round((time.monotonic() - started) * 1000)
        return Outcome(codes, talk.stdout, talk.stderrs, duration)

    def end(self, seconds: float = ENDING_SECONDS) -> str:
        """Tell the processes there to end; what is known of them then."""
        self._close_input()
        deadline = time.monotonic() + seconds
        with suppress(TimeoutError, GarbledError):
            while not self._talk.is_over and self._open:
                self._poll(deadline - time.monotonic())
        return self._known()

    def close(self) -> None:
        self._close_input()
        for descriptor in self._readers:
            os.close(descriptor)
        self._readers = {}
        if self._child is not None:
            with suppress(ProcessLookupError):
                os.kill(self._child.pid, 9)
            self._child.reap()
            self._child = None

    def _turn(self, watch: Watch, seconds: float) -> None:
        wanted = dict.fromkeys(self._open, READABLE)
        if self._unsent:
            wanted[self._input] = select.POLLOUT
        # The caller may leave: a started command runs to its end all the same.
        happened = watch.wait(wanted, seconds, caller=False) if seconds > 0 else {}
        if not happened:
            raise TimeoutError
        self._take(happened)

    def _poll(self, seconds: float) -> None:
        """The same while nothing else matters: the gate may be stopping already."""
        poll = select.poll()
        for descriptor in self._open:
            poll.register(descriptor, READABLE)
        happened = dict(poll.poll(max(0, seconds) * 1000))
        if not happened:
            raise TimeoutError
        self._take(happened)

    def _take(self, happened: Mapping[int, int]) -> None:
        for descriptor in happened:
            if descriptor == self._input:
                self._send()
                continue
            if data := os.read(descriptor, _READ_BYTES):
                self._readers[descriptor](data)
            else:
                self._open.discard(descriptor)
        if self._talk.is_ready and self._script is not None and self._input >= 0:
            self._unsent, self._script = memoryview(self._script), None

    def _send(self) -> None:
        try:
            self._unsent = self._unsent[os.write(self._input, self._unsent) :]
        except BlockingIOError:
            pass
        except OSError:
            # ssh ended; what it said says why.
            self._unsent = self._unsent[:0]

    def _close_input(self) -> None:
        if self._input >= 0:
            os.close(self._input)
            self._input = -1
            self._unsent = self._unsent[:0]

    def _lost(self) -> str:
        if self._script is not None:
            return unreachable(self._entry, self._talk.preamble)
        return f"the connection to {self._entry.name} was lost; {self._known()}"

    def _known(self) -> str:
        """What is known of the processes there."""
        name, pid = self._entry.name, self._talk.pid
        if self._script is not None:
            return "nothing was run"
        if pid is None:
            return (
                f"whether it had started on {name} is not known; if so, it ends with the connection"
            )
        if self._talk.is_over:
            return f"its processes on {name} have ended"
        if self._talk.is_killing:
            return f"its processes on {name} were killed"
        return (
            f"process {pid} had started on {name} and ends with the connection; "
            "whether it has ended is not known"
        )
