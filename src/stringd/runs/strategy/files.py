"""Reading what strategies are made of, each file together with whose word it is.

A file is the owner's when it is in the data directory or ships with stringd. It is trusted when
the owner trusted exactly this content, by itself or with the folder around it. Everything else is
foreign: it came with a clone, or an agent wrote it. Whose it is is judged by the bytes that were
read, so that nothing can be swapped between the judgement and the use.
"""

import os
import shlex
import stat
from collections.abc import Iterator, Mapping
from functools import cache
from pathlib import Path
from typing import Final, Literal, NamedTuple

from stringd.runs.errors import UntrustedError
from stringd.system.data_directory import belongs_to_owner, is_listed
from stringd.system.file_marks import FileMark, mark
from stringd.system.safe_open import FileTooLargeError, NotAFileError, read_file
from stringd.system.trust import TrustState, TrustStore, digest_of, digest_of_files, real_path
from stringd.system.work_tree import repository_of

Provenance = Literal["owner", "trusted", "foreign"]
PROJECT_FOLDERS: Final = (".stringd", ".comma")
BUNDLED: Final = Path(__file__).parent.parent / "bundled"
# What a data directory holds for runs; the rest of it is the daemon's own, and always changing.
DEFINITIONS: Final = ("strategies", "packages", "skills", "mcp.json")
_MANIFESTS: Final = ("stringd-project.json", "comma-project.json")
MAX_FILES: Final = 2_000
_MAX_FILE_BYTES: Final = 16 * 1024 * 1024
_MAX_BYTES: Final = 64 * 1024 * 1024


class SourceFile(NamedTuple):
    """A file's content and whose word it is."""

    data: bytes
    provenance: Provenance


class FolderContent(NamedTuple):
    """What `.stringd` and `.comma` of a folder hold: digests by real path, and one of all.

    `problem` says why the folder cannot be trusted as a whole.
    """

    files: dict[str, str]
    digest: str
    problem: str | None = None


class LeadsOutError(OSError):
    """A path inside a workspace leads out of it."""


class StrategyFiles:
    """One look at the files of strategies; make a new one for every preparation.

    Without a data directory only what ships with stringd is the owner's.
    """

    def __init__(self, data_dir: Path | None = None, trust: TrustStore | None = None) -> None:
        self.trust = trust or TrustStore()
        self._owned = [_real_bundled()]
        if data_dir is not None and belongs_to_owner(data_dir):
            for name in DEFINITIONS:
                # A link in there is the owner's word too, so both names count.
                self._owned += {str((data_dir / name).absolute()), real_path(data_dir / name)}
        self._folders: dict[str, FolderContent] = {}
        self._marks: dict[str, FileMark] = {}

    @property
    def read_marks(self) -> Mapping[str, FileMark] | None:
        """How the files looked that were read; None when whole folders were judged too."""
        return None if self._folders else self._marks

    def read(self, path: Path, limit: int, within: Path | None = None) -> SourceFile:
        """A regular file of bounded size. Never waits for a pipe or a device.

        With `within`, what the path leads to must be inside that folder, links followed. Raises
        `NotAFileError`, `FileTooLargeError`, `LeadsOutError` or another `OSError`.
        """
        self._marks[str(path)] = mark(path)
        real = real_path(path)
        if within is not None and not _inside(real, real_path(within)):
            raise LeadsOutError(f"leads out of {within}")
        data = read_file(Path(real), limit).data
        return SourceFile(data, self._provenance(path, real, data))

    def is_owned(self, path: Path) -> bool:
        """Whether a path is where only the owner puts files."""
        names = (os.path.normpath(path.absolute()), real_path(path))
        return any(_inside(name, place) for place in self._owned for name in names)

    def state(self, folder: Path) -> TrustState:
        """Whether the owner trusts what `.stringd` and `.comma` of a folder hold now."""
        return self.trust.state(folder, self.content(folder).digest)

    def content(self, folder: Path) -> FolderContent:
        """What `.stringd` and `.comma` of a folder hold; read once."""
        real = real_path(folder)
        if real not in self._folders:
            self._folders[real] = self._read_folder(real)
        return self._folders[real]

    def needs_trust(self, path: Path) -> UntrustedError:
        """The error for a foreign file: why it is not used, and what its owner can type."""
        folder = _project_of(real_path(path))
        if folder is None:
            return _untrusted(path, str(path), self.trust.state(path, ""))
        content = self.content(Path(folder))
        if content.problem is not None:
            return UntrustedError(f"{path} cannot be trusted: {content.problem}", None)
        return _untrusted(path, folder, self.trust.state(folder, content.digest))

    def _provenance(self, path: Path, real: str, data: bytes) -> Provenance:
        if self.is_owned(path):
            return "owner"
        folder = _project_of(real)
        if folder is not None and self._is_in_trusted_folder(folder, real, data):
            return "trusted"
        return "trusted" if self.trust.is_trusted(real, data) else "foreign"

    def _is_in_trusted_folder(self, folder: str, real: str, data: bytes) -> bool:
        content = self.content(Path(folder))
        trusted = self.trust.state(folder, content.digest) == "trusted"
        return trusted and content.files.get(real) == digest_of(data)

    def _read_folder(self, folder: str) -> FolderContent:
        files: dict[str, str] = {}
        marks: list[tuple[str, str]] = []
        size = 0
        for path in self._members(folder):
            if len(marks) >= MAX_FILES:
                problem = f"{folder} offers more than {MAX_FILES} files; move some elsewhere"
                return FolderContent({}, "", problem)
            name, real = os.path.relpath(path, folder), real_path(path)
            if path.is_symlink():
                marks.append((name, f"link to {path.readlink()}"))
            if not _inside(real, folder):
                continue
            try:
                data = read_file(Path(real), min(_MAX_FILE_BYTES, _MAX_BYTES - size)).data
            except FileTooLargeError:
                problem = f"{path} is too large, or what is offered with it"
                return FolderContent({}, "", problem)
            except NotAFileError:
                continue
            except OSError as error:
                return FolderContent({}, "", f"{path} cannot be read: {error.strerror}")
            size += len(data)
            files[real] = digest_of(data)
            marks.append((os.path.relpath(real, folder), files[real]))
        return FolderContent(files, digest_of_files(marks))

    def _members(self, folder: str) -> Iterator[Path]:
        """Every file below `.stringd` and `.comma`, links to folders not followed."""
        for name in PROJECT_FOLDERS:
            top = Path(folder, name)
            if top.is_symlink() or not top.is_dir():
                continue
            # One that is a data directory too is full of what the daemon writes all the time.
            tops = _definitions_in(top) if is_listed(top, self.trust) else [top]
            for each in tops:
                yield from _walk(each)


@cache
def _real_bundled() -> str:
    return real_path(BUNDLED)


def trust_line(path: Path | str) -> str:
    """What the owner types to trust a file or a folder."""
    return f"stringd trust {shlex.quote(str(path))}"


def workspace_root(path: Path, cwd: Path) -> Path:
    """The folder that a foreign strategy may have its prompts in."""
    real = path.resolve()
    project = _project_of(str(real))
    if project is not None:
        return Path(project)
    inside = cwd.resolve()
    return repository_of(real) or (inside if _inside(str(real), str(inside)) else real.parent)


def _untrusted(path: Path, trusted: str, state: TrustState) -> UntrustedError:
    why = "has changed since you trusted it" if state == "changed" else "is not trusted"
    return UntrustedError(f"{path} {why}. Look at it, then: {trust_line(trusted)}", trusted)


def _definitions_in(top: Path) -> list[Path]:
    manifests = [top / name for name in _MANIFESTS]
    code = sorted(top.glob("*.py")) if any(each.is_file() for each in manifests) else []
    return [*(top / name for name in DEFINITIONS), *manifests, *code]


def _walk(top: Path) -> Iterator[Path]:
    if top.is_symlink() or not top.is_dir():
        if top.is_symlink() or top.exists():
            yield top
        return
    for folder, folders, files in os.walk(top):
        folders.sort()
        for name in sorted(files):
            yield Path(folder, name)
        for name in folders:
            if stat.S_ISLNK(os.lstat(os.path.join(folder, name)).st_mode):  # noqa: PTH118
                yield Path(folder, name)


def _project_of(real: str) -> str | None:
    """The folder whose `.stringd` or `.comma` a path is in."""
    for each in Path(real).parents:
        if each.name in PROJECT_FOLDERS:
            return str(each.parent)
    return None


def _inside(real: str, folder: str) -> bool:
    return real == folder or real.startswith(folder.rstrip("/") + "/")
