"""The audit log: append-only JSON lines in which each record seals the ones before it.

A record's `hash` is the SHA-256 of the record without it, and `prev` is the hash of the record
before. Changing, removing or reordering a line breaks every hash after it. A line that a power
loss cut off stays in place; the next record says so in `torn`. The last hash is also kept apart, in
a small file beside the log, and in the memory of the gate that runs: whoever removes the log, cuts
off its end or puts another one in its place does not get a log that verifies.
"""

import fcntl
import json
import os
import stat
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Final, NamedTuple

from stringd.gate.errors import TroubleError, os_text
from stringd.gate.instants import format_instant
from stringd.gate.sha import sha256
from stringd.wire.gate import AUDIT_LOG

FILE_NAME: Final = AUDIT_LOG
HEAD_SUFFIX: Final = ".head"
GENESIS: Final = "0" * 64
# A record with this member says that the last hash is kept apart from then on.
HEAD_KEPT: Final = "head_kept"
# More than the largest record: a full request line, every character of it escaped.
_TAIL_BYTES: Final = 8 * 1024 * 1024


class Broken(NamedTuple):
    """The first record that does not hold."""

    line: int
    why: str


class Verdict(NamedTuple):
    records: int
    broken: Broken | None


class AuditHead(NamedTuple):
    """The end of a chain: how many records, and the hash of the last one."""

    seq: int = 0
    hash: str = GENESIS


class AuditLog:
    """Appends records. Two gates may share a file: an append is locked and continues it.

    `notice` is told, once each time, that somebody removed, cut, changed or replaced the log.
    """

    def __init__(self, path: Path, notice: Callable[[str], None] = lambda _: None) -> None:
        self._path = path
        self._notice = notice
        self._lock = threading.Lock()
        self._descriptor: int | None = None
        self._head: AuditHead | None = None
        self._end = 0
        self._last = b""
        """The bytes of the last record, which end at `_end`."""

    def append(self, event: str, fields: dict[str, object], *, sync: bool = False) -> None:
        """Write one record, on disk before returning if `sync`. Raises `TroubleError`."""
        problems: list[str] = []
        try:
            with self._lock, self._exclusively() as descriptor:
                torn = self._catch_up(descriptor, problems)
                for problem in problems:
                    self._write(descriptor, "disturbed", {"message": problem} | torn)
                    torn = {}
                self._write(descriptor, event, fields | torn)
                if sync:
                    os.fdatasync(descriptor)
                self._keep_head()
        except OSError as error:
            raise TroubleError(f"audit log cannot be written: {os_text(error)}") from None
        finally:
            for problem in problems:
                self._notice(problem)

    def check(self) -> None:
        """Look whether the log is still the one we wrote; if not, say so and record it."""
        with self._lock:
            disturbed = self._head is not None and self._objection() is not None
        if disturbed:
            with suppress(TroubleError):
                self.append("continued", {})

    @property
    def head(self) -> AuditHead:
        """Where the chain ends, as far as we know."""
        return self._head or AuditHead()

    def close(self) -> None:
        if self._descriptor is not None:
            os.close(self._descriptor)
            self._descriptor = None

    @contextmanager
    def _exclusively(self) -> Iterator[int]:
        if self._descriptor is not None and not self._is_in_place(self._descriptor):
            # A log that nobody can find is not one: write where they look.
            self.close()
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

    def _objection(self) -> str | None:
        """What is wrong with the log, as far as a look at its end shows."""
        try:
            found = self._path.lstat()
        except FileNotFoundError:
            return "the audit log was removed"
        except OSError:
            return None
        if self._descriptor is not None and not os.path.samestat(found, os.fstat(self._descriptor)):
            return "another file was put in the place of the audit log"
        if found.st_size < self._end:
            return "the end of the audit log was cut off"
        return self._changed_end(self._descriptor)

    def _changed_end(self, descriptor: int | None) -> str | None:
        size = len(self._last)
        if descriptor is None or os.pread(descriptor, size, self._end - size) == self._last:
            return None
        return "the audit log was changed"

    def _catch_up(self, descriptor: int, problems: list[str]) -> dict[str, object]:
        """Be at the end of the chain; a torn last line is closed and named.

        A chain that we know is continued from our memory, whatever the file says: a log that does
        not end where we left it can then never verify.
        """
        size = os.fstat(descriptor).st_size
        if self._head is None:
            self._head, problem = self._first_look(descriptor, size)
        elif size < self._end or self._changed_end(descriptor) is not None:
            lost = "removed or replaced" if size == 0 else "cut off, changed or replaced"
            problem = f"the audit log was {lost} while the gate was running"
        elif size > self._end:
            self._head, problem = self._follow(descriptor, size)
        else:
            return {}
        if problem is not None:
            problems.append(problem)
        self._end = size
        tail = os.pread(descriptor, _TAIL_BYTES, max(0, size - _TAIL_BYTES))
        torn = tail.rpartition(b"\n")[2]
        if not torn:
            return {}
        self._end += _write_all(descriptor, b"\n")
        return {"torn": sha256(torn).hexdigest()}

    def _first_look(self, descriptor: int, size: int) -> tuple[AuditHead, str | None]:
        """Where the chain in the file ends, and whether that fits what was kept apart."""
        tail = os.pread(descriptor, _TAIL_BYTES, max(0, size - _TAIL_BYTES))
        whole, _, torn = tail.rpartition(b"\n")
        lines = whole.split(b"\n")
        heads = [head for line in lines if (head := _head_of(line)) is not None]
        found = heads[-1] if heads else AuditHead()
        kept = read_head(self._path)
        if kept is None:
            if f'"{HEAD_KEPT}":true'.encode() in tail:
                return found, "the last hash of the audit log, kept apart from it, was removed"
            return found, None
        if torn and kept.seq == found.seq + 1:
            # Power was lost while the last record was written; what is left of it is named.
            return found, None
        if kept.seq > found.seq or (heads and kept.seq >= heads[0].seq and kept not in heads):
            return kept, "the audit log does not end where the last gate left it"
        return found, None

    def _follow(self, descriptor: int, size: int) -> tuple[AuditHead, str | None]:
        """Another gate wrote: go along with it as far as it continues what we know."""
        new = os.pread(descriptor, min(size - self._end, _TAIL_BYTES), self._end)
        head = self._head or AuditHead()
        for text in new.rpartition(b"\n")[0].split(b"\n"):
            record = _parsed(text)
            if record is None:
                continue
            if record.get("prev") != head.hash or record.get("hash") != seal(record):
                return head, "records in the audit log do not continue what this gate knows"
            head = AuditHead(head.seq + 1, str(record["hash"]))
        return head, None

    def _write(self, descriptor: int, event: str, fields: dict[str, object]) -> None:
        head = self._head or AuditHead()
        record: dict[str, object] = {"seq": head.seq + 1, "time": format_instant(time.time_ns())}
        record |= {"event": event, **fields, "prev": head.hash}
        record["hash"] = seal(record)
        data = encode(record)
        self._end += _write_all(descriptor, data)
        self._head, self._last = AuditHead(head.seq + 1, str(record["hash"])), data

    def _keep_head(self) -> None:
        head = self._head or AuditHead()
        flags = os.O_WRONLY | os.O_CREAT | os.O_NOFOLLOW | os.O_CLOEXEC
        descriptor = os.open(head_path(self._path), flags, 0o600)
        try:
            # Always as long, so that one write replaces all of it.
            os.pwrite(descriptor, f"{head.seq:020} {head.hash}\n".encode("ascii"), 0)
        finally:
            os.close(descriptor)


def head_path(log: Path) -> Path:
    """Where the last hash of a log is kept."""
    return log.with_name(log.name + HEAD_SUFFIX)


def read_head(log: Path) -> AuditHead | None:
    """The last hash that was kept; None if there is none. What cannot be read fits no log."""
    try:
        text = head_path(log).read_text(encoding="ascii", errors="replace")
    except FileNotFoundError:
        return None
    seq, _, digest = text.strip().partition(" ")
    return AuditHead(int(seq), digest) if seq.isdigit() else AuditHead(2**63, "")


def encode(record: dict[str, object]) -> bytes:
    return json.dumps(record, separators=(",", ":")).encode("ascii") + b"\n"


def seal(record: dict[str, object]) -> str:
    """The hash a record must carry."""
    return sha256(encode({k: v for k, v in record.items() if k != "hash"})).hexdigest()


def records(path: Path) -> Iterator[tuple[int, bytes, dict[str, object] | None]]:
    """Every line with its number and its record, None where the line is not one."""
    with open(path, "rb") as file:
        for number, line in enumerate(file, start=1):
            yield number, line, _parsed(line)


def verify(path: Path) -> Verdict:
    """Walk the whole chain to the hash kept apart. Raises `OSError` if the file cannot be read."""
    kept = read_head(path)
    prev, seq = GENESIS, 0
    torn: bytes | None = None
    number = 0
    head_was_kept = False
    for number, line, record in records(path):
        why = _objection(line, record, prev, seq, torn)
        if why is None and kept is not None and seq + 1 == kept.seq and record is not None:
            why = None if record["hash"] == kept.hash else "another record was written here first"
        if why is not None:
            return Verdict(seq, Broken(number, why))
        if record is None:
            torn = line.removesuffix(b"\n")
            continue
        head_was_kept = head_was_kept or HEAD_KEPT in record
        prev, seq, torn = str(record["hash"]), seq + 1, None
    if torn is not None:
        return Verdict(seq, Broken(number, "the line is cut off"))
    if kept is not None and kept.seq > seq:
        return Verdict(seq, Broken(number + 1, "the log ends here, but more had been written"))
    if kept is None and head_was_kept:
        return Verdict(seq, Broken(number, f"{head_path(path)} with its last hash is missing"))
    return Verdict(seq, None)


def _objection(
    line: bytes, record: dict[str, object] | None, prev: str, seq: int, torn: bytes | None
) -> str | None:
    if record is None:
        return None if torn is None else "two consecutive lines are not records"
    if record.get("hash") != seal(record) or encode(record) != line:
        return "its hash does not match its content"
    if record.get("prev") != prev:
        return "it does not continue the record before it"
    if record.get("seq") != seq + 1:
        return f"its number is {record.get('seq')}, not {seq + 1}"
    if record.get("torn") != (None if torn is None else sha256(torn).hexdigest()):
        return "the line before it is not a record"
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


def _parsed(line: bytes) -> dict[str, object] | None:
    try:
        value = json.loads(line)
    except (ValueError, RecursionError):
        return None
    return value if isinstance(value, dict) else None


def _head_of(line: bytes) -> AuditHead | None:
    record = _parsed(line)
    if record is None:
        return None
    seq, digest = record.get("seq"), record.get("hash")
    return AuditHead(seq, digest) if isinstance(seq, int) and isinstance(digest, str) else None
