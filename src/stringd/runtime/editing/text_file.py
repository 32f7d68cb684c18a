"""The content of a file, as bytes and as text that survives a round trip."""

import hashlib
import os
from codecs import BOM_UTF8
from pathlib import Path
from typing import Final, NamedTuple

from stringd.runtime.editing.paths import FilePath
from stringd.runtime.errors import CommandError
from stringd.system import safe_open


class FileText(NamedTuple):
    """A file as text. Bytes that are no UTF-8 come back unchanged when it is written."""

    text: str
    """Without the byte order mark, which is not text."""
    data: bytes
    """The bytes of the file."""
    mode: int
    marked: bool = False
    """Whether the file starts with a byte order mark."""
    binary: bool = False


def digest(data: bytes) -> bytes:
    """What identifies a file's content."""
    return hashlib.sha256(data).digest()


def encode(text: str, *, marked: bool = False) -> bytes:
    """Text as a file holds it, below a byte order mark if the file had one."""
    data = text.encode("utf-8", "surrogateescape")
    return BOM_UTF8 + data if marked and not data.startswith(BOM_UTF8) else data


def decode(data: bytes) -> str:
    """A file's bytes as text, lossless for `encode`."""
    return data.decode("utf-8", "surrogateescape")


MAX_FILE_BYTES: Final = 256 * 1024 * 1024
"""Larger files are refused instead of filling the memory several times over."""
LARGE_FILE_BYTES: Final = 16 * 1024
"""Above this, reading and rendering takes long enough to be done outside the loop thread."""
_SNIFFED: Final = 8192


def is_binary(data: bytes) -> bool:
    """Whether bytes are not text: it shows in the first of them."""
    return b"\0" in data[:_SNIFFED]


def read_text(file: FilePath, *, binary_too: bool = False) -> FileText:
    """Read a text file. Raises `CommandError`; messages name the path as it was typed."""
    data, mode = _read(file)
    binary = is_binary(data)
    if binary and not binary_too:
        raise CommandError(
            "LOAD_ERROR",
            f"Failed to read {file.typed}: it is a binary file ({len(data)} bytes).\n"
            "Recovery: /exec file <path> says what it is.",
        )
    marked = data.startswith(BOM_UTF8)
    text = decode(data[len(BOM_UTF8) :] if marked else data)
    return FileText(text, data, mode, marked, binary)


def _read(file: FilePath) -> safe_open.FileContent:
    try:
        return safe_open.read_file(file.real, MAX_FILE_BYTES)
    except (FileNotFoundError, NotADirectoryError) as error:
        raise not_found(file) from error
    except safe_open.NotAFileError as error:
        if error.is_directory:
            raise _unreadable(file, "it is a directory. Use /ls to list it.") from error
        raise _unreadable(file, "it is not a regular file") from error
    except safe_open.FileTooLargeError as error:
        reason = f"it has {error.size} bytes, limit is {MAX_FILE_BYTES}"
        raise _unreadable(file, reason) from error
    except OSError as error:
        raise _unreadable(file, error.strerror or str(error)) from error


def write_data(file: FilePath, data: bytes, mode: int | None = None) -> None:
    """Replace a file in one step, keeping its mode.

    Raises `CommandError`; the file is then as it was.
    """
    try:
        safe_open.replace_file(file.real, data, mode)
    except OSError as error:
        raise _unwritable(file, error) from error


def remove(file: FilePath) -> None:
    """Remove a file. Raises `CommandError`."""
    try:
        safe_open.remove_file(file.real)
    except OSError as error:
        raise _unwritable(file, error) from error


def make_parents(file: FilePath) -> None:
    """Create the directories above a file. Raises `CommandError`."""
    try:
        safe_open.make_folders(file.real.parent)
    except OSError as error:
        raise _unwritable(file, error) from error


def is_large(path: Path) -> bool:
    """Whether a file is worth a thread; what is not there is not."""
    try:
        return path.stat().st_size > LARGE_FILE_BYTES
    except OSError:
        return False


def exists(file: FilePath) -> bool:
    """Whether anything is there, dangling links included."""
    return os.path.lexists(file.real)


def not_found(file: FilePath) -> CommandError:
    """The refusal for a file that is not there."""
    hint = file.hint
    if file.path.is_symlink():
        hint = f"It is a link to {file.path.readlink()}, which is not there."
    return CommandError(
        "NOT_FOUND", f"File not found: {file.typed}" + (f"\n{hint}" if hint else "")
    )


def _unreadable(file: FilePath, reason: str) -> CommandError:
    return CommandError("LOAD_ERROR", f"Failed to read {file.typed}: {reason}")


def _unwritable(file: FilePath, error: OSError) -> CommandError:
    reason = error.strerror or str(error)
    return CommandError("INTERNAL_ERROR", f"Write failed: {file.typed}: {reason}")
