"""What cannot be read in a data directory: what it was, and how to bring it back."""

import os
import sqlite3
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from typing import Any, Final, NamedTuple

import msgspec

from stringd.runtime.topics.store import StoredSession
from stringd.runtime.topics.users import User
from stringd.system.damage import SUFFIX, kept_aside
from stringd.system.trust import TrustError, TrustStore

MAX_NAMED: Final = 100
"""Of more damaged files than this, the rest is only counted."""


class Damage(NamedTuple):
    """`what` is what the file kept, `back` how to bring it back."""

    path: Path
    what: str
    back: str

    @property
    def sentence(self) -> str:
        return f"{self.path}: {self.what}. {self.back}"


_KEPT: Final = {
    "users.json": (
        "the users and their homes",
        "Users come back from sessions.db, or with `string user add`; compare and delete the file.",
    ),
    "sessions.db": (
        "what topics remember",
        "What could be read was taken over; `sqlite3 <file> .recover` may show more. Delete it.",
    ),
    "credentials.json": (
        "keys of model providers",
        "Set them again with `stringd keys`, then delete the file.",
    ),
    "provider-registry.json": (
        "the registered model providers",
        "Register them again, then delete the file.",
    ),
}
_OTHER: Final = ("a file of the daemon", "Restore it from a backup, or delete it.")


def examine(data_dir: Path) -> list[Damage]:
    """Everything that cannot be read, by name. Reads all of it: call it in a thread."""
    found = list(_all(data_dir))
    if len(found) <= MAX_NAMED:
        return found
    more = Damage(data_dir, f"{len(found) - MAX_NAMED} more damaged files", "See `stringd doctor`.")
    return [*found[:MAX_NAMED], more]


def _all(data_dir: Path) -> Iterator[Damage]:
    for path in kept_aside(data_dir):
        what, back = _KEPT.get(path.name.partition(SUFFIX)[0], _OTHER)
        yield Damage(path, f"unreadable, kept aside: {what}", back)
    for name, type_ in _JSON.items():
        yield from _json(data_dir / name, type_)
    yield from _rows(data_dir / "sessions.db")
    yield from _timelines(data_dir / "runs")
    yield from _trust()


_JSON: Final[dict[str, Any]] = {
    "users.json": list[User],
    "credentials.json": dict[str, dict[str, Any]],
    "provider-registry.json": list[str],
    "cache/models-catalog.json": dict[str, Any],
}


def _json(path: Path, type_: Any) -> Iterator[Damage]:
    what, back = _KEPT.get(path.name, ("the catalog of models", "It is fetched again by itself."))
    problem = _problem(partial(_decode_file, path, type_))
    if problem:
        yield Damage(path, f"{what} cannot be read ({problem})", back)


def _rows(path: Path) -> Iterator[Damage]:
    if not path.exists():
        return
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
            what, _ = _KEPT["sessions.db"]
            yield Damage(path, f"{what} cannot be read ({error})", "A restart puts it aside.")


def _timelines(directory: Path) -> Iterator[Damage]:
    from stringd.runs import FileRunStore

    for run in FileRunStore(directory).overviews():
        if run.damage:
            yield Damage(
                directory / f"{run.run_id}.jsonl",
                f"timeline of run {run.run_id}: {run.damage}",
                "What can be read is used; restore the file from a backup, or: "
                f"stringd runs delete {run.run_id}",
            )
    for path in sorted(directory.glob("*.config.json")):
        if problem := _problem(partial(_decode_file, path, dict[str, Any])):
            run_id = path.name.removesuffix(".config.json")
            what = f"the MCP servers chosen for run {run_id} cannot be read ({problem})"
            yield Damage(path, what, "They are chosen again when it continues; delete the file.")


def _trust() -> Iterator[Damage]:
    store = TrustStore()
    try:
        store.entries()
    except TrustError as error:
        yield Damage(store.file, "what you trusted does not count", str(error))


def _decode_file(path: Path, type_: Any) -> object:
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
