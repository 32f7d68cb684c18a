"""Installations that ended half way: finished or taken back before anything uses the home.

While a package is exchanged, what was there before is kept as `.<name>.old` (empty when there was
nothing) with a list of its files in `.<name>.was`, and what is being built as `.<name>.tmp`. All
are gone once the installation is done, so whoever finds one finds what a crash interrupted. What
`/uninstall` left half removed is removed (`removal`).
"""

import shutil
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path
from typing import Final

import msgspec

from stringd.runtime.packages import record
from stringd.runtime.packages.installed import installed
from stringd.runtime.packages.kept_files import KeptFiles, carry_over, data_directory
from stringd.runtime.packages.removal import finish_removals, is_package_name
from stringd.runtime.settings import PACKAGES
from stringd.system.files import try_hold, write_atomically

_BUILT: Final = ".tmp"
_BEFORE: Final = ".old"
_LISTED: Final = ".was"


def being_built(package: Path) -> Path:
    """Where a package is built before it takes its place."""
    return package.with_name(f".{package.name}{_BUILT}")


def kept_before(package: Path) -> Path:
    """Where the one that it replaces waits until the new one is on record."""
    return package.with_name(f".{package.name}{_BEFORE}")


def keep_before(package: Path, known: Mapping[str, str]) -> None:
    """Move what is in a package's place out of it. `known` are its installed files with their
    digests. Raises `OSError`."""
    write_atomically(_list(package), msgspec.json.encode(known), 0o600)
    if package.exists():
        package.rename(kept_before(package))
    else:
        kept_before(package).mkdir(mode=0o700)


def take_back(package: Path) -> None:
    """Put what was there before back into place. Raises `OSError`."""
    before = kept_before(package)
    if before.exists():
        if package.exists():
            shutil.rmtree(package)
        if any(before.iterdir()):
            before.rename(package)
        else:
            before.rmdir()
    _list(package).unlink(missing_ok=True)


def carry(package: Path, data: Path) -> KeptFiles:
    """Bring what actions made from the package before to the new one, and be done with it.

    Raises `OSError`.
    """
    kept = carry_over(kept_before(package), package, _listed(package), data)
    _list(package).unlink(missing_ok=True)
    return kept


class Interrupted:
    """Looks once for what a crash left in a home."""

    def __init__(self) -> None:
        self._seen = set[str]()

    def __call__(self, home: str) -> None:
        packages = Path(home) / PACKAGES
        if home in self._seen or not packages.is_dir():
            return
        # Whoever holds it is alive and at work on what would be found.
        with suppress(OSError), try_hold(packages) as alone:
            if alone:
                self._seen.add(home)
                settle(home, packages)


def settle(home: str, packages: Path) -> None:
    """Finish or take back what was interrupted, while the packages are held. Raises `OSError`."""
    finish_removals(home)
    for path in packages.glob(f".*{_BUILT}"):
        shutil.rmtree(path, ignore_errors=True)
    for before in packages.glob(f".*{_BEFORE}"):
        name = before.name[1 : -len(_BEFORE)]
        if not is_package_name(name):
            continue
        package = packages / name
        registered = name in installed(home, "app") or name in installed(home, "tool")
        # The owner's word may be missing; the files count.
        if registered and record.whole(home, name).state in ("intact", "unconfirmed"):
            carry(package, data_directory(home, name))
            continue
        take_back(package)
        if not package.exists():
            record.strike(home, name)
    for listed in packages.glob(f".*{_LISTED}"):
        listed.unlink()


def _list(package: Path) -> Path:
    return package.with_name(f".{package.name}{_LISTED}")


def _listed(package: Path) -> dict[str, str]:
    with suppress(OSError, msgspec.DecodeError):
        return msgspec.json.decode(_list(package).read_bytes(), type=dict[str, str])
    return {}
