"""What an action is told about the topic it is called from."""

import os
import stat
from pathlib import Path
from typing import TYPE_CHECKING

from stringd.actions.errors import ActionError
from stringd.actions.place import ActionContext
from stringd.runtime.editing.paths import locate, standing_directory
from stringd.runtime.errors import CommandError
from stringd.runtime.pages.shortcuts import known_shortcuts, resolve_shortcut
from stringd.runtime.variables import scopes
from stringd.system.files import make_private_directory, write_atomically

if TYPE_CHECKING:
    from stringd.documents import Action
    from stringd.runtime.topics.call import Call
    from stringd.runtime.topics.location import Page

WORK_DIRECTORY = ".string-work"


def place_of(
    call: "Call",
    page: "Page",
    action: "Action",
    arguments: str,
    label: str,
    defaults: dict[str, str] | None = None,
) -> ActionContext:
    """The place a call of `action` is made from. `defaults` stand in for unset variables."""
    session = call.session
    home = session.user.home
    document = page.document
    stored = {**(defaults or {}), **scopes.visible(home, session.topic)}
    return ActionContext(
        label=label,
        uri=page.uri,
        directory=page.path.parent if page.path else Path(home),
        variables=session.variables,
        value_shortcuts=session.value_shortcuts,
        context=_context(call, page, arguments, _uses_work_directory(action)),
        stored=stored,
        declared=frozenset({*document.requires, *(each.name for each in document.env)}),
        in_app=session.topic.type == "app",
        shortcut=lambda name: resolve_shortcut(session, name),
        shortcut_names=lambda: known_shortcuts(session),
        read_file=lambda path, limit: read_named(call, path, limit),
        write_file=lambda path, data: write_named(call, path, data),
    )


def _context(call: "Call", page: "Page", arguments: str, make_work: bool) -> dict[str, str]:
    session = call.session
    location = session.location
    here = session.document_directory()
    return {
        "HOME": session.user.home,
        "CWD": str(standing_directory(call)),
        "CURRENT_FILE": str(page.path or ""),
        "CURRENT_URI": location.uri if location else "",
        "CURRENT_TARGET": str(session.topic),
        "CURRENT_BLOCK": (location.block if location else None) or "",
        "ARGS": arguments,
        "STRING_APP_DIR": str(page.path.parent if page.path else here or ""),
        "STRING_WORK_DIR": _work_directory(call, make=make_work),
    }


def _uses_work_directory(action: "Action") -> bool:
    texts = (action.target, action.body or "", action.response or "")
    return action.method == "CLI" or any("STRING_WORK_DIR" in text for text in texts)


def _work_directory(call: "Call", *, make: bool) -> str:
    session = call.session
    if session.topic.type != "app":
        return ""
    path = Path(session.user.home) / WORK_DIRECTORY / session.topic.name
    if make:
        try:
            make_private_directory(path)
        except OSError as error:
            raise CommandError(
                "INTERNAL_ERROR", f"Cannot create {path}: {error.strerror}"
            ) from error
    return str(path)


def read_named(call: "Call", path: str, limit: int) -> bytes:
    """The bytes of a file a caller named. Raises `ActionError`."""
    try:
        file_path = locate(call, path)
    except CommandError as error:
        raise ActionError("INVALID_PAYLOAD", f"cannot read {path}: {error.message}") from error
    try:
        handle = os.open(file_path.real, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)
    except OSError as error:
        raise _unreadable(path, error, file_path.hint) from error
    status = os.fstat(handle)
    if not stat.S_ISREG(status.st_mode):
        os.close(handle)
        raise ActionError("INVALID_PAYLOAD", f"not a regular file: {path}")
    with os.fdopen(handle, "rb") as file:
        if status.st_size > limit:
            raise ActionError(
                "INVALID_PAYLOAD",
                f"file too large — {path} is {status.st_size} bytes, "
                f"limit is {limit} bytes ({limit >> 20} MiB).",
            )
        try:
            return file.read(limit)
        except OSError as error:
            raise _unreadable(path, error) from error


def write_named(call: "Call", path: str, data: bytes) -> None:
    """Write a file an action's template named, whole or not at all. Raises `ActionError`."""
    try:
        file = locate(call, path)
        if file.real.is_dir():
            raise ActionError("INTERNAL_ERROR", f"{path} is a directory")
        file.real.parent.mkdir(parents=True, exist_ok=True)
        mode = stat.S_IMODE(file.real.stat().st_mode) if file.real.exists() else 0o644
        write_atomically(file.real, data, mode)
    except CommandError as error:
        raise ActionError(error.code or "INTERNAL_ERROR", error.message) from error
    except OSError as error:
        raise ActionError("INTERNAL_ERROR", error.strerror or str(error)) from error


def _unreadable(path: str, error: OSError, hint: str | None = None) -> ActionError:
    reason = f"cannot read {path}: {error.strerror or error}"
    return ActionError("INVALID_PAYLOAD", f"{reason}\n{hint}" if hint else reason)
