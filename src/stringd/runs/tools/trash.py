"""Deleted files, kept as archives until the owner clears them.

One bucket per workspace, named after the hash of its path; one archive per file, holding
`metadata.json` and the file under its own path.
"""

import hashlib
import io
import os
import re
import shutil
import tarfile
import zlib
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path, PurePosixPath
from typing import IO, Final
from uuid import uuid4

import msgspec

from stringd.runs.errors import RefusedError
from stringd.runs.guard.errors import Denied
from stringd.runs.guard.workspace import Workspace, WorkspacePath
from stringd.system import safe_open
from stringd.system.clock import timestamp
from stringd.system.files import make_private_directory, write_atomically
from stringd.wire.runs.catalog import TrashEntry, TrashMetadata

# Far above any file our tools handle; a larger member was not written by us.
_MAX_MEMBER: Final = 1024 * 1024 * 1024
_METADATA: Final = "metadata.json"
_UNREADABLE: Final = (
    *(tarfile.TarError, zlib.error, EOFError, OSError),
    *(KeyError, ValueError, msgspec.DecodeError),
)


class Trash:
    """The bucket of one workspace. `root` is the trash folder of the data directory."""

    def __init__(self, root: Path, workspace: Path) -> None:
        self.workspace = Path(os.path.realpath(workspace))
        self._bucket = root / hashlib.sha256(str(self.workspace).encode()).hexdigest()

    def put(self, path: str, content: bytes, mode: int, *, run_id: str, agent_name: str) -> Path:
        """Archive a file's content; `path` is relative to the workspace or absolute."""
        metadata = TrashMetadata(
            trashed_at=timestamp(),
            original_path=path,
            original_sha256=hashlib.sha256(content).hexdigest(),
            run_id=run_id,
            agent_name=agent_name,
        )
        make_private_directory(self._bucket)
        moment = datetime.now(UTC).strftime("%Y%m%dT%H%M%S%fZ")
        plain = re.sub(r"[^\w.-]", "_", PurePosixPath(path).name)[-80:]
        archive = self._bucket / f"{moment}-{uuid4().hex[:8]}-{plain}.tar.gz"
        _write_archive(archive, metadata, path, content, mode)
        return archive

    def entries(self) -> list[TrashEntry]:
        """Every readable archive, oldest first."""
        return list(self._entries())

    def _entries(self) -> Iterator[TrashEntry]:
        for archive in sorted(self._bucket.glob("*.tar.gz")):
            try:
                metadata, _, _ = _read_archive(archive, with_content=False)
                yield TrashEntry(
                    path=str(archive), metadata=metadata, size_bytes=archive.stat().st_size
                )
            except (RefusedError, OSError):
                continue

    def open(self, archive: str) -> tuple[TrashMetadata, bytes, int]:
        """What an archive of this bucket holds. Raises `RefusedError`."""
        return _read_archive(self._own(archive), with_content=True)

    def _own(self, archive: str) -> Path:
        """The real path of an archive in this bucket. Raises `RefusedError`."""
        real = None if "\0" in archive else Path(os.path.realpath(archive))
        if real is None or real.parent != Path(os.path.realpath(self._bucket)):
            raise _unreadable(archive)
        return real

    def restore(self, archive: str, target: str | None) -> Path:
        """Put a file back, where it was or at `target`. Raises `RefusedError`."""
        metadata, content, mode = self.open(archive)
        wanted = target or metadata.original_path
        place = self._inside(wanted)
        try:
            safe_open.make_folders(place.real.parent)
            safe_open.create_file(place.real, content, mode & 0o777)
        except FileExistsError:
            raise RefusedError("RESTORE_FAILED", f"Restore target exists: {wanted}") from None
        except OSError as error:
            message = f"Cannot restore {wanted}: {error.strerror or error}"
            raise RefusedError("RESTORE_FAILED", message) from None
        self.discard(archive)
        return place.real

    def _inside(self, wanted: str) -> WorkspacePath:
        try:
            place = Workspace(self.workspace).place(wanted)
        except Denied:
            place = None
        if place is None or place.inside in (None, "."):
            raise RefusedError("RESTORE_FAILED", f"Restore target escapes workspace: {wanted}")
        return place

    def discard(self, archive: str) -> None:
        """Remove an archive whose file is back in place. Raises `RefusedError`."""
        self._own(archive).unlink(missing_ok=True)

    def clear(self) -> tuple[int, int]:
        """Empty the bucket; how many archives and bytes went."""
        archives = list(self._bucket.glob("*.tar.gz"))
        size = sum(archive.stat().st_size for archive in archives)
        shutil.rmtree(self._bucket, ignore_errors=True)
        return len(archives), size


def archive_problem(archive: Path) -> str | None:
    """Why the file in an archive cannot be put back; None for one that can."""
    try:
        with tarfile.open(archive, "r:gz") as tar:
            metadata = msgspec.json.decode(_member(tar, _METADATA)[0], type=TrashMetadata)
            file = tar.extractfile(metadata.original_path.lstrip("/"))
            if file is None or _digest(file) != metadata.original_sha256:
                return f"the content of {metadata.original_path} is not what was deleted"
    except FileNotFoundError:
        return None
    except _UNREADABLE as error:
        return str(error) or type(error).__name__
    return None


def _digest(file: IO[bytes]) -> str:
    return hashlib.file_digest(file, "sha256").hexdigest()  # type: ignore[arg-type]


def _write_archive(
    archive: Path, metadata: TrashMetadata, path: str, content: bytes, mode: int
) -> None:
    packed = io.BytesIO()
    with tarfile.open(fileobj=packed, mode="w:gz") as tar:
        _add(tar, _METADATA, msgspec.json.encode(metadata), 0o600)
        _add(tar, path.lstrip("/"), content, mode)
    write_atomically(archive, packed.getvalue(), 0o600)


def _add(tar: tarfile.TarFile, name: str, content: bytes, mode: int) -> None:
    member = tarfile.TarInfo(name)
    member.size, member.mode = len(content), mode & 0o777
    tar.addfile(member, io.BytesIO(content))


def _read_archive(archive: Path, *, with_content: bool) -> tuple[TrashMetadata, bytes, int]:
    try:
        with tarfile.open(archive, "r:gz") as tar:
            metadata = msgspec.json.decode(_member(tar, _METADATA)[0], type=TrashMetadata)
            if not with_content:
                return metadata, b"", 0
            return (metadata, *_member(tar, metadata.original_path.lstrip("/")))
    except _UNREADABLE:
        raise _unreadable(str(archive)) from None


def _member(tar: tarfile.TarFile, name: str) -> tuple[bytes, int]:
    member = tar.getmember(name)
    file = tar.extractfile(member) if member.isreg() and member.size <= _MAX_MEMBER else None
    if file is None:
        raise KeyError(name)
    return file.read(), member.mode


def _unreadable(archive: str) -> RefusedError:
    return RefusedError("RESTORE_FAILED", f"Could not read metadata from trash archive: {archive}")
