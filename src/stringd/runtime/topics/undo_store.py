"""One step back per topic: what a file was before this topic's last edit of it."""

import base64
import shutil
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from hashlib import sha256
from pathlib import Path
from typing import TYPE_CHECKING, Final
from urllib.parse import quote

import msgspec

from stringd.system.files import make_private_directory, write_atomically

if TYPE_CHECKING:
    from stringd.runtime.topics.session import Session


LONGEST_NAME: Final = 150
"""Of a user or topic in a file name; a file system takes 255 bytes."""


class UndoRecord(msgspec.Struct, frozen=True):
    """What is stored. Content that is no UTF-8 is kept as base64."""

    version: int
    user: str
    topic: str
    path: str
    existed: bool
    content: str | None
    content_base64: str | None
    sha256: str
    """Of the file after the edit: what must still be there for the step back."""
    time: str

    def previous(self) -> bytes:
        """The file before the edit."""
        if self.content_base64 is not None:
            return base64.b64decode(self.content_base64)
        return (self.content or "").encode("utf-8")


def content_fields(data: bytes) -> tuple[str | None, str | None]:
    """`content` and `content_base64` for a file's bytes."""
    try:
        return data.decode("utf-8"), None
    except UnicodeDecodeError:
        return None, base64.b64encode(data).decode("ascii")


@contextmanager
def remembered(data_dir: Path, session: "Session", record: UndoRecord) -> Iterator[None]:
    """Keep a step back beside the earlier one while the file is written; then it takes its place.

    Raises `OSError` before anything is written when it cannot be kept.
    """
    pending, last = _paths(data_dir, session)
    make_private_directory(last.parent)
    write_atomically(pending, msgspec.json.encode(record), 0o600)
    try:
        yield
    except BaseException:
        pending.unlink(missing_ok=True)
        raise
    with suppress(OSError):
        # Where it is serves as well; the file is written.
        pending.replace(last)


def steps(data_dir: Path, session: "Session") -> list[UndoRecord]:
    """The steps back that may be the topic's last, newest first.

    After a crash there may be two: which one is, the file itself tells.
    """
    found = []
    for path in _paths(data_dir, session):
        with suppress(OSError, msgspec.DecodeError, UnicodeDecodeError):
            found.append(msgspec.json.decode(path.read_bytes(), type=UndoRecord))
    return found


def forget(data_dir: Path, session: "Session") -> None:
    """Drop the topic's step back."""
    for path in _paths(data_dir, session):
        path.unlink(missing_ok=True)


def forget_user(data_dir: Path, user_id: str) -> None:
    """Drop every step back of a user."""
    shutil.rmtree(_directory(data_dir, user_id), ignore_errors=True)


def _paths(data_dir: Path, session: "Session") -> tuple[Path, Path]:
    """Where the step of an edit that is under way is, and where that of the last one."""
    topic = _directory(data_dir, session.user.id) / _file_name(session.topic.canonical)
    return topic / "next.json", topic / "last.json"


def _directory(data_dir: Path, user_id: str) -> Path:
    return data_dir / "undo" / _file_name(user_id)


def _file_name(text: str) -> str:
    """A name of its own for every text, which no text can make lead elsewhere."""
    name = quote(text, safe="")
    if len(name) > LONGEST_NAME:
        return f"{name[:LONGEST_NAME]}-{sha256(text.encode()).hexdigest()}"
    # Percent-encoding leaves dots alone, but a user called `..` must not lead elsewhere.
    return name if name.strip(".") else name.replace(".", "%2E")
