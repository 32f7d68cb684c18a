"""Packages from git repositories, read without checking anything out.

Nothing of a repository is executed or obeyed: no hooks, no submodules, no template, no protocol
that runs a helper. Its files come through the same door as those of an archive.
"""

import os
import shutil
import signal
import tempfile
from pathlib import Path
from typing import Final
from urllib.parse import urlsplit

from stringd.formats.archives import USUAL, ArchiveError, unpack
from stringd.net.fetch import Fetcher, FetchError
from stringd.runs.errors import PackageError
from stringd.runs.strategy.package_sources import GitSource, package_files
from stringd.runs.strategy.packages import PackageContent
from stringd.system.command import Command, CommandEnding
from stringd.system.environment import SHELL, child_environment
from stringd.system.safe_open import FileTooLargeError, read_file

_SECONDS: Final = 120.0
_MAX_SAID: Final = 4096
# Headers and padding come on top of the files.
_MAX_FILE: Final = 2 * USUAL.size
_PROTOCOLS: Final = ("https", "http", "ssh", "git", "file")
_SETTINGS: Final = (
    "core.hooksPath=/dev/null",
    "core.sshCommand=ssh -oBatchMode=yes",
    "http.followRedirects=false",
    "protocol.allow=never",
    *(f"protocol.{name}.allow=always" for name in _PROTOCOLS),
)


async def read_git(source: GitSource, fetcher: Fetcher) -> PackageContent:
    """The newest content of a branch or tag. Raises `PackageError`."""
    await _judge(source.url, fetcher)
    with tempfile.TemporaryDirectory(prefix="stringd-package-") as scratch:
        return await _read(source, Path(scratch))


async def _judge(url: str, fetcher: Fetcher) -> None:
    """The address is one that may be asked, as for every other request to the network."""
    if url.startswith("file:"):
        return
    host = urlsplit(url).hostname if "://" in url else url.partition("@")[2].partition(":")[0]
    try:
        await fetcher.resolve(url if url.startswith("http") else f"https://{host}/")
    except FetchError as error:
        raise PackageError(f"Cannot fetch {url}: {error}") from error


async def _read(source: GitSource, scratch: Path) -> PackageContent:
    repository, packed = scratch / "repository", scratch / "packed.tar"
    branch = ("--branch", source.ref) if source.ref else ()
    shallow = ("--bare", "--depth", "1", "--single-branch", "--no-tags", "--template=")
    await _git(scratch, "clone", "-q", *shallow, *branch, "--", source.url, str(repository))
    commit = (await _git(repository, "rev-parse", "HEAD")).strip()
    await _git(repository, "archive", "--format=tar", "-o", str(packed), "HEAD")
    shown = "".join((source.url, f"@{source.ref}" if source.ref else ""))
    try:
        data = read_file(packed, _MAX_FILE).data
        # A repository with one folder keeps its name: that is not a wrapper around the rest.
        files = unpack(data, keep_folder=True)
    except (FileTooLargeError, ArchiveError) as error:
        raise PackageError(f"{shown} cannot be installed: {error}") from error
    again = f"git+{shown}" if "://" in shown else shown
    return PackageContent(
        package_files(files, source.folder),
        f"{again}#{source.folder}" if source.folder else again,
        commit,
    )


async def _git(directory: Path, *words: str) -> str:
    program = shutil.which("git")
    if program is None:
        raise PackageError("git is not installed; install it, or name an archive instead")
    said = bytearray()

    def hear(data: bytes) -> None:
        said.extend(data[: _MAX_SAID - len(said)])

    settings = [word for each in _SETTINGS for word in ("-c", each)]
    command = Command(
        [program, *settings, *words],
        environment=child_environment(SHELL, os.environ),
        directory=str(directory),
        out=hear,
        # A few objects that name each other many times would be archived without end.
        largest_file=_MAX_FILE,
    )
    ended = await command.wait(_SECONDS)
    text = said.decode("utf-8", "replace")
    if ended.ending is CommandEnding.TIMED_OUT:
        raise PackageError(f"git {words[0]} took longer than {_SECONDS:g} s")
    if ended.signal is signal.SIGXFSZ:
        raise PackageError(f"the repository has more than {_MAX_FILE >> 20} MiB in it")
    if ended.status != 0:
        raise PackageError(f"git {words[0]} failed: {text.strip() or ended.status}")
    return text
