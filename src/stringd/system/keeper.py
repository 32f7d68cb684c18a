"""A small process beside the daemon that ends what the daemon started, when the daemon is gone.

It waits at a pipe that only the daemon holds the other end of, so it learns of every way a daemon
can end, `kill -9` included. It is a shell that reads, so it costs a megabyte while nothing happens,
and becomes Python when there is something to end. If it was killed too, the next daemon on the
data directory finds the record of this one and does its work.
"""

import asyncio
import fcntl
import json
import logging
import os
import sys
from contextlib import suppress
from pathlib import Path
from typing import Final, NamedTuple

from stringd.system.files import make_private_directory
from stringd.system.lineage import Marks
from stringd.system.processes.child import ChildProcess, spawn_child
from stringd.system.processes.table import find
from stringd.system.processes.tree import GRACE_SECONDS
from stringd.system.sweep import end_started

logger = logging.getLogger("stringd.system")

RECORDS: Final = "daemons"
"""The directory inside a data directory with a file for each daemon that uses it."""
_MAX_RECORD: Final = 4096
_SHELL: Final = "/bin/sh"
# A line means that the daemon has ended everything itself, the end of the pipe that it is gone.
_WAIT: Final = 'trap "" HUP INT TERM; read -r _ && exit 0; exec "$@"'
_SWEEP: Final = (
    "import sys; sys.path.insert(0, sys.argv[1]); "
    "from stringd.system.sweep import sweep_when_gone; sweep_when_gone(*sys.argv[2:])"
)
_RESTART_SECONDS: Final = 1.0


class DaemonRecord(NamedTuple):
    """What a file says about a daemon: how its processes are known, and since when it runs."""

    lowest: int
    highest: int
    started: int
    boot: str

    @property
    def marks(self) -> Marks:
        return Marks(self.lowest, self.highest)


class Keeper:
    """The process that ends what this daemon leaves, and a record of the daemon; made in its loop.

    Without room for the record there is only the process.
    """

    def __init__(self, data_dir: Path, marks: Marks) -> None:
        """Raises `OSError`."""
        self._record = DaemonRecord(*marks, _started(), _boot())
        self._path = data_dir / RECORDS / f"{marks.highest:x}.json"
        self._lock: int | None = None
        with suppress(OSError):
            self._lock = _write(self._path, self._record)
        self._closing = False
        self._restart: asyncio.TimerHandle | None = None
        self._child, self._pipe = self._start()

    async def close(self) -> None:
        """End everything that is left of what this daemon started, then the keeper."""
        self._closing = True
        if self._restart is not None:
            self._restart.cancel()
        keeper = {self._child.pid}
        await asyncio.to_thread(
            end_started,
            *(self._record.marks, self._record.started),
            spared=keeper,
            grace=GRACE_SECONDS,
        )
        with suppress(OSError):
            self._path.unlink()
        if self._lock is not None:
            os.close(self._lock)
        with suppress(OSError):
            os.write(self._pipe, b"\n")
        os.close(self._pipe)
        await asyncio.wait({self._child.exited}, timeout=GRACE_SECONDS)

    def _start(self) -> tuple[ChildProcess, int]:
        waits, pipe = os.pipe()
        nothing = os.open(os.devnull, os.O_WRONLY | os.O_CLOEXEC)
        root = str(Path(__file__).parents[2])
        python = os.path.realpath(sys.executable)
        numbers = (os.getpid(), self._record.started, *self._record.marks)
        sweep = (python, "-I", "-S", "-c", _SWEEP, root, str(self._path), *map(str, numbers))
        try:
            child = spawn_child(
                (_SHELL, "-c", _WAIT, "stringd-keeper", *sweep),
                environment={},
                cwd="/",
                files=(waits, nothing, nothing),
            )
        except OSError:
            os.close(pipe)
            raise
        finally:
            os.close(waits)
            os.close(nothing)
        child.exited.add_done_callback(self._ended)
        return child, pipe

    def _ended(self, _status: asyncio.Future[int]) -> None:
        """Somebody killed it: another takes its place."""
        if not self._closing:
            loop = asyncio.get_running_loop()
            self._restart = loop.call_later(_RESTART_SECONDS, self._start_again)

    def _start_again(self) -> None:
        os.close(self._pipe)
        try:
            self._child, self._pipe = self._start()
        except OSError as error:
            logger.warning("the keeper cannot be started again: %s", error)


def sweep_killed(data_dir: Path) -> int:
    """End what daemons that were killed left behind; how many processes that were.

    For a daemon that starts: usually whatever there was is gone already.
    """
    return sum(_sweep_record(path) for path in (data_dir / RECORDS).glob("*.json"))


def _sweep_record(path: Path) -> int:
    """End what the daemon of a record left, unless that daemon lives; then remove the record."""
    try:
        descriptor = os.open(path, os.O_RDWR | os.O_NOFOLLOW | os.O_CLOEXEC)
    except OSError:
        return 0
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        record = _parsed(os.read(descriptor, _MAX_RECORD))
        ended = 0
        if record is not None and record.boot == _boot():
            ended = len(end_started(record.marks, record.started))
        path.unlink()
    except OSError:
        return 0
    finally:
        os.close(descriptor)
    return ended


def _write(path: Path, record: DaemonRecord) -> int:
    """Write a record and lock it for as long as this process lives."""
    make_private_directory(path.parent)
    flags = os.O_RDWR | os.O_CREAT | os.O_TRUNC | os.O_NOFOLLOW | os.O_CLOEXEC
    descriptor = os.open(path, flags, 0o600)
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        os.write(descriptor, json.dumps(record._asdict()).encode())
    except OSError:
        os.close(descriptor)
        raise
    return descriptor


def _parsed(content: bytes) -> DaemonRecord | None:
    try:
        record = DaemonRecord(**json.loads(content))
    except (ValueError, TypeError):
        return None
    numbers = (record.lowest, record.highest, record.started)
    sound = all(type(number) is int for number in numbers) and record.marks.sound
    return record if sound else None


def _started() -> int:
    own = find(os.getpid())
    return own.started if own is not None else 0


def _boot() -> str:
    """Which start of the machine this is: times count from there."""
    with suppress(OSError), open("/proc/sys/kernel/random/boot_id", encoding="ascii") as file:
        return file.read().strip()
    return ""
