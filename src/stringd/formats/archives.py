"""The one door through which files come out of an archive (zip, tar, tar.gz).

Only regular files come out, in memory, under names that stay inside the folder they are written
to. Bounds hold for what is unpacked, so that a small archive cannot become a large one.
"""

import gzip
import io
import tarfile
import zipfile
import zlib
from collections.abc import Iterator
from typing import IO, Final, NamedTuple

# A header that says where names and sizes are; more of them than files is not worth reading.
_ZIP_ENTRY: Final = b"PK\x01\x02"
_ZIP: Final = (b"PK\x03\x04", b"PK\x05\x06")
_GZIP: Final = b"\x1f\x8b"
_TAR_MARK: Final = slice(257, 262)


class ArchiveError(Exception):
    """The archive cannot be used; `str()` says why."""


class ArchiveLimits(NamedTuple):
    """What may come out of an archive at most."""

    files: int = 2000
    size: int = 50 * 1024 * 1024


USUAL: Final = ArchiveLimits()


def is_archive(data: bytes) -> bool:
    """Whether this looks like an archive that `unpack` reads."""
    return data.startswith((*_ZIP, _GZIP)) or data[_TAR_MARK] == b"ustar"


def leaves_folder(name: str) -> bool:
    """Whether a file of this name would not be inside the folder it is written to."""
    parts = name.replace("\\", "/").split("/")
    return not name or name.startswith(("/", "\\")) or ".." in parts or "\0" in name


def unpack(
    data: bytes, limits: ArchiveLimits = USUAL, *, keep_folder: bool = False
) -> dict[str, bytes]:
    """Every regular file by its name; links and devices are left out. Raises `ArchiveError`.

    A folder that holds everything else is taken off the names, unless it is to be kept.
    """
    if not is_archive(data):
        raise ArchiveError("it is not a zip, tar or tar.gz archive")
    files: dict[str, bytes] = {}
    room = limits.size
    try:
        members = (
            _zip_members(data, limits) if data.startswith(_ZIP) else _tar_members(data, limits)
        )
        for name, size, stream in members:
            plain = _plain(name)
            if plain in files:
                raise ArchiveError(f"it holds {plain} twice")
            content = stream.read(room + 1) if size <= room else b""
            if size > room or len(content) > room:
                raise ArchiveError(f"it unpacks to more than {limits.size >> 20} MiB")
            if len(files) >= limits.files:
                raise ArchiveError(f"it holds more than {limits.files} files")
            files[plain] = content
            room -= len(content)
    except (zipfile.BadZipFile, tarfile.TarError, zlib.error, EOFError, OSError) as error:
        raise ArchiveError(f"it is damaged: {error}") from error
    except (NotImplementedError, RuntimeError, ValueError) as error:
        # An encrypted file, a way of packing that we cannot read, a name that is not one.
        raise ArchiveError(f"it cannot be read: {error}") from error
    return files if keep_folder else _without_top_folder(files)


def _zip_members(data: bytes, limits: ArchiveLimits) -> Iterator[tuple[str, int, IO[bytes]]]:
    # Folders have entries too, never many more than files.
    if data.count(_ZIP_ENTRY) > 4 * limits.files:
        raise ArchiveError(f"it holds more than {limits.files} files")
    with zipfile.ZipFile(io.BytesIO(data)) as archive:
        for member in archive.infolist():
            kind = member.external_attr >> 28
            # Archives made on other systems do not say what kind of file it is.
            if not member.is_dir() and kind in (0, 0o10):
                with archive.open(member) as stream:
                    yield member.filename, member.file_size, stream


def _tar_members(data: bytes, limits: ArchiveLimits) -> Iterator[tuple[str, int, IO[bytes]]]:
    packed = io.BytesIO(data)
    source = gzip.GzipFile(fileobj=packed) if data.startswith(_GZIP) else packed
    # Headers and padding of the files count too, and those of links that are left out.
    bounded = _Bounded(source, 2 * limits.size + 2048 * limits.files)
    with tarfile.open(fileobj=bounded, mode="r|") as archive:
        for number, member in enumerate(archive):
            if number > 4 * limits.files:
                raise ArchiveError(f"it holds more than {limits.files} files")
            stream = archive.extractfile(member) if member.isreg() else None
            if stream is not None and not member.issparse():
                yield member.name, member.size, stream


class _Bounded(io.RawIOBase):
    """A stream that ends with an error before more is read than expected."""

    def __init__(self, stream: gzip.GzipFile | io.BytesIO, room: int) -> None:
        super().__init__()
        self._stream = stream
        self._room = room

    def readable(self) -> bool:
        return True

    def read(self, size: int = -1) -> bytes:
        wanted = self._room + 1 if size < 0 else min(size, self._room + 1)
        data = self._stream.read(wanted)
        self._room -= len(data)
        if self._room < 0:
            raise ArchiveError("it unpacks to more than it may")
        return data


def _plain(name: str) -> str:
    """A member's name, checked. Raises `ArchiveError`."""
    if leaves_folder(name):
        raise ArchiveError(f"a file in it would be written outside its folder: {name!r}")
    parts = [part for part in name.replace("\\", "/").split("/") if part not in ("", ".")]
    try:
        "/".join(parts).encode()
    except UnicodeEncodeError:
        raise ArchiveError(f"the name of a file in it is not UTF-8: {name!r}") from None
    if not parts or any(len(part.encode()) > 255 for part in parts):
        raise ArchiveError(f"the name of a file in it cannot be used: {name[:80]!r}")
    return "/".join(parts)


def _without_top_folder(files: dict[str, bytes]) -> dict[str, bytes]:
    tops = {name.partition("/")[0] for name in files}
    if len(tops) != 1 or any("/" not in name for name in files):
        return files
    return {name.partition("/")[2]: content for name, content in files.items()}
