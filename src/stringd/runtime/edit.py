"""Changing a file: read, compute, check that nothing changed meanwhile, write, remember."""

from collections.abc import Callable
from datetime import UTC, datetime
from typing import TYPE_CHECKING, NamedTuple

from stringd.documents import Diff, DocumentError, diff
from stringd.documents.diffs import DEFAULT_CONTEXT, DEFAULT_MAX_LINES
from stringd.runtime import undo
from stringd.runtime.errors import CommandError
from stringd.runtime.file_text import FileText, digest, encode
from stringd.runtime.files import (
    exists,
    make_parents,
    read_text,
    write_data,
)
from stringd.runtime.paths import FilePath, locate

if TYPE_CHECKING:
    from stringd.runtime.call import Call


class Edited(NamedTuple):
    """What an edit did. `blind` tells that the topic had never read what it replaced."""

    new: str
    size: int
    blind: bool
    diff: Diff

    @property
    def lines(self) -> int:
        return self.new.count("\n") + 1


class EditRules(NamedTuple):
    """How careful an edit is."""

    may_create: bool = False
    must_create: bool = False
    makes_directories: bool = False
    force: bool = False
    ignores_changes: bool = False


class Reverted(NamedTuple):
    """What a step back did; `data` is None when it deleted a file that was new."""

    file: FilePath
    data: bytes | None


def edit_file(
    call: "Call", file: FilePath, change: Callable[[str], str], rules: EditRules
) -> Edited:
    """Apply `change` to a file's text. Raises `CommandError`; the file is then untouched."""
    # Edits run in threads: between reading and renaming, no other edit may write.
    with call.runtime.edits:
        before = _read(file, rules)
        unread = before is not None and _changed_since(call, file, before)
        if before is not None:
            _check_free(file, rules, unread=unread)
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


def revert(call: "Call") -> Reverted:
    """Take the topic's last edit back.

    Raises `CommandError` when there is nothing to take back or the file changed since.
    """
    data_dir = call.runtime.settings.data_dir
    with call.runtime.edits:
        records = undo.steps(data_dir, call.session)
        if not records:
            raise CommandError("NOT_FOUND", "Nothing to undo.")
        files = [_file_of(call, record) for record in records]
        for file, record in zip(files, records, strict=True):
            current = _read(file, EditRules(may_create=True))
            if current is not None and digest(current.data).hex() == record.sha256:
                previous = _step_back(call, file, record, current.mode)
                undo.forget(data_dir, call.session)
                return Reverted(file, previous)
    raise CommandError(
        "CONFLICT",
        f"Refusing to undo {files[-1].typed}: file changed since this topic's last edit.\n"
        f"Recovery: look at it with /edit {files[-1].path} and edit what you need.",
    )


def _file_of(call: "Call", record: undo.UndoRecord) -> FilePath:
    file = locate(call, record.path)
    return file._replace(typed=call.session.shown(file.path.as_uri()))


def _step_back(call: "Call", file: FilePath, record: undo.UndoRecord, mode: int) -> bytes | None:
    """Put the text back; the mode, which no edit changes, stays as it is by now."""
    if record.existed:
        previous = record.previous()
        write_data(file, previous, mode)
        call.session.seen_files.saw(file.real, digest(previous))
        return previous
    try:
        file.real.unlink()
    except OSError as error:
        raise CommandError(
            "INTERNAL_ERROR", f"Write failed: {file.typed}: {error.strerror}"
        ) from error
    call.session.seen_files.forget(file.real)
    return None


def _write(
    call: "Call", file: FilePath, before: FileText | None, data: bytes, rules: EditRules
) -> None:
    """Write if the file is still as it was read, with the way back kept first."""
    if _read(file, rules) != before:
        raise _changed(file)
    session, data_dir = call.session, call.runtime.settings.data_dir
    content, encoded = undo.content_fields(before.data if before else b"")
    record = undo.UndoRecord(
        1,
        session.user.id,
        session.topic.canonical,
        str(file.path),
        before is not None,
        content,
        encoded,
        digest(data).hex(),
        datetime.now(UTC).isoformat(timespec="milliseconds"),
    )
    try:
        with undo.remembered(data_dir, session, record):
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


def _changed(file: FilePath) -> CommandError:
    return CommandError(
        "CONFLICT",
        f"Refusing to overwrite changed file: {file.typed}\n"
        "It changed since this topic last read it.\n"
        f"Recovery: run /edit {file.typed} to see the current text, then edit that.",
    )
