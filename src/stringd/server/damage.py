"""What cannot be read of the files the daemon keeps: what it was, and how to bring it back.

A look reads what changed since the last one, so that it can be taken again and again.
"""

import os
import sqlite3
import time
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, NamedTuple

import msgspec

from stringd.runtime.editing.paths import RECORD_FILE, SAVED_FILE
from stringd.runtime.packages.mcp_app import MOUNT_FILE, Mount
from stringd.runtime.packages.record import Record
from stringd.runtime.topics.store import StoredSession
from stringd.runtime.topics.undo_store import UndoRecord
from stringd.runtime.topics.users import User
from stringd.system.damage import SUFFIX, kept_aside
from stringd.system.trust import TrustError, TrustStore

if TYPE_CHECKING:
    from stringd.runs import FileRunStore

MAX_NAMED: Final = 100
"""Of more damaged files than this, the rest is only counted."""

_WRITING_SECONDS: Final = 5.0
_BYTES_A_LOOK: Final = 64 * 1024 * 1024
"""Of events and trash a look reads no more than this; the next one continues."""

Mark = tuple[int, ...]


class Damage(NamedTuple):
    """`what` is what the file kept, `back` how to bring it back."""

    path: Path
    what: str
    back: str

    @property
    def sentence(self) -> str:
        return f"{self.path}: {self.what}. {self.back}"


class _Kind(NamedTuple):
    """One kind of JSON file: what it keeps, how to bring it back, and its type."""

    what: str
    back: str
    type: Any


_OBJECT: Final = dict[str, Any]
_DATA: Final = {
    "users.json": _Kind(
        "the users and their homes",
        "Users come back from sessions.db, or with `string user add`; compare and delete the file.",
        list[User],
    ),
    "credentials.json": _Kind(
        "keys of model providers",
        "Set them again with `stringd keys`, then delete the file.",
        dict[str, dict[str, Any]],
    ),
    "provider-registry.json": _Kind(
        "the registered model providers",
        "Register them again, then delete the file.",
        list[str],
    ),
    "homes.json": _Kind(
        "which homes had apps before installed apps were recorded",
        "Restore it from a backup. If no home is older than this version, delete it.",
        _OBJECT,
    ),
    "cache/models-catalog.json": _Kind(
        "the catalog of models", "It is fetched again by itself.", _OBJECT
    ),
}
_HOME: Final = {
    "config.json": _Kind(
        "the variables and the installed apps of this home",
        "Restore it from a backup. Without it, delete it, and set and install again.",
        _OBJECT,
    ),
    RECORD_FILE: _Kind(
        "which files of apps are as installed",
        "Its apps do not run until they are installed again; then delete the file.",
        Record,
    ),
    SAVED_FILE: _Kind(
        "which files came from the web",
        "Until then every file of this home counts as one. Restore it from a backup, or look for "
        "pages you did not write and delete it.",
        _OBJECT,
    ),
}
_VARIABLES: Final = _Kind(
    "the variables of an app", "Set them again with /set once the file is deleted.", _OBJECT
)
_UNDO: Final = _Kind(
    "the step back of a topic", "Only /undo needs it: delete the file.", UndoRecord
)
_SELECTION: Final = _Kind(
    "the MCP servers chosen for a run",
    "They are chosen again when it continues; delete the file.",
    _OBJECT,
)
_SESSIONS: Final = (
    "what topics remember",
    "What could be read was taken over; `sqlite3 <file> .recover` may show more. Delete it.",
)
_MOUNT: Final = _Kind(
    "a mounted MCP server", "Mount it again with /install --mcp, or /uninstall it.", Mount
)
_OTHER: Final = ("a file of the daemon", "Restore it from a backup, or delete it.")


class DamageCheck:
    """The files of one data directory, and of the homes of its users."""

    def __init__(self, data_dir: Path) -> None:
        self._data_dir = data_dir
        self._seen: dict[Path, tuple[Mark, list[Damage]]] = {}
        self._runs: FileRunStore | None = None
        self._left = 0
        self._looked = False

    def look(self) -> list[Damage]:
        """Everything that cannot be read now, by name. Reads files: call it in a thread."""
        self._left = _BYTES_A_LOOK
        found = list(self._all())
        self._looked = True
        if len(found) <= MAX_NAMED:
            return found
        rest = f"{len(found) - MAX_NAMED} more damaged files"
        return [*found[:MAX_NAMED], Damage(self._data_dir, rest, "See `stringd doctor`.")]

    def _all(self) -> Iterator[Damage]:
        data = self._data_dir
        yield from _put_aside(data, {name: kind[:2] for name, kind in _DATA.items()})
        yield from _put_aside(data / "runs", {})
        for name, kind in _DATA.items():
            yield from self._json(data / name, kind)
        yield from self._unless_seen(data / "sessions.db", _rows)
        yield from self._timelines(data / "runs")
        for path in sorted((data / "runs" / "events").glob("*.jsonl")):
            yield from self._large(path, _frames)
        for path in sorted((data / "trash").glob("*/*.tar.gz")):
            yield from self._large(path, _archive)
        yield from self._unless_seen(data / "mcp.json", _servers)
        for path in sorted((data / "runs").glob("*.config.json")):
            yield from self._json(path, _SELECTION)
        for path in sorted((data / "undo").glob("*/*/*.json")):
            yield from self._json(path, _UNDO)
        for home in self._homes():
            yield from self._home(home)
        yield from _trust()

    def _homes(self) -> list[Path]:
        try:
            users = _decode_file(self._data_dir / "users.json", list[User])
        except (OSError, ValueError):
            return []
        return sorted({Path(user.home) for user in users})

    def _home(self, home: Path) -> Iterator[Damage]:
        yield from _put_aside(home / "packages", {Path(RECORD_FILE).name: _HOME[RECORD_FILE][:2]})
        for name, kind in _HOME.items():
            yield from self._json(home / name, kind)
        for path in sorted((home / "packages").glob(f"*/{MOUNT_FILE}")):
            yield from self._json(path, _MOUNT)
        for pattern in ("*/env.json", "*/*/env.json"):
            for path in sorted((home / "apps").glob(pattern)):
                yield from self._json(path, _VARIABLES)

    def _json(self, path: Path, kind: _Kind) -> Iterator[Damage]:
        yield from self._unless_seen(path, partial(_unreadable_json, kind))

    def _unless_seen(self, path: Path, read: Callable[[Path], Iterator[Damage]]) -> list[Damage]:
        """What is wrong with a file, as known from the last look if it is the same."""
        try:
            status = path.stat()
        except FileNotFoundError:
            self._seen.pop(path, None)
            return []
        except OSError:
            return list(read(path))
        mark = status.st_ino, status.st_size, status.st_mtime_ns, status.st_ctime_ns
        known = self._seen.get(path)
        if known is None or known[0] != mark:
            known = self._seen[path] = (mark, list(read(path)))
        return known[1]

    def _large(self, path: Path, read: Callable[[Path], Iterator[Damage]]) -> list[Damage]:
        """`_unless_seen`, as far as a look may read; one that is being written is read later."""
        known = self._seen.get(path)
        try:
            status = path.stat()
        except OSError:
            return self._unless_seen(path, read)
        writing = self._looked and status.st_mtime > time.time() - _WRITING_SECONDS
        if writing or (self._left <= 0 and known is None):
            return known[1] if known is not None else []
        if known is None or known[0][1] != status.st_size:
            self._left -= status.st_size
        return self._unless_seen(path, read)

    def _timelines(self, directory: Path) -> Iterator[Damage]:
        if self._runs is None:
            from stringd.runs import FileRunStore

            self._runs = FileRunStore(directory)
            found = self._runs.overviews()
        else:
            # One that is being written may be large, and is read when nobody writes it.
            found = self._runs.overviews(time.time() - _WRITING_SECONDS)
        for run in found:
            if run.damage:
                yield Damage(
                    directory / f"{run.run_id}.jsonl",
                    f"timeline of run {run.run_id}: {run.damage}",
                    "What can be read is used; restore the file from a backup, or: "
                    f"stringd runs delete {run.run_id}",
                )


def examine(data_dir: Path) -> list[Damage]:
    """Everything that cannot be read, by name. Reads all of it: call it in a thread."""
    return DamageCheck(data_dir).look()


def _put_aside(directory: Path, known: dict[str, tuple[str, str]]) -> Iterator[Damage]:
    for path in kept_aside(directory):
        name = path.name.partition(SUFFIX)[0]
        what, back = _SESSIONS if name == "sessions.db" else known.get(name, _OTHER)
        yield Damage(path, f"unreadable, kept aside: {what}", back)


def _unreadable_json(kind: _Kind, path: Path) -> Iterator[Damage]:
    if problem := _problem(partial(_decode_file, path, kind.type)):
        yield Damage(path, f"{kind.what} cannot be read ({problem})", kind.back)


def _frames(path: Path) -> Iterator[Damage]:
    from stringd.runs import unreadable_frames

    try:
        bad = unreadable_frames(path)
    except OSError as error:
        bad, problem = 1, error.strerror or str(error)
    else:
        problem = f"{bad} line(s) cannot be read"
    if bad:
        yield Damage(
            path,
            f"what run {path.stem} showed: {problem}",
            "Its timeline has the results, and the rest is shown. Restore the file from a backup, "
            "or delete it.",
        )


def _archive(path: Path) -> Iterator[Damage]:
    from stringd.runs import archive_problem

    if problem := archive_problem(path):
        yield Damage(
            path,
            f"a file that an agent deleted cannot be put back ({problem})",
            "Restore it from a backup, or delete it.",
        )


def _servers(path: Path) -> Iterator[Damage]:
    from stringd.runs import definitions_problem

    if problem := definitions_problem(path):
        yield Damage(
            path,
            f"the MCP servers of runs cannot be read ({problem})",
            "Runs fail until it is corrected or deleted.",
        )


def _rows(path: Path) -> Iterator[Damage]:
    try:
        db = sqlite3.connect(f"file:{path}?mode=ro", uri=True)
        try:
            for user, topic, state in db.execute("SELECT user, topic, state FROM sessions"):
                if _problem(partial(msgspec.json.decode, state, type=StoredSession)):
                    what = f"what topic {topic} of user {user} remembers cannot be read"
                    yield Damage(path, what, "The topic starts empty; closing it ends this line.")
        finally:
            db.close()
    except sqlite3.Error as error:
        if getattr(error, "sqlite_errorcode", 0) & 0xFF not in (
            sqlite3.SQLITE_BUSY,
            sqlite3.SQLITE_LOCKED,
        ):
            yield Damage(
                path, f"{_SESSIONS[0]} cannot be read ({error})", "A restart puts it aside."
            )


def _trust() -> Iterator[Damage]:
    store = TrustStore()
    try:
        store.entries()
    except TrustError as error:
        yield Damage(store.file, "what you trusted does not count", str(error))


def _decode_file(path: Path, type_: Any) -> Any:
    return msgspec.json.decode(path.read_bytes(), type=type_)


def _problem(read: Callable[[], object]) -> str | None:
    try:
        read()
    except FileNotFoundError:
        return None
    except OSError as error:
        return error.strerror or os.strerror(error.errno or 0)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError, TypeError) as error:
        return str(error)
    return None
