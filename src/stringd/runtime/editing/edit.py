"""Changing a file: read, compute, check that nothing changed meanwhile, write, remember."""

from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager, suppress
from typing import TYPE_CHECKING, NamedTuple

from msgspec import UNSET

from stringd.documents import Diff, DocumentError, diff
from stringd.documents.diffs import DEFAULT_CONTEXT, DEFAULT_MAX_LINES
from stringd.runtime.editing.paths import FilePath
from stringd.runtime.editing.text_file import (
    FileText,
    digest,
    encode,
    exists,
    make_parents,
    read_text,
    write_data,
)
from stringd.runtime.errors import CommandError
from stringd.runtime.topics import undo_store
from stringd.system.clock import timestamp
from stringd.system.files import held

if TYPE_CHECKING:
    from stringd.runtime.topics.call import Call
    from stringd.runtime.topics.permission import Permission


class Edited(NamedTuple):
    """What an edit did. `blind` says that the topic had never read what it replaced."""

    new: str
    size: int
    blind: bool
    diff: Diff

    @property
    def lines(self) -> int:
        return self.new.count("\n") + 1


class NotAskedError(Exception):
    """A run has not been asked yet whether its agent may write this file."""

    def __init__(self, permission: "Permission", path: str) -> None:
        super().__init__(path)
        self.permission = permission
        self.path = path


class EditRules(NamedTuple):
    """How careful an edit is."""

    may_create: bool = False
    must_create: bool = False
    makes_directories: bool = False
    force: bool = False
    ignores_changes: bool = False
    whole: bool = False
    """It replaces all of the text, whatever it was."""


def edit_file(
    call: "Call", file: FilePath, change: Callable[[str], str], rules: EditRules
) -> Edited:
    """Apply `change` to a file's text. Raises `CommandError`; the file is then untouched.

    Raises `NotAskedError` for an agent of a run that has to be asked about this file first.
    """
    check_asked(call, file)
    with alone(call):
        before = _read(file, rules)
        unread = before is not None and _changed_since(call, file, before)
        if before is not None:
            _check_free(file, rules, unread=unread)
            if rules.whole and not rules.force and _is_guarded(call, file):
                raise _not_read(file)
        # Of a binary file there is nothing to keep or to show.
        old = before.text if before and not before.binary else ""
        try:
            new = change(old)
        except DocumentError as error:
            raise CommandError(error.code, error.message(file.typed)) from error
        if rules.makes_directories:
            make_parents(file)
        data = encode(new, marked=before is not None and before.marked)
        _write(call, file, before, data, rules)
    blind = before is not None and file.real not in call.session.seen_files
    if not (unread and rules.ignores_changes):
        call.session.seen_files.saw(file.real, digest(data))
    context = call.session.number("_diff_context", 0, DEFAULT_CONTEXT)
    limit = call.session.number("_diff_max_lines", 1, DEFAULT_MAX_LINES)
    return Edited(new, len(data), blind, diff(old, new, context, limit))


@contextmanager
def alone(call: "Call") -> Iterator[None]:
    """Between reading a file and renaming, no other edit may write.

    Edits run in threads, and another daemon may use the same data directory.
    """
    with call.services.edits, ExitStack() as stack:
        with suppress(OSError):
            stack.enter_context(held(call.services.settings.data_dir))
        yield


def check_asked(call: "Call", file: FilePath) -> None:
    """Called right before a file is changed. Raises `NotAskedError`."""
    permission, path = call.caller.permission, str(file.real)
    if permission is not None and not permission.may_write(path):
        raise NotAskedError(permission, path)


def _write(
    call: "Call", file: FilePath, before: FileText | None, data: bytes, rules: EditRules
) -> None:
    """Write if the file is still as it was read, with the way back kept first."""
    if _read(file, rules) != before:
        raise _changed(file)
    session, data_dir = call.session, call.services.settings.data_dir
    content, encoded = undo_store.content_fields(before.data if before else b"")
    record = undo_store.UndoRecord(
        1,
        session.user.id,
        session.topic.canonical,
        str(file.path),
        before is not None,
        content,
        encoded,
        digest(data).hex(),
        timestamp(),
    )
    try:
        with undo_store.remembered(data_dir, session, record):
            write_data(file, data, before.mode if before else None)
    except OSError as error:
        raise CommandError(
            "INTERNAL_ERROR",
            f"Write failed: {file.typed}: the undo copy cannot be kept ({error.strerror}), "
            "so nothing was written.",
        ) from error


def _read(file: FilePath, rules: EditRules) -> FileText | None:
    """The file as it is; None when it may be, and is, new."""
    try:
        return read_text(file, binary_too=rules.may_create)
    except CommandError as error:
        if not rules.may_create or (error.code == "NOT_FOUND" and exists(file)):
            raise
        if error.code == "NOT_FOUND":
            return None
        reason = error.message.replace("Failed to read", "Write failed:", 1)
        raise CommandError("INTERNAL_ERROR", reason) from error


def _changed_since(call: "Call", file: FilePath, now: FileText) -> bool:
    """Whether a file is not what this topic last read of it."""
    seen = call.session.seen_files.get(file.real)
    return seen is not None and seen != digest(now.data)


def _check_free(file: FilePath, rules: EditRules, *, unread: bool) -> None:
    """Refuse to overwrite what must be new, or what changed since this topic read it."""
    if rules.must_create:
        raise CommandError(
            "CONFLICT",
            f"File exists: {file.typed}\nLeave out --new to overwrite it, or choose another name.",
        )
    if unread and not (rules.force or rules.ignores_changes):
        raise _changed(file)


def _is_guarded(call: "Call", file: FilePath) -> bool:
    """Whether this user wants files kept from a topic that has not read them."""
    if file.real in call.session.seen_files:
        return False
    wanted = call.session.user.overwrite_guard
    return call.services.settings.overwrite_guard if wanted is UNSET else wanted


def _not_read(file: FilePath) -> CommandError:
    return CommandError(
        "CONFLICT",
        f"Refusing to overwrite a file that this topic has not read: {file.typed}\n"
        f"Recovery: run /edit {file.typed} to see it, then write it; --force overwrites it unread.",
    )


def _changed(file: FilePath) -> CommandError:
    return CommandError(
        "CONFLICT",
        f"Refusing to overwrite changed file: {file.typed}\n"
        "It changed since this topic last read it.\n"
        f"Recovery: run /edit {file.typed} to see the current text, then edit that.",
    )
