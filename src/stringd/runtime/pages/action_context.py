"""What an action is told about the topic it is called from."""

import os
from collections.abc import Mapping, MutableMapping
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from stringd.actions.errors import ActionError, payload_error
from stringd.actions.place import ActionContext, Names, Value
from stringd.actions.provenance import (
    InstalledApp,
    Provenance,
    app_of,
    capabilities,
    owner,
)
from stringd.runtime.editing.paths import FilePath, is_within, locate, standing_directory
from stringd.runtime.errors import CommandError
from stringd.runtime.packages.saved import keep_saved
from stringd.runtime.pages.saving import check_saving
from stringd.runtime.pages.shortcuts import known_shortcuts, resolve_shortcut
from stringd.runtime.settings import WORK_DIRECTORY
from stringd.runtime.topics.owned import OwnedValues
from stringd.runtime.variables import scopes
from stringd.system import safe_open
from stringd.system.files import make_private_directory

if TYPE_CHECKING:
    from stringd.actions.binding import CallArguments
    from stringd.documents import Action, Document
    from stringd.runtime.topics.call import Call
    from stringd.runtime.topics.location import Page


class ActionCall(NamedTuple):
    """An action somebody called: `label` is how they named it.

    `defaults` stand in for variables nobody set.
    """

    page: "Page"
    action: "Action"
    arguments: "CallArguments"
    label: str
    defaults: Mapping[str, str] = {}


def place_of(call: "Call", asked: ActionCall, provenance: Provenance) -> ActionContext:
    """The place an action is called from; `provenance` is that of its page by now."""
    return ActionContext(
        asked.label,
        asked.page.uri,
        _command_directory(call, asked, provenance),
        provenance,
        _names(call, asked, provenance),
        TopicAccess(call, asked, provenance),
        Path(call.cwd) if call.cwd else None,
    )


def _command_directory(call: "Call", asked: ActionCall, provenance: Provenance) -> Path:
    """Where an action's command runs.

    An app that brings nothing but pages has nothing to find beside them: what its commands make
    belongs to its data. Not to the caller's directory: what interpreters find there could be
    another's.
    """
    beside = asked.page.directory or Path(call.session.user.home)
    if asked.action.method != "CLI" or not isinstance(provenance, InstalledApp):
        return beside
    if _needs_package(beside, asked.action.target):
        return beside
    topic = call.session.topic
    own = topic.type == "app" and topic.name.partition(":")[0] == provenance.name
    return _made(call, topic.name if own else provenance.name)


def _needs_package(directory: Path, command: str) -> bool:
    """Whether a command may need files of its package, as far as one can see."""
    try:
        with os.scandir(directory) as found:
            return any(
                each.name in command or not _is_pages(each)
                for each in found
                if not each.name.startswith(".")
            )
    except OSError:
        return True


def _is_pages(entry: "os.DirEntry[str]") -> bool:
    """Whether this is a page, or a folder of pages alone. Raises `OSError`."""
    if not entry.is_dir(follow_symlinks=False):
        return entry.name.endswith(".md")
    with os.scandir(entry) as found:
        return all(each.name.startswith(".") or _is_pages(each) for each in found)


class StoredNames(NamedTuple):
    """The user's `$NAMES` as a document sees them: what it may use, and what it is not given."""

    usable: dict[str, str]
    withheld: dict[str, str]


def stored_names(call: "Call", document: "Document", provenance: Provenance) -> StoredNames:
    """The `$NAMES` of the user that a document may use.

    What an app's topic keeps is for that app alone, whatever else is opened there. Of what is
    stored for all, an app gets what it declares.
    """
    home, topic = call.session.user.home, call.session.topic
    if capabilities(provenance).names == "none":
        return StoredNames({}, {})
    in_own_topic = topic.type == "app" and topic.name.partition(":")[0] == app_of(provenance)
    own = scopes.own(home, topic) if in_own_topic else {}
    shared = scopes.shared(home)
    withheld: dict[str, str] = {}
    if isinstance(provenance, InstalledApp) and provenance.names is not None:
        declared = {*provenance.names, *document.declared_names}
        withheld = {
            name: value for name, value in shared.items() if name not in declared | own.keys()
        }
    usable = {name: value for name, value in shared.items() if name not in withheld}
    return StoredNames(usable | own, withheld)


def _names(call: "Call", asked: ActionCall, provenance: Provenance) -> Names:
    session, document = call.session, asked.page.document
    held = OwnedValues(session.variables, session.variable_owners, owner(provenance))
    context = {"ARGS": asked.arguments.text}
    if capabilities(provenance).names != "none":
        context |= _whereabouts(call, asked.page, make_work=_uses_work_directory(asked.action))
    stored = stored_names(call, document, provenance)
    return Names(
        held,
        context,
        {**asked.defaults, **stored.usable},
        frozenset({*document.requires, *(each.name for each in document.env)}),
        stored.withheld,
        document.requires,
    )


def _whereabouts(call: "Call", page: "Page", *, make_work: bool) -> dict[str, str]:
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
        "STRING_APP_DIR": str(page.directory or here or ""),
        "STRING_CALLER_DIR": call.cwd or "",
        "STRING_WORK_DIR": _work_directory(call, make=make_work),
    }


def _uses_work_directory(action: "Action") -> bool:
    texts = (action.target, action.body or "", action.response or "")
    return action.method == "CLI" or any("STRING_WORK_DIR" in text for text in texts)


def _work_directory(call: "Call", *, make: bool) -> str:
    session = call.session
    if session.topic.type != "app":
        return ""
    if make:
        return str(_made(call, session.topic.name))
    return f"{session.user.home}/{WORK_DIRECTORY}/{session.topic.name}"


def _made(call: "Call", name: str) -> Path:
    """The data directory of an app, made if need be. Raises `CommandError`."""
    path = Path(call.session.user.home) / WORK_DIRECTORY / name
    try:
        make_private_directory(path)
    except OSError as error:
        raise CommandError("INTERNAL_ERROR", f"Cannot create {path}: {error.strerror}") from error
    return path


class TopicAccess:
    """What the actions of a document may touch of the topic they are called in."""

    def __init__(self, call: "Call", asked: ActionCall, provenance: Provenance) -> None:
        self._call = call
        self._provenance = provenance
        self._typed = asked.arguments.typed
        # What a command of this machine prints is not somebody else's text.
        self._foreign_answers = asked.action.method != "CLI"
        session = call.session
        self.value_shortcuts: MutableMapping[str, Value] = OwnedValues(
            session.value_shortcuts, session.shortcut_owners, owner(provenance)
        )

    @property
    def in_app(self) -> bool:
        return self._call.session.topic.type == "app"

    def shortcut(self, name: str) -> Value | None:
        return resolve_shortcut(self._call.session, name, self.value_shortcuts)

    def shortcut_names(self) -> list[str]:
        return known_shortcuts(self._call.session, self.value_shortcuts)

    def read_file(self, path: str, limit: int) -> bytes:
        """The bytes of a file the caller named. Raises `ActionError`."""
        if capabilities(self._provenance).names == "none" and path not in self._typed:
            # Else a field's default could name a file that nobody meant to send.
            raise payload_error(f"cannot read {path}: this page reads only files that you name")
        return read_named(self._call, path, limit)

    def _saving_directory(self) -> Path | None:
        """Where relative names of files to write start; None where the topic is.

        Nothing is written beside an installed app, so its names start where the caller is, or
        among the app's own data.
        """
        if not isinstance(self._provenance, InstalledApp):
            return None
        if self._call.cwd is not None:
            return Path(self._call.cwd)
        return Path(_work_directory(self._call, make=False) or self._call.session.user.home)

    async def write_file(self, path: str, data: bytes) -> str:
        """Write a file a template named, whole or not at all; its path.

        Raises `ActionError`, and `CommandError` when an agent of a run may not.
        """
        try:
            file = locate(self._call, path, self._saving_directory())
            check_saving(self._call, self._provenance, file)
        except CommandError as error:
            raise ActionError(error.code or "INTERNAL_ERROR", error.message) from error
        permission = self._call.caller.permission
        if permission is not None:
            await permission.write(str(file.real))
        self._write(path, file, data)
        return str(file.path)

    def _write(self, path: str, file: FilePath, data: bytes) -> None:
        try:
            home = os.path.realpath(self._call.session.user.home)
            if self._foreign_answers and is_within(str(file.real), home):
                keep_saved(home, str(file.real), data)
            safe_open.make_folders(file.real.parent)
            safe_open.replace_file(file.real, data)
        except CommandError as error:
            raise ActionError(error.code or "INTERNAL_ERROR", error.message) from error
        except safe_open.NotAFileError as error:
            kind = "a directory" if error.is_directory else "not a regular file"
            raise ActionError("INTERNAL_ERROR", f"{path} is {kind}") from error
        except OSError as error:
            raise ActionError("INTERNAL_ERROR", error.strerror or str(error)) from error


def read_named(call: "Call", path: str, limit: int) -> bytes:
    """The bytes of a file somebody typed the name of. Raises `ActionError`."""
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


def _unreadable(path: str, error: OSError, hint: str | None = None) -> ActionError:
    reason = f"cannot read {path}: {error.strerror or error}"
    return ActionError("INVALID_PAYLOAD", f"{reason}\n{hint}" if hint else reason)
