"""Changing a file: read, compute, check that nothing changed meanwhile, write, remember."""

from collections.abc import Callable
from datetime import UTC, datetime
from hashlib import sha256
from typing import TYPE_CHECKING, NamedTuple

from stringd.documents import Diff, DocumentError, diff
from stringd.runtime import undo
from stringd.runtime.errors import CommandError
from stringd.runtime.files import FileText, exists, make_parents, read_text, write_text
from stringd.runtime.paths import FilePath

if TYPE_CHECKING:
    from stringd.runtime.commands.call import Call


class Edited(NamedTuple):
    """What an edit did. `blind` tells that the topic had never read what it replaced."""

    old: str
    new: str
    size: int
    created: bool
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


def edit_file(
    call: "Call", file: FilePath, change: Callable[[str], str], rules: EditRules
) -> Edited:
    """Apply `change` to a file's text. Raises `CommandError`; the file is then untouched."""
    before = _read(file, rules)
    if before is not None:
        if rules.must_create:
            raise CommandError(
                "CONFLICT",
                f"File exists: {file.typed}\n"
                "Leave out --new to overwrite it, or choose another name.",
            )
        _check_unchanged(call, file, before, rules)
    old = before.text if before else ""
    try:
        new = change(old)
    except DocumentError as error:
        raise CommandError(error.code, error.message(file.typed)) from error
    if rules.makes_directories:
        make_parents(file)
    if _read(file, rules) != before:
        raise _changed(file)
    blind = before is not None and file.real not in call.session.seen_files
    data = write_text(file, new, before.mode if before else None)
    content, encoded = undo.content_fields(old)
    undo.store(
        call.runtime.settings.data_dir,
        call.session,
        undo.UndoRecord(
            1,
            call.session.user.id,
            call.session.topic.canonical,
            str(file.path),
            before is not None,
            content,
            encoded,
            before.mode if before else 0,
            sha256(data).hexdigest(),
            datetime.now(UTC).isoformat(timespec="milliseconds"),
        ),
    )
    call.session.seen_files[file.real] = sha256(data).digest()
    context, limit = _setting(call, "_diff_context", 0, 3), _setting(call, "_diff_max_lines", 1, 50)
    compared = diff(old, new, context, limit)
    return Edited(old, new, len(data), before is None, blind, compared)


def revert(call: "Call") -> tuple[FilePath | None, str, bool]:
    """Take the topic's last edit back: the file, its text, and whether it existed before.

    Raises `CommandError` when there is nothing to take back or the file changed since.
    """
    from stringd.runtime.paths import locate

    data_dir = call.runtime.settings.data_dir
    record = undo.load(data_dir, call.session)
    if record is None:
        raise CommandError("NOT_FOUND", "Nothing to undo.")
    file = locate(call, record.path)
    current = _read(file._replace(typed=record.path), EditRules(may_create=True))
    if current is None or current.digest.hex() != record.sha256:
        raise CommandError(
            "CONFLICT",
            f"Refusing to undo {call.session.shown(file.path.as_uri())}: "
            "file changed since this topic's last edit.\n"
            f"Recovery: look at it with /edit {record.path} and edit what you need.",
        )
    text = record.previous()
    if record.existed:
        data = write_text(file, text, record.mode)
        call.session.seen_files[file.real] = sha256(data).digest()
    else:
        file.real.unlink()
        call.session.seen_files.pop(file.real, None)
    undo.forget(data_dir, call.session)
    return file, text, record.existed


def _read(file: FilePath, rules: EditRules) -> FileText | None:
    """The file as it is; None when it may be, and is, new."""
    try:
        return read_text(file)
    except CommandError as error:
        if error.code != "NOT_FOUND" or not rules.may_create:
            raise
        if exists(file) and not file.real.exists():
            raise CommandError(
                "NOT_FOUND", f"File not found: {file.typed} is a link to a missing file"
            ) from error
        return None


def _check_unchanged(call: "Call", file: FilePath, before: FileText, rules: EditRules) -> None:
    seen = call.session.seen_files.get(file.real)
    if seen is not None and seen != before.digest and not (rules.force or rules.ignores_changes):
        raise _changed(file)


def _changed(file: FilePath) -> CommandError:
    return CommandError(
        "CONFLICT",
        f"Refusing to overwrite changed file: {file.typed}\n"
        "It changed since this topic last read it.\n"
        f"Recovery: run /edit {file.typed} to see the current text, then edit that.",
    )


def _setting(call: "Call", name: str, least: int, default: int) -> int:
    text = call.session.variables.get(name, "").strip()
    return int(text) if text.isdecimal() and int(text) >= least else default
