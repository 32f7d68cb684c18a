"""Paths of ours in restored files: where stringd kept something, it is kept elsewhere now."""

import json
import sqlite3
import stat
from collections.abc import Callable
from contextlib import closing
from pathlib import Path
from typing import Final, NamedTuple
from urllib.parse import quote

from stringd.system.files import write_atomically

_OF_SHARED: Final = ("trust.json",)
_OF_DATA: Final = ("users.json", "homes.json")
_OF_HOMES: Final = ("apps", "tools")
_OF_RUNS: Final = ("strategyPath", "cwd", "manifestPath")


class PathMove(NamedTuple):
    """Directories that were in one place and are in another: the deeper ones first."""

    pairs: tuple[tuple[str, str], ...]

    def text(self, text: str) -> str:
        """A path, or the address of a file, as it is now; other text unchanged."""
        for old, new in self.pairs:
            for before, after in ((old, new), (f"file://{quote(old)}", f"file://{quote(new)}")):
                if text == before or text.startswith(f"{before}/"):
                    return after + text[len(before) :]
        return text

    def value(self, value: object) -> object:
        """A JSON value with every path in it as it is now."""
        if isinstance(value, str):
            return self.text(value)
        if isinstance(value, list):
            return [self.value(each) for each in value]
        if isinstance(value, dict):
            return {self.text(key): self.value(each) for key, each in value.items()}
        return value


def moved(old: tuple[str, str], new: tuple[str, str]) -> PathMove:
    """The move of `~/.string` and the data directory, each given in this order."""
    pairs = zip(reversed(old), reversed(new), strict=True)
    return PathMove(tuple(pair for pair in pairs if pair[0] != pair[1]))


def rewrite(shared: Path, data: Path, old: tuple[str, str], new: tuple[str, str]) -> None:
    """Change the paths in files that were unpacked to `shared` and `data`, which were in `old` and
    will be in `new`. Raises `OSError`.

    What cannot be read is left as it was: the daemon says so when it starts.
    """
    move = moved(old, new)
    if not move.pairs:
        return
    for home in _homes(data, moved(old, (str(shared), str(data)))):
        _change(home / "config.json", lambda text: _home_config(text, move))
    undo = [path for path in (data / "undo").rglob("*.json") if not path.is_symlink()]
    names = [shared / name for name in _OF_SHARED] + [data / name for name in _OF_DATA]
    for path in (*names, *undo):
        _change(path, lambda text: json.dumps(move.value(json.loads(text)), indent=1).encode())
    for path in (data / "runs").glob("*.jsonl"):
        _change(path, lambda text: moved_timeline(text, move))
    if (data / "sessions.db").is_file():
        _rewrite_sessions(data / "sessions.db", move)


def _change(path: Path, change: Callable[[bytes], bytes]) -> None:
    if path.is_symlink() or not path.is_file():
        return
    before = path.read_bytes()
    try:
        after = change(before)
    except (ValueError, RecursionError):
        return
    if after != before:
        mode = stat.S_IMODE(path.stat().st_mode)
        write_atomically(path, after, mode, synced=False)


def _homes(data: Path, unpacked: PathMove) -> list[Path]:
    """Where the homes of users were unpacked; those that were elsewhere are not here."""
    try:
        homes = [user["home"] for user in json.loads((data / "users.json").read_bytes())]
        return [Path(now) for home in homes if (now := unpacked.text(home)) != home]
    except (OSError, ValueError, TypeError, KeyError, AttributeError):
        return []


def _home_config(text: bytes, move: PathMove) -> bytes:
    """Where apps and tools are installed; variables are the user's own."""
    config = json.loads(text)
    if not isinstance(config, dict):
        return text
    places = {key: move.value(config[key]) for key in _OF_HOMES if key in config}
    changed = json.dumps({**config, **places}, indent=2, ensure_ascii=False)
    return changed.encode("utf-8", "surrogatepass") if {**config, **places} != config else text


def moved_timeline(text: bytes, move: PathMove) -> bytes:
    """What a run says is history; where it would be continued is not."""
    lines = text.split(b"\n")
    for number, line in enumerate(lines):
        if b'"run_started"' in line:
            record = json.loads(line)
            if isinstance(record, dict) and record.get("type") == "run_started":
                now = {key: move.value(record[key]) for key in _OF_RUNS if key in record}
                if {**record, **now} != record:
                    lines[number] = json.dumps({**record, **now}, separators=(",", ":")).encode()
    return b"\n".join(lines)


def _rewrite_sessions(path: Path, move: PathMove) -> None:
    def state(text: bytes) -> bytes:
        value = move.value(json.loads(text))
        return json.dumps(value, separators=(",", ":"), ensure_ascii=False).encode()

    try:
        with closing(sqlite3.connect(path)) as db, db:
            for table, column in (("sessions", "state"), ("users", "record")):
                rows = db.execute(f"SELECT rowid, {column} FROM {table}").fetchall()  # noqa: S608
                db.executemany(
                    f"UPDATE {table} SET {column} = ? WHERE rowid = ?",  # noqa: S608
                    [(state(text), row) for row, text in rows],
                )
            seen = db.execute("SELECT rowid, path FROM seen").fetchall()
            db.executemany(
                "UPDATE OR REPLACE seen SET path = ? WHERE rowid = ?",
                [(move.text(text), row) for row, text in seen],
            )
    except (sqlite3.Error, ValueError):
        return
