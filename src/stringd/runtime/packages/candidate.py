"""What a source offers: a package that is understood and not installed yet."""

import asyncio
from typing import TYPE_CHECKING, NamedTuple

from stringd.documents import parse
from stringd.runtime.editing.paths import FilePath, is_directory, locate, locate_named
from stringd.runtime.editing.text_file import MAX_FILE_BYTES, read_text
from stringd.runtime.packages.archives import MAX_PACKED_BYTES, archive_stem, is_archive
from stringd.runtime.packages.install import (
    Installation,
    InstallError,
    Origin,
    Package,
    Review,
    Wanted,
    describe,
    install_files,
    install_folder,
    package_directory,
)
from stringd.runtime.packages.installed import MAIN_FILE
from stringd.runtime.packages.sources import (
    Fetchable,
    fetch_github,
    fetch_web,
    github_path,
    unpacked,
)
from stringd.runtime.topics.location import is_web
from stringd.system.safe_open import read_file

if TYPE_CHECKING:
    from pathlib import Path

    from stringd.runtime.topics.call import Call


class Candidate(NamedTuple):
    """A package to install, and where its files are: fetched, or beside a local document."""

    package: Package
    fetched: Fetchable | None = None
    main: "Path | None" = None

    @property
    def missing(self) -> tuple[str, ...]:
        """Pages it links to and that could not be fetched."""
        return self.fetched.missing if self.fetched is not None else ()


async def candidate(call: "Call", source: str, wanted: Wanted) -> Candidate:
    """What a source offers: a file, a folder, an archive or an address. Raises `CommandError`."""
    if is_web(source) or source.startswith("gh:"):
        place = github_path(source)
        if place is None:
            found = await fetch_web(call, source, alone=wanted.link)
        else:
            found = await fetch_github(call, place)
        package = describe(found.document, Origin(source, source), found.file_name, wanted)
        offered = Candidate(package, found)
    else:
        offered = await _local(call, source, wanted)
    confirmed = await call.caller.is_the_owner()
    return offered._replace(package=offered.package._replace(confirmed=confirmed))


async def put_into_place(
    call: "Call", offered: Candidate, review: Review | None = None
) -> Installation:
    """Install it, if whoever reviews it lets it pass. Raises `CommandError`."""
    home, package = call.session.user.home, offered.package
    if offered.main is not None:
        return await asyncio.to_thread(install_folder, home, package, offered.main, review)
    files = offered.fetched.files if offered.fetched is not None else {}
    return await asyncio.to_thread(install_files, home, package, files, review)


async def _local(call: "Call", source: str, wanted: Wanted) -> Candidate:
    file = locate_named(call, source)
    if is_directory(file.real):
        file = locate(call, str(file.path / MAIN_FILE))._replace(typed=f"{source}/{MAIN_FILE}")
    main = file.real
    shown = call.session.shown(source) if source.startswith("file://") else source
    origin = Origin(shown, str(main))
    archive = await asyncio.to_thread(_archive, file)
    if archive is not None:
        found = await unpacked(archive, shown, archive_stem(main.name))
        return Candidate(describe(found.document, origin, found.file_name, wanted), found)
    text = await asyncio.to_thread(read_text, file)
    stem = main.parent.name if main.name == MAIN_FILE else main.stem
    package = describe(parse(text.text, file.path.as_uri()), origin, stem, wanted)
    if main.is_relative_to(package_directory(call.session.user.home, package.name)):
        raise InstallError(f"{package.label} is installed from {shown} already.")
    return Candidate(package, main=main)


def _archive(file: FilePath) -> bytes | None:
    """The content of a file that is an archive; None for any other. Raises `InstallError`."""
    try:
        data = read_file(file.real, MAX_FILE_BYTES).data
    except OSError:
        # Reading it as text says what is wrong with it.
        return None
    if not is_archive(data):
        return None
    if len(data) > MAX_PACKED_BYTES:
        raise InstallError(f"{file.typed} is larger than {MAX_PACKED_BYTES >> 20} MiB.")
    return data
