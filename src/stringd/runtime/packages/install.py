"""Installing packages: from where files come to the user's home, whole or not at all.

A package is a directory `<home>/packages/<name>` with a `string.md`, and an entry in `config.json`.
"""

import os
import re
import shlex
import shutil
import stat
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Final, NamedTuple

import msgspec

from stringd.documents import Document, parse
from stringd.formats.archives import leaves_folder
from stringd.runtime.errors import CommandError
from stringd.runtime.packages import record
from stringd.runtime.packages.installed import (
    MAIN_FILE,
    ORIGIN_FILE,
    Kind,
    installed,
    register,
)
from stringd.runtime.packages.interrupted import (
    being_built,
    carry,
    keep_before,
    kept_before,
    settle,
    take_back,
)
from stringd.runtime.packages.kept_files import (
    KeptFiles,
    data_directory,
    put_aside,
)
from stringd.runtime.packages.removal import Removal, take_away
from stringd.runtime.packages.stored_names import Choice, NamesClaim, settle_names
from stringd.runtime.settings import PACKAGES
from stringd.runtime.topics.location import is_web, path_of
from stringd.system.files import held, make_private_directory, write_atomically

MAX_FILES: Final = 5000
MAX_BYTES: Final = 200 * 1024 * 1024
"""A package is an app, not a disk: beyond this the source was probably meant otherwise."""
_NOT_IN_NAMES: Final = re.compile(r"[^A-Za-z0-9_-]+")
# What the daemon keeps in a home never belongs to an app that is next to it.
_HOME_STATE: Final = frozenset({"packages", "apps", "tools", "events", "config.json"})


class InstallError(CommandError):
    """An installation that did not happen."""

    def __init__(self, message: str, code: str = "COMMAND_UNSUPPORTED") -> None:
        super().__init__(code, message)


class Origin(NamedTuple):
    """Where a package comes from: as typed, and as one can recognise it again."""

    typed: str
    identity: str
    again: str | None = None
    """What `/install` takes to install it once more, if that is not its identity."""


class Wanted(NamedTuple):
    """What an installation asked for, next to the source."""

    kind: Kind | None = None
    name: str | None = None
    link: bool = False
    names: Choice | None = None
    """What becomes of `$NAMES` that are stored for a package of that name from elsewhere."""


class Package(NamedTuple):
    """A source understood: what it is called and what it is."""

    name: str
    kind: Kind
    origin: Origin
    document: Document
    confirmed: bool = True
    """Whether the owner's word is behind its installation."""
    names: Choice | None = None

    @property
    def again(self) -> str:
        """What `/install` takes to install it once more."""
        return self.origin.again or shlex.quote(self.origin.identity)

    @property
    def label(self) -> str:
        return f"{self.kind}:{self.name}"


def describe(document: Document, origin: Origin, file_name: str, wanted: Wanted) -> Package:
    """Name and kind of a package. Raises `InstallError`."""
    raw = wanted.name or _text(document, "name") or file_name
    name = package_name(raw)
    declared = _text(document, "type")
    kind: Kind | None = wanted.kind
    if kind is None and declared in ("app", "tool"):
        kind = "app" if declared == "app" else "tool"
    if kind is None:
        raise InstallError(
            f'Cannot determine package type for "{name}".\n'
            f"Say which one it is:\n  /install --app {origin.typed}\n"
            f"  /install --tool {origin.typed}"
        )
    return Package(name, kind, origin, document, names=wanted.names)


def package_name(raw: str) -> str:
    """A name made fit for topics. Raises `InstallError` when nothing of it is left."""
    name = _NOT_IN_NAMES.sub("-", raw).strip("-")
    if not name:
        raise InstallError(f'Invalid package name: "{raw}" — must contain [a-zA-Z0-9_-]')
    return name


def check_collision(home: str, package: Package) -> None:
    """Refuse to replace a package that is another one. Raises `InstallError`."""
    for kind in ("app", "tool"):
        uri = installed(home, kind).get(package.name)
        if uri is None or _same(home, package, uri):
            continue
        article = "An app" if kind == "app" else "A tool"
        raise InstallError(
            f'{article} named "{package.name}" is already installed.\n'
            f"Install it under another name: /install {package.origin.typed} "
            f"--as {package.name}-2\n"
            f"Or remove the old one first: /uninstall {package.name}"
        )


def _same(home: str, package: Package, uri: str) -> bool:
    """Whether the installed package at `uri` is an earlier state of this one."""
    if is_web(uri):
        return uri == package.origin.identity
    directory = package_directory(home, package.name)
    try:
        origin = msgspec.json.decode((directory / ORIGIN_FILE).read_bytes(), type=dict[str, str])
        if origin.get("source") == package.origin.identity:
            return True
    except (OSError, msgspec.DecodeError):
        pass
    path = path_of(uri)
    try:
        old = parse((path or directory / MAIN_FILE).read_text(encoding="utf-8", errors="replace"))
    except OSError:
        # Its files are gone: nothing is lost by replacing the entry.
        return True
    namespace = _text(old, "namespace")
    return namespace is not None and (namespace, _text(old, "name")) == (
        _text(package.document, "namespace"),
        _text(package.document, "name"),
    )


def check_free(home: str, package: Package) -> None:
    """Refuse what could not be installed, before anything of it is started.

    Raises `CommandError`.
    """
    with _alone(home):
        check_collision(home, package)
        _settle_names(home, package)


def _settle_names(home: str, package: Package) -> None:
    if not package.confirmed:
        # Without the owner's word it gets none in any case.
        return
    renamed = f"/install {package.again} --as {package.name}-2"
    settle_names(
        home,
        NamesClaim(
            package.name,
            package.label,
            package.origin.identity,
            package.again,
            None if package.origin.again else renamed,
            package.names,
        ),
    )


def package_directory(home: str, name: str) -> Path:
    return Path(home) / PACKAGES / name


class Installation(NamedTuple):
    """A package in its place: its main document, and what became of files actions had made."""

    main: Path
    kept: KeptFiles = KeptFiles()


Review = Callable[[Path], None]
"""Looks at a package that was put together and is not in its place yet. Raises `CommandError`."""


def install_folder(
    home: str, package: Package, main: Path, review: Review | None = None
) -> Installation:
    """Copy a local document and its neighbours. Raises `InstallError`."""
    files = {path: path.relative_to(main.parent) for path in _neighbours(home, main)}

    def fill(staging: Path) -> None:
        for source, relative in files.items():
            _copy(source, staging / relative)
        _copy(main, staging / MAIN_FILE)

    return _staged(home, package, fill, review)


def install_files(
    home: str, package: Package, files: Mapping[str, bytes], review: Review | None = None
) -> Installation:
    """Write files that were fetched. Raises `InstallError`."""

    def fill(staging: Path) -> None:
        for name, data in files.items():
            target = staging / name
            target.parent.mkdir(parents=True, exist_ok=True)
            target.write_bytes(data)
            target.chmod(0o755 if data.startswith(b"#!") else 0o644)

    return _staged(home, package, fill, review)


def install_link(home: str, package: Package, url: str) -> None:
    """Register an address without copying anything. Raises `InstallError`."""
    with _alone(home):
        check_collision(home, package)
        record.strike(home, package.name)
        register(home, package.kind, package.name, url)


def remove(home: str, name: str) -> Removal | None:
    """Forget a package and delete what was installed; None when there was none.

    Raises `InstallError` when what its actions made cannot be kept; then nothing has happened.
    """
    if name not in installed(home, "app") and name not in installed(home, "tool"):
        return None
    with _alone(home):
        try:
            return take_away(home, name)
        except OSError as error:
            raise InstallError(f"Cannot uninstall {name}: {error.strerror or error}") from error


def check_paths(names: list[str]) -> None:
    """Refuse file names that leave the package. Raises `InstallError`."""
    for name in names:
        if leaves_folder(name):
            raise InstallError(f'Security violation: invalid file path "{name}"')


@contextmanager
def _alone(home: str) -> Iterator[None]:
    """Packages of a home come and go one after another. Raises `InstallError`."""
    directory = Path(home) / PACKAGES
    try:
        make_private_directory(directory)
    except OSError as error:
        raise InstallError(f"Cannot use {directory}: {error.strerror}") from error
    with held(directory):
        # Another daemon may have crashed since ours looked.
        settle(home, directory)
        yield


def _staged(
    home: str, package: Package, fill: Callable[[Path], None], review: Review | None
) -> Installation:
    """Build the package aside, then put it into place in one step."""
    with _alone(home):
        check_collision(home, package)
        _settle_names(home, package)
        return _put_into_place(home, package, fill, review)


def _put_into_place(
    home: str, package: Package, fill: Callable[[Path], None], review: Review | None
) -> Installation:
    known = record.files_of(home, package.name)
    data = data_directory(home, package.name)
    final = package_directory(home, package.name)
    staging, retired = being_built(final), kept_before(final)
    try:
        _discard(staging)
        staging.mkdir(mode=0o700)
        fill(staging)
        if review is not None:
            review(staging)
        origin = msgspec.json.encode({"source": package.origin.identity})
        write_atomically(staging / ORIGIN_FILE, origin, 0o600)
        if retired.exists():
            # An installation was interrupted here.
            put_aside(retired, known, data)
            _discard(retired)
        keep_before(final, known)
        staging.rename(final)
        record.keep(home, package.name, final, package.again, confirmed=package.confirmed)
    except OSError as error:
        take_back(final)
        _discard(staging)
        raise InstallError(f"Cannot install {package.label}: {error.strerror or error}") from error
    except CommandError:
        _discard(staging)
        raise
    main = final / MAIN_FILE
    # Until here a crash is taken back; from here on it is installed.
    register(home, package.kind, package.name, main.as_uri())
    try:
        # After the record: what actions made is not part of the app.
        kept = carry(final, data)
    except OSError as error:
        raise InstallError(f"Cannot install {package.label}: {error.strerror or error}") from error
    return Installation(main, kept)


def _neighbours(home: str, main: Path) -> Iterator[Path]:
    """Every regular file next to and below a document; no dot files, no links."""
    root = main.parent
    at_home = root == Path(home)
    count = size = 0
    for directory, names, files in os.walk(root):
        here = Path(directory)
        skipped = _HOME_STATE if at_home and here == root else frozenset[str]()
        names[:] = [n for n in names if not n.startswith(".") and n not in skipped]
        for name in files:
            path = here / name
            if name.startswith(".") or name in skipped or path == main:
                continue
            status = path.lstat()
            if not stat.S_ISREG(status.st_mode):
                continue
            count, size = count + 1, size + status.st_size
            if count > MAX_FILES or size > MAX_BYTES:
                raise InstallError(
                    f"{root} holds more than {MAX_FILES} files or {MAX_BYTES >> 20} MiB, and all "
                    "of it would be installed.\nPut the app into a folder of its own."
                )
            yield path


def _copy(source: Path, target: Path) -> None:
    target.parent.mkdir(parents=True, exist_ok=True)
    shutil.copyfile(source, target, follow_symlinks=True)
    shutil.copymode(source, target)


def _discard(path: Path) -> None:
    if path.exists():
        shutil.rmtree(path)


def _text(document: Document, key: str) -> str | None:
    value = document.frontmatter.get(key)
    return value.strip() or None if isinstance(value, str) else None
