"""Putting a backup back: everything is checked beside its place before anything is moved."""

import hashlib
import os
import secrets
import shutil
import tarfile
import zlib
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import IO, Final, NamedTuple

from stringd.cli.backup.collect import find
from stringd.cli.backup.manifest import (
    DATA,
    MANIFEST,
    SHARED,
    BackupEntry,
    BackupError,
    BackupManifest,
    decode,
    is_inside,
)
from stringd.cli.backup.moved import rewrite
from stringd.system.data_directory import adopt
from stringd.system.data_format import NewerDataError, refuse_newer
from stringd.system.files import make_private_directory
from stringd.system.holder import holder
from stringd.system.trust import TrustStore

_CHUNK: Final = 1024 * 1024
_MAX_MANIFEST: Final = 256 * _CHUNK


class RestoredBackup(NamedTuple):
    """What was restored, and where what was there before is now."""

    manifest: BackupManifest
    put_aside: tuple[Path, ...]


def restore(file: Path, shared: Path, data: Path, *, replace: bool) -> RestoredBackup:
    """Put a backup into the two directories. Raises `BackupError` or `OSError`."""
    _refuse_while_used(data)
    if not replace and find(shared, data):
        raise BackupError(
            f"{shared} or {data} is not empty. To put the backup there, with what is there now "
            "moved aside: --replace"
        )
    inside = data.is_relative_to(shared)
    with _staging(shared) as stage, _staging(data) as data_stage:
        place = stage / data.relative_to(shared) if inside else data_stage
        make_private_directory(place)
        manifest = _unpack(file, {SHARED: stage, DATA: place})
        _refuse_newer(file, manifest, place)
        rewrite(stage, place, (manifest.shared, manifest.data), (str(shared), str(data)))
        _refuse_while_used(data)
        targets = [(stage, shared)] if inside else [(stage, shared), (data_stage, data)]
        put_aside = [aside for new, old in targets if (aside := _exchange(new, old)) is not None]
    adopt(data, TrustStore(shared / "trust.json"))
    return RestoredBackup(manifest, tuple(put_aside))


def _refuse_while_used(data: Path) -> None:
    running = holder(data)
    if running is not None:
        raise BackupError(
            f"a daemon uses {data} (process {running.pid}, port {running.port}). Stop it first: "
            f"stringd down --port {running.port}"
        )


def _refuse_newer(file: Path, manifest: BackupManifest, place: Path) -> None:
    try:
        refuse_newer(place)
    except NewerDataError:
        raise BackupError(
            f"{file} was made by stringd {manifest.version} from data that this version cannot "
            f"read. Nothing was changed. Install stringd {manifest.version} or a later one"
        ) from None


@contextmanager
def _staging(place: Path) -> Iterator[Path]:
    """A private directory beside a place, gone again unless it was moved there."""
    make_private_directory(place.parent)
    stage = place.with_name(f"{place.name}.restoring-{secrets.token_hex(4)}")
    stage.mkdir(0o700)
    try:
        yield stage
    finally:
        shutil.rmtree(stage, ignore_errors=True)


def _exchange(new: Path, place: Path) -> Path | None:
    """Move a directory to its place; where what was there is now."""
    aside = None
    if place.exists():
        aside = place.with_name(f"{place.name}.before-{secrets.token_hex(4)}")
        place.rename(aside)
    new.rename(place)
    return aside


def _unpack(file: Path, roots: dict[str, Path]) -> BackupManifest:
    """Write the files of an archive, and check each against its manifest."""
    written: dict[str, BackupEntry] = {}
    manifest = None
    try:
        with tarfile.open(file, mode="r:gz") as archive:
            for member in archive:
                if member.name == MANIFEST:
                    manifest = decode(_content(archive, member).read(_MAX_MANIFEST))
                else:
                    written[member.name] = _write(archive, member, roots)
    except (tarfile.TarError, EOFError, zlib.error, FileExistsError):
        raise BackupError(f"{file} is not a whole backup of stringd: it cannot be read") from None
    if manifest is None:
        raise BackupError(f"{file} is not a whole backup of stringd: its manifest is missing")
    _check(file, manifest, written)
    for entry in manifest.entries:
        if entry.link:
            _place(entry.path, roots).symlink_to(entry.link)
    return manifest


def _check(file: Path, manifest: BackupManifest, written: dict[str, BackupEntry]) -> None:
    for entry in manifest.entries:
        if written.pop(entry.path, None) != entry:
            raise BackupError(f"{file} is damaged: {entry.path} is not what the manifest says")
    if written:
        raise BackupError(f"{file} is damaged: the manifest does not know {min(written)}")


def _write(
    archive: tarfile.TarFile, member: tarfile.TarInfo, roots: dict[str, Path]
) -> BackupEntry:
    """Write a member; links are made when every file is there, so nothing is written through one.

    Raises `BackupError`, or `FileExistsError` for a name that came before.
    """
    if not is_inside(member.name) or not (member.isreg() or member.issym()):
        raise BackupError(f"not a backup of stringd: it holds {member.name}")
    mode = member.mode & 0o777
    if member.issym():
        make_private_directory(_place(member.name, roots).parent)
        return BackupEntry(member.name, mode, 0, "", member.linkname)
    path, digest, size = _place(member.name, roots), hashlib.sha256(), 0
    make_private_directory(path.parent)
    descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600)
    with open(descriptor, "wb") as out, _content(archive, member) as content:
        while chunk := content.read(_CHUNK):
            digest.update(chunk)
            out.write(chunk)
            size += len(chunk)
        os.fchmod(descriptor, mode)
    return BackupEntry(member.name, mode, size, digest.hexdigest())


def _content(archive: tarfile.TarFile, member: tarfile.TarInfo) -> IO[bytes]:
    content = archive.extractfile(member) if member.isreg() else None
    if content is None:
        raise BackupError(f"not a backup of stringd: {member.name} is not a file")
    return content


def _place(name: str, roots: dict[str, Path]) -> Path:
    root, _, relative = name.partition("/")
    return roots[root] / relative
