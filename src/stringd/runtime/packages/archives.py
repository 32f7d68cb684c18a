"""Packages that come as one file: zip, tar and tar.gz, unpacked in memory and bounded.

Nothing is written and no link is followed: a name leads to the bytes that are stored under it.
"""

import gzip
import io
import tarfile
import zipfile
import zlib
from collections.abc import Iterator, Mapping
from typing import Final, NamedTuple

from stringd.runtime.packages.install import InstallError, check_paths
from stringd.runtime.packages.installed import MAIN_FILE

MAX_PACKED_BYTES: Final = 32 * 1024 * 1024
MAX_UNPACKED_BYTES: Final = 64 * 1024 * 1024
MAX_MEMBERS: Final = 2000
_ZIP_ENTRY: Final = b"PK\x01\x02"
_ZIP: Final = b"PK\x03\x04"
_GZIP: Final = b"\x1f\x8b"
_TAR_MARK: Final = slice(257, 262)
_ENDINGS: Final = (".zip", ".tgz", ".gz", ".tar")
_ENCRYPTED: Final = 0x1


class _Member(NamedTuple):
    """One regular file of an archive."""

    name: str
    data: bytes


def is_archive(data: bytes) -> bool:
    """Whether bytes are an archive; their beginning says it, whatever the file is called."""
    return data.startswith((_ZIP, _GZIP)) or data[_TAR_MARK] == b"ustar"


def archive_stem(file_name: str) -> str:
    """A file's name without what says that it is an archive."""
    stem = file_name
    while stem.lower().endswith(_ENDINGS):
        stem = stem.rpartition(".")[0]
    return stem


def unpack(data: bytes, shown: str) -> Mapping[str, bytes]:
    """The files of a package by path, without hidden ones. Raises `InstallError`.

    `string.md` is at the top, or in the one folder that the archive has there. Use a thread.
    """
    try:
        members = list(_bounded(_zip(data) if data.startswith(_ZIP) else _tar(data), shown))
    except (zipfile.BadZipFile, tarfile.TarError, zlib.error, EOFError, OSError) as error:
        raise InstallError(f"Cannot unpack {shown}: {error}") from error
    except (NotImplementedError, RecursionError, ValueError, OverflowError) as error:
        raise InstallError(f"Cannot unpack {shown}: it is damaged or of another kind.") from error
    check_paths([member.name for member in members])
    files = {member.name.removeprefix("./"): member.data for member in members}
    root = _root(files, shown)
    inner = {name.removeprefix(root): content for name, content in files.items()}
    return {name: content for name, content in inner.items() if not _hidden(name)}


def _root(files: Mapping[str, bytes], shown: str) -> str:
    """What to take off every path. Raises `InstallError`."""
    if MAIN_FILE in files:
        return ""
    tops = {name.partition("/")[0] for name in files if not name.startswith(("__MACOSX/", "."))}
    only = f"{next(iter(tops))}/" if len(tops) == 1 else ""
    if only and f"{only}{MAIN_FILE}" in files:
        return only
    found = ", ".join(sorted(files)[:5]) or "nothing"
    raise InstallError(f"No {MAIN_FILE} at the top of {shown}. Found: {found}")


def _hidden(name: str) -> bool:
    return name.startswith("__MACOSX/") or any(part.startswith(".") for part in name.split("/"))


def _bounded(members: Iterator[_Member], shown: str) -> Iterator[_Member]:
    for count, member in enumerate(members, 1):
        if count > MAX_MEMBERS:
            raise InstallError(f"{shown} holds more than {MAX_MEMBERS} files.")
        yield member


def _zip(data: bytes) -> Iterator[_Member]:
    left = MAX_UNPACKED_BYTES
    # Reading the list of a million files takes seconds. Folders are listed too.
    if data.count(_ZIP_ENTRY) > 4 * MAX_MEMBERS:
        raise InstallError(f"It holds more than {MAX_MEMBERS} files.")
    with zipfile.ZipFile(io.BytesIO(data)) as archive:
        for info in archive.infolist():
            # The upper half holds the mode that Unix gives a file; a link has one of its own.
            kind = info.external_attr >> 16 & 0o170000
            if info.is_dir() or kind not in (0, 0o100000):
                continue
            if info.flag_bits & _ENCRYPTED:
                raise zipfile.BadZipFile("it is encrypted")
            with archive.open(info) as stream:
                content = stream.read(left + 1)
            left -= len(content)
            _check_room(left)
            yield _Member(info.filename, content)


def _tar(data: bytes) -> Iterator[_Member]:
    source = _Counted(data)
    # As a stream nothing is read twice, so a forged offset leads nowhere.
    with tarfile.open(fileobj=source, mode="r|") as archive:
        for info in archive:
            # A file with holes would be as large as it says, whatever the archive holds of it.
            whole = info.isreg() and not info.issparse()
            stream = archive.extractfile(info) if whole else None
            if stream is not None:
                yield _Member(info.name, stream.read())


class _Counted(io.RawIOBase):
    """An archive's bytes, unpacked where they are packed, up to the limit."""

    def __init__(self, data: bytes) -> None:
        super().__init__()
        packed = io.BytesIO(data)
        self._stream = gzip.GzipFile(fileobj=packed) if data.startswith(_GZIP) else packed
        self._left = MAX_UNPACKED_BYTES

    def read(self, size: int = -1) -> bytes:
        piece = self._stream.read(size if size >= 0 else self._left + 1)
        self._left -= len(piece)
        _check_room(self._left)
        return piece


def _check_room(left: int) -> None:
    if left < 0:
        raise InstallError(
            f"It unpacks to more than {MAX_UNPACKED_BYTES >> 20} MiB; a package is an app, "
            "not a disk."
        )
