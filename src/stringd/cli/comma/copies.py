"""Copying what a person wrote, file by file, without overwriting what is here."""

import os
from collections.abc import Iterator
from itertools import count
from pathlib import Path
from typing import Final

from stringd.cli.comma.items import ImportItem, ImportPlan, Kind
from stringd.system.files import make_private_directory, write_atomically
from stringd.system.safe_open import read_file

_MAX_FILE: Final = 16 * 1024 * 1024
_MAX_FILES: Final = 2_000
_SKIPPED: Final = ("node_modules", "__pycache__", ".git")


def copy_folder(plan: ImportPlan, kind: Kind) -> Iterator[ImportItem]:
    """Copy every file below the folder of a kind to the same place below the data directory."""
    root = plan.source / kind
    for number, path in enumerate(_files_below(root)):
        name = path.relative_to(root).as_posix()
        if number >= _MAX_FILES:
            yield ImportItem(
                kind, name, "refused", f"{root} holds more than {_MAX_FILES} files; stopped here"
            )
            return
        yield _copied(plan, kind, name, path)


def _copied(plan: ImportPlan, kind: Kind, name: str, path: Path) -> ImportItem:
    target = plan.data / kind / name
    try:
        content = read_file(path.resolve(strict=True), _MAX_FILE)
        here = read_file(target.resolve(strict=True), _MAX_FILE).data if target.exists() else None
        if here == content.data:
            return ImportItem(kind, name, "present")
        if here is not None and not plan.replace:
            return ImportItem(kind, name, "kept", f"{target} differs; --replace takes Comma's")
        aside = ""
        if not plan.dry:
            make_private_directory(target.parent)
            aside = f"what was here is {_put_aside(target)}" if here is not None else ""
            write_atomically(target, content.data, 0o700 if content.mode & 0o100 else 0o600)
        return ImportItem(kind, name, "imported", aside)
    except (OSError, RuntimeError) as error:
        return ImportItem(kind, name, "refused", _reason(error))


def _put_aside(path: Path) -> Path:
    """Rename a file to a name that nothing has yet, and return that."""
    names = (path.with_name(f"{path.name}.before-import{number or ''}") for number in count())
    free = next(each for each in names if not each.exists())
    path.rename(free)
    return free


def _files_below(root: Path) -> Iterator[Path]:
    """Files by name; links to files are followed, links to folders only at the top."""
    for folder, names, files in os.walk(root):
        names[:] = sorted(name for name in names if name not in _SKIPPED)
        yield from (Path(folder, name) for name in sorted(files))
        linked = [Path(folder, name) for name in names if Path(folder, name).is_symlink()]
        for each in linked if Path(folder) == root else []:
            yield from (
                Path(below, name) for below, _, found in os.walk(each) for name in sorted(found)
            )


def _reason(error: Exception) -> str:
    strerror = error.strerror if isinstance(error, OSError) else None
    return strerror or str(error)
