"""The one thread that writes sessions: a slow or locked disk keeps only those waiting who changed
something.

What was asked for while it wrote is written together, in the order it was asked for.
"""

import asyncio
import sqlite3
from collections.abc import Callable, Sequence
from queue import Empty, SimpleQueue
from threading import Thread
from typing import Final, NamedTuple

MAX_TOGETHER: Final = 256

Write = Callable[[sqlite3.Connection], object]


class _Job(NamedTuple):
    write: Write
    erases: bool
    done: "asyncio.Future[None]"


class SessionWriter:
    """Used from one event loop; the thread starts with the first write."""

    def __init__(self, db: sqlite3.Connection) -> None:
        self._db = db
        self._jobs: SimpleQueue[_Job | None] = SimpleQueue()
        self._thread: Thread | None = None

    def put(self, write: Write, *, erases: bool = False) -> "asyncio.Future[None]":
        """Write after everything asked for before; the future raises `sqlite3.Error`.

        With `erases`, what was deleted is gone from the log of changes too.
        """
        if self._thread is None:
            self._thread = Thread(target=self._work, name="stringd-sessions", daemon=True)
            self._thread.start()
        done: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._jobs.put(_Job(write, erases, done))
        return done

    def close(self) -> None:
        """Finish what was asked for and end the thread."""
        if self._thread is not None:
            self._jobs.put(None)
            self._thread.join()
            self._thread = None

    def _work(self) -> None:
        more = True
        while more and (job := self._jobs.get()) is not None:
            jobs = [job]
            try:
                while len(jobs) < MAX_TOGETHER:
                    following = self._jobs.get_nowait()
                    if following is None:
                        more = False
                        break
                    jobs.append(following)
            except Empty:
                pass
            self._write(jobs)

    def _write(self, jobs: Sequence[_Job]) -> None:
        failure = self._commit(jobs)
        if failure is not None and len(jobs) > 1 and not is_busy(failure):
            # One that cannot be written must not take the others with it.
            for job in jobs:
                self._write([job])
            return
        loop = jobs[0].done.get_loop()
        if not loop.is_closed():
            loop.call_soon_threadsafe(_settle, jobs, failure)

    def _commit(self, jobs: Sequence[_Job]) -> sqlite3.Error | None:
        db = self._db
        try:
            db.execute("BEGIN IMMEDIATE")
            for job in jobs:
                job.write(db)
            db.execute("COMMIT")
            if any(job.erases for job in jobs):
                # Deleted rows also live in the log of changes until that is emptied.
                db.execute("PRAGMA wal_checkpoint(TRUNCATE)")
        except sqlite3.Error as error:
            if db.in_transaction:
                db.execute("ROLLBACK")
            return error
        return None


def is_busy(error: sqlite3.Error) -> bool:
    """Whether another program holds the database."""
    return getattr(error, "sqlite_errorcode", 0) & 0xFF in (
        sqlite3.SQLITE_BUSY,
        sqlite3.SQLITE_LOCKED,
    )


def _settle(jobs: Sequence[_Job], failure: sqlite3.Error | None) -> None:
    for job in jobs:
        if job.done.cancelled():
            continue
        if failure is None:
            job.done.set_result(None)
        else:
            job.done.set_exception(failure)
