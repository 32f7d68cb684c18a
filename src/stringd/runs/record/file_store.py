"""Runs as files: `<id>.jsonl` timelines, `events/<id>.jsonl` broadcasts, `<id>.config.json` and
`<id>.strategy.json` for what a client chose and sent.

Lines are only ever appended; one that was torn is skipped when read.
"""

import errno
import logging
import os
from collections.abc import Iterator, Sequence
from itertools import chain
from pathlib import Path
from typing import Final, NamedTuple, TypedDict

import msgspec

from stringd.runs.errors import NotRecordedError
from stringd.runs.record.events import (
    INTERRUPTED,
    AnyEvent,
    RunCompleted,
    RunStarted,
    TimelineEvent,
    decode_events,
    each_event,
    encode_event,
    event_name,
)
from stringd.runs.record.frame_pieces import kept_pieces
from stringd.runs.record.frames import frame_number
from stringd.runs.record.store import KeptStrategy
from stringd.runs.record.views import overview
from stringd.system.append_files import MAX_OPEN, AppendFiles
from stringd.system.clock import timestamp
from stringd.system.damage import put_aside
from stringd.system.files import make_private_directory, write_atomically
from stringd.wire.runs.types import RunOverview

log = logging.getLogger(__name__)

_TAIL: Final = 64 * 1024

_BOUNDS: Final = (RunStarted, RunCompleted)


class _Known(NamedTuple):
    """An overview, good as long as the file looks the same."""

    mark: tuple[int, int]
    overview: RunOverview | None


class _Selection(TypedDict):
    enabledMcpServerIds: list[str]  # as it is in the file


class FileRunStore:
    """The runs directory. Use it from the loop's thread; reading may happen in another."""

    def __init__(self, directory: Path, *, max_open: int = MAX_OPEN) -> None:
        self._directory = directory
        self._events = directory / "events"
        # Plain text: these are joined and looked up with every event of every run.
        self._timeline_prefix = f"{self._directory}/"
        self._events_prefix = f"{self._events}/"
        self._files = AppendFiles(max_open)
        # Live runs that lost an event, and ends of segments that are in memory alone.
        self._stopped: dict[str, NotRecordedError] = {}
        self._unwritten: dict[str, RunCompleted] = {}
        self._unkept: set[str] = set()
        self._overviews: dict[str, _Known] = {}

    def claim(self, run_id: str) -> bool:
        try:
            claimed = self._files.claim(self._timeline(run_id))
        except OSError as error:
            raise NotRecordedError(run_id, "its start", error) from error
        if claimed:
            self._stopped.pop(run_id, None)
        return claimed

    def append(self, run_id: str, event: TimelineEvent) -> None:
        if run_id in self._stopped:
            raise self._stopped[run_id].with_traceback(None)
        path = self._timeline(run_id)
        try:
            self._files.write(path, encode_event(event))
        except OSError as error:
            raise self._not_recorded(run_id, event_name(event), error) from error
        if self._unwritten:
            self._unwritten.pop(run_id, None)

    def lost(self, run_id: str) -> NotRecordedError | None:
        return self._stopped.get(run_id)

    def end(self, run_id: str, event: RunCompleted) -> None:
        try:
            self._files.write(self._timeline(run_id), encode_event(event))
        except OSError as error:
            log.error("cannot record the end of run %s: %s", run_id, error)
            self._unwritten[run_id] = event
            self._overviews.pop(run_id, None)

    def append_broadcast(self, run_id: str, frame: bytes) -> None:
        try:
            self._files.write(self._broadcasts(run_id), frame + b"\n")
        except OSError as error:
            if run_id not in self._unkept:
                self._unkept.add(run_id)
                log.error("cannot keep what run %s shows: %s", run_id, error)

    async def sync(self, run_id: str) -> None:
        try:
            await self._files.sync(self._timeline(run_id))
        except OSError as error:
            raise self._not_recorded(run_id, "its last events", error) from error

    def _not_recorded(self, run_id: str, what: str, error: OSError) -> NotRecordedError:
        log.error("run %s: cannot record %s: %s", run_id, what, error)
        failure = NotRecordedError(run_id, what, error)
        path = self._timeline(run_id)
        if self._files.claimed(path):
            self._stopped[run_id] = failure
        return failure

    def timeline(self, run_id: str) -> list[AnyEvent]:
        events = decode_events(_lines(self._timeline(run_id)))
        unwritten = self._unwritten.get(run_id)
        return events if unwritten is None else [*events, unwritten]

    def exists(self, run_id: str) -> bool:
        return run_id in self._unwritten or any(
            True for _ in each_event(_lines(self._timeline(run_id)))
        )

    def broadcasts(self, run_id: str, from_seq: int) -> Iterator[tuple[int, bytes]]:
        for line in _lines(self._broadcasts(run_id)):
            number = frame_number(line)
            if number is not None and number >= from_seq:
                yield number, line

    def broadcast_pieces(self, run_id: str) -> Iterator[bytes]:
        return kept_pieces(self._broadcasts(run_id))

    def surplus(self, keep: int) -> list[str]:
        newest = sorted(self._events.glob("*.jsonl"), key=_changed, reverse=True)
        return [p.stem for p in newest[keep:] if _many_lines(p) and self._completed(p.stem)]

    def _completed(self, run_id: str) -> bool:
        seen = self._overview(Path(self._timeline(run_id)))
        return seen is not None and seen.status == "completed"

    def forget_broadcasts(self, run_id: str) -> None:
        path = self._broadcasts(run_id)
        last = _last_frame(path)
        if last is None:
            return
        try:
            age = os.stat(path)  # noqa: PTH116
            write_atomically(Path(path), last[1] + b"\n", 0o600)
            # Its age decides which files are kept.
            os.utime(path, ns=(age.st_atime_ns, age.st_mtime_ns))
        except OSError as error:
            log.error("cannot shorten %s: %s", path, error)

    def last_seq(self, run_id: str) -> int:
        last = _last_frame(self._broadcasts(run_id))
        return last[0] if last else 0

    def last_frame(self, run_id: str) -> bytes | None:
        last = _last_frame(self._broadcasts(run_id))
        return last[1] if last else None

    def overviews(self, unchanged_since: float | None = None) -> list[RunOverview]:
        """All of them; those of files that changed since a moment are as they were read before."""
        found = (self._overview(path, unchanged_since) for path in self._directory.glob("*.jsonl"))
        known = [each for each in found if each is not None]
        return sorted(known, key=lambda each: each.started_at, reverse=True)

    def _overview(self, path: Path, unchanged_since: float | None = None) -> RunOverview | None:
        try:
            stat = path.stat()
        except OSError:
            return None
        mark = (stat.st_mtime_ns, stat.st_size)
        known = self._overviews.get(path.stem)
        if unchanged_since is not None and stat.st_mtime > unchanged_since:
            return known.overview if known is not None else None
        if known is None or known.mark != mark:
            known = _Known(mark, self._read_overview(path, stat.st_mtime))
            self._overviews[path.stem] = known
        return known.overview

    def _read_overview(self, path: Path, changed: float) -> RunOverview | None:
        bad: list[bytes] = []
        events = each_event(_lines(str(path)), bad.append)
        unwritten = self._unwritten.get(path.stem)
        seen = overview(path.stem, events if unwritten is None else chain(events, (unwritten,)))
        emptied = _empty(str(path)) and not self._never_began(path)
        if seen is None and (bad or emptied or not os.access(path, os.R_OK)):
            # Nothing says what it was; that there was something must not be forgotten.
            when = timestamp(changed)
            seen = RunOverview(
                run_id=path.stem,
                cwd="",
                strategy_name="",
                strategy_path="",
                started_at=when,
                completed_at=when,
                status="error",
                damage="nothing in it can be read",
            )
        elif seen is not None and bad:
            seen.damage = f"{len(bad)} line(s) cannot be read"
        return seen

    def repair(self) -> list[str]:
        found = [run_id for p in self._directory.glob("*.jsonl") if (run_id := self._mend(p))]
        return sorted(found)

    def _mend(self, path: Path) -> str | None:
        """The run's id if a crash ended its last segment, which is then said at its end."""
        if self._never_began(path):
            self._forget_claim(path.stem)
            return None
        # Most histories end properly; their last lines say so without reading the rest.
        bounds = [e for e in decode_events(_tail(str(path))) if isinstance(e, _BOUNDS)]
        if bounds and isinstance(bounds[-1], RunCompleted):
            return path.stem if bounds[-1].interrupted else None
        seen = self._overview(path)
        if seen is None or seen.status != "running":
            return None
        try:
            if not self.claim(seen.run_id):
                return None
        except NotRecordedError as error:
            log.error("%s", error)
            return None
        self.end(seen.run_id, RunCompleted(ts=timestamp(), status="error", error=INTERRUPTED))
        self.release(seen.run_id)
        return seen.run_id

    def _never_began(self, path: Path) -> bool:
        """Whether a kill came between the claim of a run and its first event."""
        return _empty(str(path)) and not self.last_seq(path.stem)

    def _forget_claim(self, run_id: str) -> None:
        path = Path(self._timeline(run_id))
        try:
            # Another daemon may be about to begin it.
            if self.claim(run_id) and self._never_began(path):
                path.unlink(missing_ok=True)
                self.drop_selection(run_id)
        except (OSError, NotRecordedError) as error:
            log.error("cannot remove %s: %s", path, error)
        finally:
            self._files.release(str(path))

    def selection(self, run_id: str) -> list[str] | None:
        try:
            found = msgspec.json.decode(self._selection(run_id).read_bytes(), type=_Selection)
        except (OSError, msgspec.DecodeError):
            return None
        return found["enabledMcpServerIds"]

    def save_selection(self, run_id: str, server_ids: list[str], *, synced: bool = True) -> None:
        content = msgspec.json.encode({"enabledMcpServerIds": server_ids})
        path = self._selection(run_id)
        if not synced and _written_new(path, content):
            return
        make_private_directory(self._directory)
        if path.exists() and self.selection(run_id) is None:
            put_aside(path)
        write_atomically(path, content, 0o600, synced=synced)

    def drop_selection(self, run_id: str) -> None:
        self._selection(run_id).unlink(missing_ok=True)

    def create(self, run_id: str, events: Sequence[TimelineEvent], frames: list[bytes]) -> None:
        timeline = Path(self._timeline(run_id))
        if timeline.exists():
            raise FileExistsError(timeline)
        make_private_directory(self._events)
        if frames:
            data = b"".join(frame + b"\n" for frame in frames)
            write_atomically(Path(self._broadcasts(run_id)), data, 0o600)
        # The timeline comes last: a run without one does not exist.
        write_atomically(timeline, b"".join(map(encode_event, events)), 0o600)

    def keep_strategy(self, run_id: str, strategy: bytes) -> Path:
        make_private_directory(self._directory)
        path = self._strategy(run_id)
        write_atomically(path, strategy, 0o600)
        return path

    def kept_strategy(self, run_id: str) -> KeptStrategy | None:
        path = self._strategy(run_id)
        try:
            return KeptStrategy(path, path.read_bytes())
        except FileNotFoundError:
            return None

    def drop_strategy(self, run_id: str) -> None:
        self._strategy(run_id).unlink(missing_ok=True)

    def delete(self, run_id: str) -> None:
        self.release(run_id)
        self._overviews.pop(run_id, None)
        self._unwritten.pop(run_id, None)
        # The timeline goes first: a run without one does not exist.
        for path in (self._timeline(run_id), self._broadcasts(run_id)):
            Path(path).unlink(missing_ok=True)
        self.drop_selection(run_id)
        self.drop_strategy(run_id)

    def release(self, run_id: str) -> None:
        path = self._timeline(run_id)
        self._files.release(path)
        self._files.release(self._broadcasts(run_id))
        self._unkept.discard(run_id)
        if self._stopped.pop(run_id, None) is not None and _empty(path):
            # A run whose start could not be recorded does not exist.
            Path(path).unlink(missing_ok=True)

    def close(self) -> None:
        self._files.close()

    def _timeline(self, run_id: str) -> str:
        return f"{self._timeline_prefix}{run_id}.jsonl"

    def _broadcasts(self, run_id: str) -> str:
        return f"{self._events_prefix}{run_id}.jsonl"

    def _selection(self, run_id: str) -> Path:
        return self._directory / f"{run_id}.config.json"

    def _strategy(self, run_id: str) -> Path:
        return self._directory / f"{run_id}.strategy.json"


def _written_new(path: Path, content: bytes) -> bool:
    """Write a file nobody has made yet, nor its place to be made. Raises `OSError`.

    A crash may leave it without bytes, as of any file that is not synced.
    """
    try:
        fd = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600)
    except (FileExistsError, FileNotFoundError):
        return False
    try:
        if os.write(fd, content) < len(content):
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
    except OSError:
        path.unlink(missing_ok=True)
        raise
    finally:
        os.close(fd)
    return True


def _changed(path: Path) -> float:
    try:
        return path.stat().st_mtime
    except OSError:
        return 0.0


def _empty(path: str) -> bool:
    try:
        return os.stat(path).st_size == 0  # noqa: PTH116
    except OSError:
        return False


def _many_lines(path: Path) -> bool:
    try:
        with path.open("rb") as file:
            file.readline()
            return bool(file.read(1))
    except OSError:
        return False


def _tail(path: str) -> list[bytes]:
    """The last lines of a file; the first of them may be cut."""
    try:
        with open(path, "rb") as file:
            size = file.seek(0, os.SEEK_END)
            file.seek(max(0, size - _TAIL))
            return file.read().split(b"\n")
    except OSError:
        return []


def _lines(path: str) -> Iterator[bytes]:
    try:
        with open(path, "rb") as file:
            for line in file:
                # Not both: a reader may take its time, and a line may be a megabyte.
                line = line.rstrip(b"\n")
                yield line
    except FileNotFoundError:
        return
    except OSError as error:
        log.error("cannot read %s: %s", path, error)


def _last_frame(path: str) -> tuple[int, bytes] | None:
    """The last frame of a file, with its number."""
    tail = _tail(path)
    if not tail:
        return None
    for line in reversed(tail):
        if number := frame_number(line):
            return number, line
    # One frame may be longer than the tail.
    frames = ((number, line) for line in _lines(path) if (number := frame_number(line)))
    return max(frames, default=None)
