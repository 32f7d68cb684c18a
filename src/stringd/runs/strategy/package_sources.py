"""Where packages of strategies come from: folders, archives, addresses, git repositories."""

import os
import re
import stat
from pathlib import Path
from typing import Final, NamedTuple
from urllib.parse import unquote, urlsplit

from stringd.formats.archives import USUAL, ArchiveError, unpack
from stringd.net.fetch import Fetcher, FetchError, FetchRequest
from stringd.runs.errors import PackageError
from stringd.runs.strategy.packages import PackageContent
from stringd.system.safe_open import read_file

_FETCH_SECONDS: Final = 60.0
_SHORT: Final = re.compile(r"gh:([\w.-]+/[\w.-]+?)(?:\.git)?(?:/([^@#]+))?(?:@([^#]+))?")
_GITHUB: Final = re.compile(
    r"https://(?:www\.)?github\.com/([\w.-]+/[\w.-]+?)(?:\.git)?/?(?:/tree/([^/]+)(?:/(.+?))?/?)?"
)
_SCP: Final = re.compile(r"[\w.-]+@[\w.-]+:(?!//).+")
_GIT_SCHEMES: Final = ("git+https", "git+http", "git+ssh", "git+file", "git", "ssh")
USAGE: Final = (
    "Name a folder or an archive by its whole path, the address of an archive, or a git "
    "repository: git+https://host/repository.git[@ref][#folder], gh:owner/repository[/folder][@ref]"
)


class GitSource(NamedTuple):
    """A repository; an empty ref is its default branch."""

    url: str
    ref: str = ""
    folder: str = ""


class WebSource(NamedTuple):
    """An archive on the web, and the folder of it that is meant."""

    url: str
    folder: str = ""


class PathSource(NamedTuple):
    """A folder or an archive on this machine."""

    path: Path


PackageSource = GitSource | WebSource | PathSource


def read_package_source(text: str) -> PackageSource:
    """What a source names. Raises `PackageError`."""
    if "\0" in text or text.startswith("-"):
        raise PackageError(f"Hub package not found: {text!r}")
    short, github = _SHORT.fullmatch(text), _GITHUB.fullmatch(text)
    if short is not None:
        return _git(f"https://github.com/{short[1]}.git", short[3] or "", short[2] or "")
    if github is not None:
        return _git(f"https://github.com/{github[1]}.git", github[2] or "", github[3] or "")
    if _SCP.fullmatch(text):
        address, _, folder = text.partition("#")
        return _git(address, "", folder)
    address, _, fragment = text.partition("#")
    scheme, _, _ = address.partition("://")
    folder = unquote(fragment.removeprefix("subdirectory="))
    plain = scheme in ("https", "http")
    if scheme in _GIT_SCHEMES or (plain and re.search(r"\.git(@.+)?/?$", address)):
        url, ref = _with_ref(address.removeprefix("git+"))
        return _git(url, ref, folder)
    if plain:
        _refuse_password(address)
        return WebSource(address, _folder(folder))
    if text.startswith("@") or not Path(text).expanduser().is_absolute():
        raise PackageError(f"Hub package not found: {text}. {USAGE}")
    return PathSource(Path(text).expanduser())


def _with_ref(address: str) -> tuple[str, str]:
    """An address and what follows the `@` behind its last name."""
    before, slash, last = address.rpartition("/")
    name, _, ref = last.partition("@")
    if ".git@" in address:
        name, _, ref = address.partition(".git@")
        return f"{name}.git", ref
    return f"{before}{slash}{name}", ref


def _git(url: str, ref: str, folder: str) -> GitSource:
    if ref.startswith("-") or url.startswith("-"):
        raise PackageError(f"Not a git repository: {url}")
    if "://" in url:
        _refuse_password(url)
    return GitSource(url, ref, _folder(folder))


def _refuse_password(url: str) -> None:
    try:
        password = urlsplit(url).password
    except ValueError:
        raise PackageError(f"Not an address: {url}") from None
    if password is not None:
        raise PackageError(
            "A password in an address would be kept with the package. "
            "Let git's credential helper hold it, or fetch the archive yourself."
        )


def _folder(text: str) -> str:
    parts = [part for part in text.split("/") if part not in ("", ".")]
    if ".." in parts or "\\" in text:
        raise PackageError(f"{text} leads out of the package")
    return "/".join(parts)


def read_path(source: PathSource) -> PackageContent:
    """A folder or an archive of this machine. Touches files. Raises `PackageError`."""
    path = source.path
    try:
        if path.is_dir():
            return PackageContent.of(_folder_files(path.resolve()), str(path))
        data = read_file(path.resolve(), USUAL.size).data
    except FileNotFoundError:
        raise PackageError(f"Hub package not found: {path}. {USAGE}") from None
    except OSError as error:
        raise PackageError(f"Cannot read {path}: {error}") from error
    return from_archive(data, str(path))


def from_archive(data: bytes, shown: str, folder: str = "") -> PackageContent:
    """The content of an archive. Raises `PackageError`."""
    try:
        files = unpack(data)
    except ArchiveError as error:
        raise PackageError(f"{shown} cannot be installed: {error}") from error
    source = f"{shown}#{folder}" if folder else shown
    return PackageContent.of(package_files(files, folder), source)


def package_files(files: dict[str, bytes], folder: str) -> dict[str, bytes]:
    """The files of one folder, without those that begin with a dot. Raises `PackageError`."""
    inside = f"{folder}/" if folder else ""
    found = {
        name.removeprefix(inside): data for name, data in files.items() if name.startswith(inside)
    }
    if not found:
        raise PackageError(f"There is no folder {folder} in it" if folder else "It is empty")
    return {
        name: data
        for name, data in found.items()
        if not any(part.startswith(".") for part in name.split("/"))
    }


async def read_web(source: WebSource, fetcher: Fetcher) -> PackageContent:
    """An archive at an address, through the one door to the network. Raises `PackageError`."""
    request = FetchRequest("GET", source.url, {"Accept": "*/*"}, timeout=_FETCH_SECONDS)
    try:
        answer = await fetcher.fetch(request)
    except FetchError as error:
        raise PackageError(f"Cannot fetch {source.url}: {error}") from error
    if not 200 <= answer.status < 300:
        raise PackageError(f"Cannot fetch {source.url}: HTTP {answer.status}")
    if answer.truncated:
        raise PackageError(f"{source.url} is larger than {len(answer.body) >> 20} MiB")
    return from_archive(answer.body, source.url, source.folder)


def _folder_files(root: Path) -> dict[str, bytes]:
    """Every regular file below a folder; no dot files, no links."""
    found: dict[str, bytes] = {}
    room = USUAL.size
    for directory, names, files in os.walk(root):
        names[:] = [name for name in names if not name.startswith((".", "__pycache__"))]
        for name in files:
            path = Path(directory, name)
            if name.startswith(".") or not stat.S_ISREG(path.lstat().st_mode):
                continue
            data = read_file(path, room + 1).data
            room -= len(data)
            found[path.relative_to(root).as_posix()] = data
            if len(found) > USUAL.files or room < 0:
                raise PackageError(
                    f"{root} holds more than {USUAL.files} files or {USUAL.size >> 20} MiB; "
                    "put the package into a folder of its own"
                )
    return found
