"""Writing a backup: a compressed tar file that only its owner can read, its manifest last."""

import io
import os
import secrets
import stat
import tarfile
from pathlib import Path
from time import time

from stringd import __version__
from stringd.cli.backup.collect import OwnedFile, copy, find
from stringd.cli.backup.manifest import MANIFEST, BackupEntry, BackupError, BackupManifest, encode
from stringd.system.clock import timestamp


def save(file: Path, shared: Path, data: Path, *, replace: bool) -> BackupManifest:
    """Write a backup of the two directories. Raises `BackupError` or `OSError`."""
    if not replace and os.path.lexists(file):
        raise BackupError(f"{file} exists. Choose another name, or overwrite it with --replace")
    if not data.is_dir():
        raise BackupError(
            f"there is no data directory {data}. If your daemon keeps its state elsewhere, name "
            "that: stringd backup --data-dir DIR (stringd status --json says where)"
        )
    partial = file.with_name(f".{file.name}.{secrets.token_hex(4)}")
    found = find(shared, data)
    descriptor = os.open(partial, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600)
    try:
        with open(descriptor, "wb") as out:
            with tarfile.open(fileobj=out, mode="w:gz", compresslevel=6) as archive:
                manifest = _fill(archive, found, shared, data, file)
            out.flush()
            os.fsync(out.fileno())
        partial.replace(file)
    except BaseException:
        partial.unlink(missing_ok=True)
        raise
    return manifest


def _fill(
    archive: tarfile.TarFile, found: list[OwnedFile], shared: Path, data: Path, file: Path
) -> BackupManifest:
    old_backup = os.path.realpath(file)
    entries = [
        entry
        for each in found
        if str(each.path) != old_backup and (entry := _add(archive, each)) is not None
    ]
    manifest = BackupManifest(timestamp(), __version__, str(shared), str(data), tuple(entries))
    text = encode(manifest)
    archive.addfile(_member(MANIFEST, 0o600, time(), len(text)), io.BytesIO(text))
    return manifest


def _add(archive: tarfile.TarFile, found: OwnedFile) -> BackupEntry | None:
    mode = stat.S_IMODE(found.status.st_mode) & 0o777
    if stat.S_ISLNK(found.status.st_mode):
        try:
            link = str(found.path.readlink())
        except FileNotFoundError:
            return None
        member = _member(found.name, 0o777, found.status.st_mtime, 0)
        member.type, member.linkname = tarfile.SYMTYPE, link
        archive.addfile(member)
        return BackupEntry(found.name, 0o777, 0, "", link)
    copied = copy(found.path)
    if copied is None:
        return None
    with copied.content:
        member = _member(found.name, mode, found.status.st_mtime, copied.size)
        archive.addfile(member, copied.content)
    return BackupEntry(found.name, mode, copied.size, copied.digest)


def _member(name: str, mode: int, changed: float, size: int) -> tarfile.TarInfo:
    member = tarfile.TarInfo(name)
    member.mode, member.mtime, member.size = mode, int(changed), size
    return member
