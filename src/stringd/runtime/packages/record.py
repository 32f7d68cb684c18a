"""What was installed, file by file: whether a package is still what its owner installed.

`<home>/packages/.installed.json` holds the digest of every file of every package. A file that
appeared later or has another content by now is not the app's. Packages that were there before this
record existed are taken into it once, when a daemon first has to do with a home.
"""

import hashlib
import os
import shlex
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from time import time
from typing import Final, Literal, NamedTuple

import msgspec

from stringd.documents import parse
from stringd.runtime.editing.paths import RECORD_FILE
from stringd.runtime.errors import CommandError
from stringd.runtime.packages.installed import KINDS, MAIN_FILE, ORIGIN_FILE, installed
from stringd.runtime.settings import PACKAGES
from stringd.runtime.topics.location import path_of
from stringd.runtime.variables.json_file import changing
from stringd.system.clock import timestamp
from stringd.system.damage import put_aside
from stringd.system.files import held, write_atomically
from stringd.system.safe_open import read_file

MAX_FILE_BYTES: Final = 256 * 1024 * 1024


class PackageRecord(msgspec.Struct, frozen=True, omit_defaults=True):
    """One package. New fields need defaults: old records stay readable."""

    files: dict[str, str]
    """Path in the package → digest."""
    source: str = ""
    """Where it came from, as `/install` takes it."""
    hosts: tuple[str, ...] | None = None
    """What its main document declares; None when it declares nothing."""
    adopted: bool = False
    """It was there before this record was."""
    confirmed: bool = True
    """Whether the owner's word is behind it; else something the daemon started put it there."""
    names: tuple[str, ...] | None = None
    """Shared `$NAMES` its main document declares; None in records of versions before that."""
    since: float = 0.0
    """When the first package of this source was installed here, in seconds of the epoch."""


class Record(msgspec.Struct, frozen=True):
    """The whole file."""

    version: int = 1
    packages: dict[str, PackageRecord] = {}
    sources: dict[str, str] = {}
    """Name → identity of the source the owner installed it from last, kept when it is gone: the
    `$NAMES` stored for that name are meant for this source."""


class PackageStatus(NamedTuple):
    """How a file of a package compares with the record. `changed` names a file that differs."""

    name: str
    state: Literal["intact", "changed", "added", "unconfirmed", "unknown"]
    record: PackageRecord | None = None
    changed: str = ""


_records: Final[dict[str, tuple[tuple[int, ...], Record]]] = {}
_digests: Final[dict[str, tuple[tuple[int, ...], str]]] = {}
"""What was read before, with what shows that it is still the same."""


def standing(home: str, real: str, digest: str) -> PackageStatus | None:
    """How one file compares with the record; None for a file outside the packages.

    `home` and `real` are real paths, `digest` that of the content that was read.
    """
    root = f"{_root(home)}/"
    if not real.startswith(root):
        return None
    name, _, relative = real.removeprefix(root).partition("/")
    record = _record(home).packages.get(name)
    if record is None:
        return PackageStatus(name, "unknown")
    if relative not in record.files:
        return PackageStatus(name, "added", record)
    if record.files[relative] != digest:
        return PackageStatus(name, "changed", record, relative)
    return PackageStatus(name, "intact" if record.confirmed else "unconfirmed", record)


def whole(home: str, name: str) -> PackageStatus:
    """How all files of a package compare with the record. Reads what changed: use a thread."""
    record = _record(home).packages.get(name)
    if record is None:
        return PackageStatus(name, "unknown")
    directory = Path(_root(home)) / name
    for relative, digest in record.files.items():
        if _digest(directory / relative) != digest:
            return PackageStatus(name, "changed", record, relative)
    return PackageStatus(name, "intact" if record.confirmed else "unconfirmed", record)


def keep(home: str, name: str, directory: Path, source: str, *, confirmed: bool) -> None:
    """Write down what was just installed, while the packages are held. Raises `OSError`."""
    entry = _entry(Path(os.path.realpath(directory)), source, confirmed=confirmed)
    known = _record(home)
    before = known.packages.get(name)
    identity = _identity(directory)
    again = before is not None and identity and known.sources.get(name) == identity
    entry = msgspec.structs.replace(entry, since=before.since if before and again else time())
    sources = known.sources
    if confirmed and identity:
        sources = {**sources, name: identity}
    _write(home, {**known.packages, name: entry}, sources)


def record_of(home: str, name: str) -> PackageRecord:
    """What is on record under a name; nothing at all if it is not."""
    return _record(os.path.realpath(home)).packages.get(name) or PackageRecord({})


def digests(directory: Path) -> dict[str, str]:
    """Path in a directory → digest, of its regular files. Raises `OSError`."""
    return {
        str(path.relative_to(directory)): digest_of(read_file(path, MAX_FILE_BYTES).data)
        for path in _regular_files(directory)
    }


def files_of(home: str, name: str) -> dict[str, str]:
    """Path in the package → digest, of what was installed under a name; nothing if unknown."""
    known = _record(home).packages.get(name)
    return known.files if known is not None else {}


def strike(home: str, name: str, source: str | None = None) -> None:
    """Strike a package out, while the packages are held. Raises `OSError`.

    `source` is where it came from, for a package whose files do not say so any more.
    """
    known = _record(home)
    packages, sources = {**known.packages}, known.sources
    if name not in sources and (identity := last_source(home, name) or source):
        sources = {**sources, name: identity}
    if packages.pop(name, None) is not None or sources != known.sources:
        _write(home, packages, sources)


def last_source(home: str, name: str) -> str | None:
    """The identity of the source that the owner installed a name from last, if that is known."""
    known = _record(home)
    kept = known.packages.get(name)
    if name in known.sources or (kept is not None and not kept.confirmed):
        return known.sources.get(name)
    return _identity(Path(_root(home)) / name) or None


class Adoption:
    """Takes in what was installed before there was a record; once for a home.

    The homes are in `<data dir>/homes.json`: what appears among the packages of a home that is
    known already was not installed.
    """

    def __init__(self, data_dir: Path) -> None:
        self._path = data_dir / "homes.json"
        self._known = set[str]()

    def __call__(self, home: str) -> None:
        if home in self._known or not Path(home).is_dir():
            return
        with suppress(CommandError), changing(self._path) as content:
            if home not in content:
                _adopt(home)
                content[home] = timestamp()
        self._known.add(home)


def _adopt(home: str) -> None:
    path = Path(home) / RECORD_FILE
    if path.exists() or not path.parent.is_dir():
        return
    found = {}
    for name, directory in _before(home):
        with suppress(OSError):
            found[name] = _entry(directory, _source(directory), adopted=True)
    with suppress(OSError), held(path.parent):
        if not path.exists():
            _write(home, found, {})


def _write(home: str, packages: dict[str, PackageRecord], sources: dict[str, str]) -> None:
    record = Record(packages=packages, sources=sources)
    data = msgspec.json.format(msgspec.json.encode(record), indent=1)
    path = Path(home) / RECORD_FILE
    try:
        msgspec.json.decode(path.read_bytes(), type=Record)
    except FileNotFoundError:
        pass
    except (msgspec.DecodeError, UnicodeDecodeError):
        put_aside(path)
    write_atomically(path, data + b"\n", 0o600)


def _root(home: str) -> str:
    """Where the packages of a home really are; their owner may keep them on another disk."""
    path = f"{home}/{PACKAGES}"
    # Every opened file asks, and hardly ever is there a link to follow.
    return os.path.realpath(path) if os.path.islink(path) else path  # noqa: PTH114


def _record(home: str) -> Record:
    path = f"{home}/{RECORD_FILE}"
    try:
        mark = _mark(os.stat(path))  # noqa: PTH116 - every opened file asks
    except OSError:
        return Record()
    known = _records.get(home)
    if known is None or known[0] != mark:
        try:
            record = msgspec.json.decode(Path(path).read_bytes(), type=Record)
        except (OSError, msgspec.DecodeError, UnicodeDecodeError):
            # What cannot be read vouches for nothing.
            record = Record()
        known = _records[home] = (mark, record)
    return known[1]


def _digest(path: Path) -> str:
    """The digest of a file's content, empty when it cannot be read."""
    name = str(path)
    try:
        mark = _mark(path.lstat())
        known = _digests.get(name)
        if known is None or known[0] != mark:
            known = _digests[name] = (mark, digest_of(read_file(path, MAX_FILE_BYTES).data))
    except OSError:
        return ""
    return known[1]


def why_not(standing: PackageStatus) -> str:
    """Why a file of the packages is not an app's, and what to do about it."""
    name, kept = standing.name, standing.record
    source = kept.source if kept is not None and kept.source else "<source>"
    again = f"Recovery: look at it, then install it again: /install {source}"
    match standing.state:
        case "changed":
            return f"app:{name} is not what was installed: {standing.changed} changed.\n{again}"
        case "added":
            return f"this file is not part of app:{name} as it was installed.\n{again}"
        case "unconfirmed":
            return (
                f"a program that this daemon started installed app:{name}.\n"
                "Recovery: if you want it, type in your own terminal: "
                f"string '/install {source}'"
            )
        case _:
            return f"{name} was not installed by /install.\nRecovery: /install <source>"


def digest_of(data: bytes) -> str:
    return hashlib.sha256(data).hexdigest()


def _entry(
    directory: Path, source: str, *, confirmed: bool = True, adopted: bool = False
) -> PackageRecord:
    files = digests(directory)
    main = directory / MAIN_FILE
    document = parse(main.read_text("utf-8", "replace") if main.is_file() else "")
    names = None if adopted else document.declared_names
    return PackageRecord(files, source, document.hosts, adopted, confirmed, names)


def _identity(directory: Path) -> str:
    """Where a package says it came from; empty when it does not."""
    try:
        origin = msgspec.json.decode((directory / ORIGIN_FILE).read_bytes(), type=dict[str, str])
    except (OSError, msgspec.DecodeError):
        return ""
    return origin.get("source", "")


def _source(directory: Path) -> str:
    """Where a package came from, as `/install` takes it; empty when that is not known."""
    identity = _identity(directory)
    return "" if not identity or identity.startswith("mcp ") else shlex.quote(identity)


def _regular_files(directory: Path) -> Iterator[Path]:
    for parent, _, names in os.walk(directory):
        for name in names:
            path = Path(parent) / name
            if path.is_file() and not path.is_symlink():
                yield path


def _before(home: str) -> Iterator[tuple[str, Path]]:
    """The packages that `config.json` lists and that are where `/install` puts them."""
    root = Path(_root(os.path.realpath(home)))
    for kind in KINDS:
        for name, uri in installed(home, kind).items():
            path = path_of(uri)
            directory = root / name
            if path is not None and os.path.realpath(path.parent) == str(directory):
                yield name, directory


def _mark(status: os.stat_result) -> tuple[int, ...]:
    """What changes with a file's content; nobody can set the time of the last change."""
    return status.st_dev, status.st_ino, status.st_size, status.st_mtime_ns, status.st_ctime_ns
