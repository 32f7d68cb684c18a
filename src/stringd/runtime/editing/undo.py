"""`/undo`: put a file back as it was before this topic's last edit of it."""

from typing import TYPE_CHECKING, NamedTuple

from stringd.runtime.editing.edit import EditRules, _read, alone, check_asked
from stringd.runtime.editing.paths import FilePath, locate
from stringd.runtime.editing.text_file import digest, remove, write_data
from stringd.runtime.errors import CommandError
from stringd.runtime.topics import undo_store

if TYPE_CHECKING:
    from stringd.runtime.topics.call import Call


class Reverted(NamedTuple):
    """What a step back did; `data` is None when it deleted a file that was new."""

    file: FilePath
    data: bytes | None


def revert(call: "Call") -> Reverted:
    """Take the topic's last edit back.

    Raises `CommandError` when there is nothing to take back or the file changed since, and
    `NotAskedError` for an agent of a run that has to be asked first.
    """
    data_dir = call.services.settings.data_dir
    with alone(call):
        records = undo_store.steps(data_dir, call.session)
        if not records:
            raise CommandError("NOT_FOUND", "Nothing to undo.")
        files = [_file_of(call, record) for record in records]
        for file, record in zip(files, records, strict=True):
            current = _read(file, EditRules(may_create=True))
            if current is not None and digest(current.data).hex() == record.sha256:
                check_asked(call, file)
                previous = _step_back(call, file, record, current.mode)
                undo_store.forget(data_dir, call.session)
                return Reverted(file, previous)
    raise CommandError(
        "CONFLICT",
        f"Refusing to undo {files[-1].typed}: file changed since this topic's last edit.\n"
        f"Recovery: look at it with /edit {files[-1].path} and edit what you need.",
    )


def _file_of(call: "Call", record: undo_store.UndoRecord) -> FilePath:
    file = locate(call, record.path)
    return file._replace(typed=call.session.shown(file.path.as_uri()))


def _step_back(
    call: "Call", file: FilePath, record: undo_store.UndoRecord, mode: int
) -> bytes | None:
    """Put the text back; the mode, which no edit changes, stays as it is by now."""
    if record.existed:
        previous = record.previous()
        write_data(file, previous, mode)
        call.session.seen_files.saw(file.real, digest(previous))
        return previous
    remove(file)
    call.session.seen_files.forget(file.real)
    return None
