"""Where `to:` of a response template may write."""

import os
from pathlib import PurePath
from typing import TYPE_CHECKING, Final

from stringd.actions.provenance import InstalledApp, Provenance, capabilities, save_refusal
from stringd.runtime.editing.paths import FilePath, is_within
from stringd.runtime.errors import CommandError
from stringd.runtime.settings import OWN_PLACES, WORK_DIRECTORY
from stringd.system.work_tree import MARKS, in_git_directory

if TYPE_CHECKING:
    from stringd.runtime.topics.call import Call

_STEERING: Final = frozenset({*MARKS, ".stringd", ".comma"})
"""Directories whose files decide what programs do."""


def check_saving(call: "Call", provenance: Provenance, file: FilePath) -> None:
    """Refuse a file that a document's template may not write. Raises `CommandError`."""
    if capabilities(provenance).saves == "nowhere":
        raise CommandError("FILE_NOT_ALLOWED", save_refusal(provenance))
    real, home = str(file.real), os.path.realpath(call.session.user.home)
    if _is_own(real, home) or _steers(real, home):
        raise CommandError(
            "FILE_NOT_ALLOWED", f"an action may not write there: {file.typed} is not its data"
        )
    work = f"{home}/{WORK_DIRECTORY}"
    if is_within(real, work) and not _is_own_work(provenance, real.removeprefix(f"{work}/")):
        raise CommandError("FILE_NOT_ALLOWED", f"{file.typed} is the data of another app")


def _is_own(real: str, home: str) -> bool:
    """Whether a file is stringd's own."""
    own = (os.path.realpath(f"{home}/{name}") for name in OWN_PLACES)
    if any(is_within(real, each) for each in own):
        return True
    if is_within(real, home):
        return False
    return is_within(real, os.path.realpath(os.path.expanduser("~/.string")))  # noqa: PTH111


def _steers(real: str, home: str) -> bool:
    # Where a home is was its owner's choice.
    path = real.removeprefix(home) if is_within(real, home) else real
    return any(part.casefold() in _STEERING for part in PurePath(path).parts) or in_git_directory(
        PurePath(real)
    )


def _is_own_work(provenance: Provenance, relative: str) -> bool:
    """Whether a path below the work directory is that of the app itself or a configuration."""
    if not isinstance(provenance, InstalledApp):
        return False
    return relative.partition("/")[0].partition(":")[0] == provenance.name
