"""The `$NAMES` kept under a package's name are for the source they were set for, and no other.

They outlive the package, so that an app that is installed again works at once. A package of the
same name from elsewhere would find them too; so its installation is refused until the owner says
whether it may have them.
"""

from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Final, Literal

from stringd.runtime.errors import CommandError
from stringd.runtime.packages import record
from stringd.runtime.variables.json_file import read_object
from stringd.runtime.variables.scopes import APPS

if TYPE_CHECKING:
    from stringd.runtime.packages.install import Package

Choice = Literal["keep", "forget"]
_FILE: Final = "env.json"


def settle_names(home: str, package: "Package") -> None:
    """Make sure that stored `$NAMES` are this package's to have. Raises `CommandError`.

    Called while the packages are held, before anything of the package is started or written.
    """
    if not package.confirmed or not any(_files(home, package.name)):
        # Without the owner's word it gets none in any case.
        return
    before = record.last_source(home, package.name)
    if before is None or before == package.origin.identity or package.names == "keep":
        return
    if package.names == "forget":
        for path in _files(home, package.name):
            path.unlink(missing_ok=True)
        return
    rename = "" if package.origin.again else f"\nInstall it as another: --as {package.name}-2"
    raise CommandError(
        "CONFLICT",
        f"$NAMES are stored for {package.label}, and they were set for another package: {before}"
        f"{rename}\nOr let it have them: /install --keep-names {package.again}"
        f"\nOr delete them: /install --forget-names {package.again}",
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
