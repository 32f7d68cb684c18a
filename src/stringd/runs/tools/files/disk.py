"""Files of tools: opened by `system.safe_open`, with refusals in the words a model reads."""

import hashlib
import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Final, NamedTuple

from stringd.runs.guard.errors import Denied
from stringd.runs.guard.workspace import WorkspacePath
from stringd.runs.tools.output import ToolFailure
from stringd.system import safe_open

# Whole files are hashed and held while they are worked on.
MAX_BYTES: Final = 64 * 1024 * 1024


class HashedContent(NamedTuple):
    """A file's bytes, their hash and its permission bits."""

    data: bytes
    sha256: str
    mode: int


def sha256(data: bytes) -> str:
    return hashlib.sha256(data).hexdigest()


def read(place: WorkspacePath) -> HashedContent:
    """A regular file, whole. Raises `ToolFailure`, `Denied` or `OSError`."""
    with _worded(place):
        try:
            content = safe_open.read_file(place.real, MAX_BYTES)
        except (FileNotFoundError, NotADirectoryError):
            raise missing(place) from None
    return HashedContent(content.data, sha256(content.data), content.mode)


def create(place: WorkspacePath, data: bytes, mode: int = 0o666) -> None:
    """A new file, whole or not at all, never over another. Raises `ToolFailure` or `OSError`."""
    with _worded(place), _in_its_folder(place):
        try:
            safe_open.create_file(place.real, data, mode)
        except FileExistsError:
            raise exists(place) from None


def replace(place: WorkspacePath, data: bytes, mode: int) -> None:
    """New content for a file, whole or not at all. Raises `ToolFailure` or `OSError`."""
    with _worded(place), _in_its_folder(place):
        safe_open.replace_file(place.real, data, mode)


def remove(place: WorkspacePath) -> None:
    """Remove a file. Raises `ToolFailure` or `OSError`."""
    with _worded(place), _in_its_folder(place):
        safe_open.remove_file(place.real)


def is_there(place: WorkspacePath) -> bool:
    return os.path.lexists(place.real)


def make_parents(place: WorkspacePath) -> None:
    """The folders above a place. Raises `Denied` or `OSError`."""
    with _worded(place):
        safe_open.make_folders(place.real.parent)


@contextmanager
def open_folder(real: Path) -> Iterator[int]:
    """A folder by its real path, as a descriptor. Raises `Denied` or `OSError`."""
    try:
        with safe_open.open_folder(real) as folder:
            yield folder
    except safe_open.PathChangedError:
        raise _changed(real) from None


def missing(place: WorkspacePath) -> ToolFailure:
    return ToolFailure(
        "not_found",
        f"No such file: {place.shown}",
        path=place.shown,
        next_step="use list_directory or glob to find the right path",
    )


def exists(
    place: WorkspacePath, next_step: str = "read it, then use write_file or edit_file"
) -> ToolFailure:
    return ToolFailure(
        "already_exists", f"{place.shown} exists already", path=place.shown, next_step=next_step
    )


@contextmanager
def _worded(place: WorkspacePath) -> Iterator[None]:
    try:
        yield
    except safe_open.PathChangedError:
        raise _changed(place.real) from None
    except safe_open.NotAFileError as error:
        raise _not_a_file(place, error) from None
    except safe_open.FileTooLargeError as error:
        raise ToolFailure(
            "file_too_large",
            f"{place.shown} has {error.size} bytes; at most {MAX_BYTES} can be handled",
            path=place.shown,
            next_step="use run_command with head, tail or grep",
        ) from None


@contextmanager
def _in_its_folder(place: WorkspacePath) -> Iterator[None]:
    try:
        yield
    except (FileNotFoundError, NotADirectoryError):
        if place.real.parent.is_dir():
            raise
        raise ToolFailure(
            "not_found", f"The folder of {place.shown} does not exist", path=place.shown
        ) from None


def _not_a_file(place: WorkspacePath, error: safe_open.NotAFileError) -> ToolFailure:
    if not error.is_directory:
        return ToolFailure("not_found", f"{place.shown} is not a regular file", path=place.shown)
    return ToolFailure(
        "not_found",
        f"{place.shown} is a directory",
        path=place.shown,
        next_step="use list_directory to see what is in it",
    )


def _changed(real: Path) -> Denied:
    return Denied(f"{real} changed while it was being opened")
