"""What an action is told about the topic it is called from."""

from pathlib import Path
from typing import TYPE_CHECKING

from stringd.actions.errors import ActionError
from stringd.actions.place import ActionContext
from stringd.runtime.editing.paths import locate, standing_directory
from stringd.runtime.errors import CommandError
from stringd.runtime.pages.shortcuts import known_shortcuts, resolve_shortcut
from stringd.runtime.variables import scopes
from stringd.system import safe_open
from stringd.system.files import make_private_directory

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
        return safe_open.read_file(file_path.real, limit).data
    except safe_open.NotAFileError as error:
        raise ActionError("INVALID_PAYLOAD", f"not a regular file: {path}") from error
    except safe_open.FileTooLargeError as error:
        raise ActionError(
            "INVALID_PAYLOAD",
            f"file too large — {path} is {error.size} bytes, "
            f"limit is {limit} bytes ({limit >> 20} MiB).",
        ) from error
    except OSError as error:
        raise _unreadable(path, error, file_path.hint) from error


def write_named(call: "Call", path: str, data: bytes) -> None:
    """Write a file an action's template named, whole or not at all. Raises `ActionError`."""
    try:
        file = locate(call, path)
        safe_open.make_folders(file.real.parent)
        safe_open.replace_file(file.real, data)
    except CommandError as error:
        raise ActionError(error.code or "INTERNAL_ERROR", error.message) from error
    except safe_open.NotAFileError as error:
        kind = "a directory" if error.is_directory else "not a regular file"
        raise ActionError("INTERNAL_ERROR", f"{path} is {kind}") from error
    except OSError as error:
        raise ActionError("INTERNAL_ERROR", error.strerror or str(error)) from error


def _unreadable(path: str, error: OSError, hint: str | None = None) -> ActionError:
    reason = f"cannot read {path}: {error.strerror or error}"
    return ActionError("INVALID_PAYLOAD", f"{reason}\n{hint}" if hint else reason)
