"""The `$NAMES` kept under a package's name are for the source they were set for, and no other.

They outlive the package, so that an app that is installed again works at once. A package of the
same name from elsewhere would find them too; so its installation is refused until the owner says
whether it may have them.
"""

from collections.abc import Iterator
from pathlib import Path
from typing import Final, Literal, NamedTuple

from stringd.runtime.errors import CommandError
from stringd.runtime.packages import record
from stringd.runtime.settings import APPS
from stringd.runtime.variables.json_file import read_object

Choice = Literal["keep", "forget"]
_FILE: Final = "env.json"


class NamesClaim(NamedTuple):
    """Who would find the `$NAMES` stored for a name: a package and its source."""

    name: str
    label: str
    identity: str
    again: str
    """What `/install` takes to install it."""
    renamed: str | None
    """What `/install` takes to install it under another name, if it can."""
    choice: Choice | None
    """What the owner said about names of another package."""


def settle_names(home: str, claim: NamesClaim) -> None:
    """Make sure that stored `$NAMES` are this package's to have. Raises `CommandError`.

    Called while the packages are held, before anything of the package is started or written.
    """
    if not any(_files(home, claim.name)):
        return
    before = record.last_source(home, claim.name)
    if before is None or before == claim.identity or claim.choice == "keep":
        return
    if claim.choice == "forget":
        for path in _files(home, claim.name):
            path.unlink(missing_ok=True)
        return
    rename = f"\nInstall it under another name: {claim.renamed}" if claim.renamed else ""
    raise CommandError(
        "CONFLICT",
        f"$NAMES are stored for {claim.label}, and they were set for another package: {before}"
        f"{rename}\nOr let it have them: /install --keep-names {claim.again}"
        f"\nOr delete them: /install --forget-names {claim.again}",
    )


def _files(home: str, name: str) -> Iterator[Path]:
    """The files that hold values for a package, its configurations included."""
    folder = Path(home) / APPS / name
    for path in (folder / _FILE, *folder.glob(f"*/{_FILE}")):
        if path.is_file() and _holds_values(path):
            yield path


def _holds_values(path: Path) -> bool:
    try:
        return bool(read_object(path))
    except CommandError:
        # What cannot be read may hold some.
        return True
