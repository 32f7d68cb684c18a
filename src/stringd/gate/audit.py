"""The audit log: append-only JSON lines in which each record seals the ones before it.

A record's `hash` is the SHA-256 of the record without it, and `prev` is the hash of the record
before. Changing, removing or reordering a line breaks every hash after it. A line that a power
loss cut off stays in place; the next record says so in `torn`.
"""

import fcntl
import json
import os
import stat
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from hashlib import sha256
from pathlib import Path
from typing import Final, NamedTuple

from stringd.gate.errors import TroubleError, os_text
from stringd.gate.instants import format_instant

FILE_NAME: Final = "gate-audit.jsonl"
GENESIS: Final = "0" * 64
# More than the largest record: a full request line, every character of it escaped.
_TAIL_BYTES: Final = 8 * 1024 * 1024


class Broken(NamedTuple):
    """The first record that does not hold."""

    line: int
    why: str


class Verdict(NamedTuple):
    records: int
    broken: Broken | None


class AuditLog:
    """Appends records. Two gates may share a file: an append is locked and continues it."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._lock = threading.Lock()
        self._descriptor: int | None = None
        self._end = -1
        self._seq = 0
        self._prev = GENESIS

    def append(self, event: str, fields: dict[str, object], *, sync: bool = False) -> None:
        """Write one record, on disk before returning if `sync`. Raises `TroubleError`."""
        try:
            with self._lock, self._exclusively() as descriptor:
                record = self._record(event, fields, self._catch_up(descriptor))
                data = encode(record)
                self._end += _write_all(descriptor, data)
                self._seq, self._prev = int(str(record["seq"])), str(record["hash"])
            if sync:
                os.fdatasync(descriptor)
        except OSError as error:
            # What reached the file is unknown now, so look again before the next record.
            self._end = -1
            raise TroubleError(f"audit log cannot be written: {os_text(error)}") from None

    def close(self) -> None:
        if self._descriptor is not None:
            os.close(self._descriptor)
            self._descriptor = None

    @contextmanager
    def _exclusively(self) -> Iterator[int]:
        if self._descriptor is not None and not self._is_in_place(self._descriptor):
            # Somebody removed or moved the file: a log nobody can find is none.
            self.close()
            self._end = -1
        if self._descriptor is None:
            self._descriptor = _open(self._path)
        fcntl.flock(self._descriptor, fcntl.LOCK_EX)
        try:
            yield self._descriptor
        finally:
            fcntl.flock(self._descriptor, fcntl.LOCK_UN)

    def _is_in_place(self, descriptor: int) -> bool:
        try:
            return os.path.samestat(self._path.lstat(), os.fstat(descriptor))
        except FileNotFoundError:
            return False

    def _catch_up(self, descriptor: int) -> dict[str, object]:
        """Be at the end of the chain; a torn last line is closed and named."""
        size = os.fstat(descriptor).st_size
        if size == self._end:
            return {}
        tail = os.pread(descriptor, _TAIL_BYTES, max(0, size - _TAIL_BYTES))
        whole, _, torn = tail.rpartition(b"\n")
        self._seq, self._prev = _last(whole)
        self._end = size
        if not torn:
            return {}
        self._end += _write_all(descriptor, b"\n")
        return {"torn": sha256(torn).hexdigest()}

    def _record(
        self, event: str, fields: dict[str, object], torn: dict[str, object]
    ) -> dict[str, object]:
        record: dict[str, object] = {"seq": self._seq + 1, "time": format_instant(time.time_ns())}
        record |= {"event": event, **fields, **torn, "prev": self._prev}
        record["hash"] = seal(record)
        return record


def encode(record: dict[str, object]) -> bytes:
    return json.dumps(record, separators=(",", ":")).encode("ascii") + b"\n"


def seal(record: dict[str, object]) -> str:
    """The hash a record must carry."""
    return sha256(encode({k: v for k, v in record.items() if k != "hash"})).hexdigest()


def records(path: Path) -> Iterator[tuple[int, bytes, dict[str, object] | None]]:
    """Every line with its number and its record, None where the line is not one."""
    with open(path, "rb") as file:
        for number, line in enumerate(file, start=1):
            try:
                value = json.loads(line)
            except ValueError:
                value = None
            yield number, line, value if isinstance(value, dict) else None


def verify(path: Path) -> Verdict:
    """Walk the whole chain. Raises `OSError` if the file cannot be read."""
    prev, seq = GENESIS, 0
    torn: bytes | None = None
    number = 0
    for number, line, record in records(path):
        why = _objection(line, record, prev, seq, torn)
        if why is not None:
            return Verdict(seq, Broken(number, why))
        if record is None:
            torn = line.removesuffix(b"\n")
            continue
        prev, seq, torn = str(record["hash"]), seq + 1, None
    if torn is not None:
        return Verdict(seq, Broken(number, "the line is cut off"))
    return Verdict(seq, None)


def _objection(
    line: bytes, record: dict[str, object] | None, prev: str, seq: int, torn: bytes | None
) -> str | None:
    if record is None:
        return None if torn is None else "two lines in a row are no records"
    if record.get("hash") != seal(record) or encode(record) != line:
        return "its hash does not fit its content"
    if record.get("prev") != prev:
        return "it does not continue the record before it"
    if record.get("seq") != seq + 1:
        return f"its number is {record.get('seq')}, not {seq + 1}"
    if record.get("torn") != (None if torn is None else sha256(torn).hexdigest()):
        return "the line before it is no record"
    return None


def _open(path: Path) -> int:
    path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    flags = os.O_RDWR | os.O_APPEND | os.O_CREAT | os.O_NOFOLLOW | os.O_CLOEXEC
    descriptor = os.open(path, flags, 0o600)
    found = os.fstat(descriptor)
    if not stat.S_ISREG(found.st_mode) or found.st_uid != os.getuid():
        os.close(descriptor)
        raise PermissionError(13, "not our own file")
    os.fchmod(descriptor, 0o600)
    _sync_folder(path.parent)
    return descriptor


def _sync_folder(folder: Path) -> None:
    """A new file is on disk only when its name is. Not every file system can do that."""
    descriptor = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    with suppress(OSError):
        os.fsync(descriptor)
    os.close(descriptor)


def _write_all(descriptor: int, data: bytes) -> int:
    written = os.write(descriptor, data)
    if written != len(data):
        raise OSError(28, "short write")
    return written


def _last(whole: bytes) -> tuple[int, str]:
    """Number and hash of the last record among complete lines."""
    for line in reversed(whole.split(b"\n")):
        try:
            record = json.loads(line)
            return int(record["seq"]), str(record["hash"])
        except (ValueError, KeyError, TypeError):
            continue
    return 0, GENESIS
