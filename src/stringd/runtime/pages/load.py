"""Loading documents from files: the text, its menus, its includes."""

from collections.abc import Iterator
from contextlib import suppress
from os.path import normpath, realpath
from pathlib import Path
from typing import TYPE_CHECKING, Final
from urllib.parse import unquote

from msgspec.structs import replace

from stringd.actions.provenance import capabilities
from stringd.documents import (
    Document,
    Include,
    Included,
    IncludeFailure,
    Menu,
    inline_sources,
    parse,
    parse_menu,
)
from stringd.documents.addresses import joined
from stringd.runtime.editing.included import source_directory
from stringd.runtime.editing.paths import FilePath, is_file, locate
from stringd.runtime.editing.text_file import LARGE_FILE_BYTES, digest, read_text
from stringd.runtime.errors import CommandError
from stringd.runtime.pages.provenance import provenance_of
from stringd.runtime.topics.location import OpenedFile, Page, is_web, path_of

if TYPE_CHECKING:
    from stringd.runtime.topics.call import Call

REQUIREMENTS_FILE: Final = "requirements.md"


def load_file(call: "Call", file: FilePath, *, again: bool = False, make: bool = True) -> Page:
    """Load a local document. Raises `CommandError`.

    Loaded `again` for a session that had it open, it is not read by anybody. Unless it may `make`
    them, missing source files of the user's own documents are not made.
    """
    found = read_text(file)
    loaded = call.services.documents.load(
        found.text, file.path.as_uri(), lambda: digest(found.data), marked=found.marked
    )
    if not again:
        call.session.seen_files.saw(file.real, loaded.digest)
    document = loaded.document
    sources = [OpenedFile(str(file.real), loaded.digest.hex())]
    if document.includes:
        document = _compiled(call, file, document, sources, make=make)
    _check_version(document)
    if len(document.source) > LARGE_FILE_BYTES:
        # A thread waits for it now, the loop would ask for it later.
        document.explore()
    menus = {name: _menu(call, document, name, path) for name, path in document.menus.items()}
    return Page(
        document,
        provenance_of(call, tuple(sources)),
        tuple(sources),
        menus,
        requirements=_requirements(file.path, document),
    )


def include_from_files(call: "Call", path: str, base: str) -> Included | IncludeFailure:
    """What a local document includes, checked like every other path."""
    directory = path_of(base)
    if directory is None:
        return IncludeFailure("only files can be included here")
    if not path:
        return IncludeFailure(f"there is no folder {directory.name}.source/ beside the document")
    try:
        file = locate(call, unquote(path), directory.parent)._replace(typed=path)
        return Included(file.path.as_uri(), read_text(file).text)
    except CommandError as error:
        return IncludeFailure(error.message.partition("\n")[0])


def web_includes(call: "Call", document: Document) -> Iterator[tuple[str, str]]:
    """What a local document, or a file it includes, includes by web address: URL and base."""
    waiting = [document]
    seen = {document.uri}
    while waiting:
        page = waiting.pop()
        for path in page.included_files:
            if is_web(path):
                yield path, page.uri
                continue
            file = include_from_files(call, path, page.uri)
            if isinstance(file, Included) and file.uri not in seen:
                seen.add(file.uri)
                waiting.append(parse(file.source, file.uri))


def absolute_menu(menu: Menu) -> Menu:
    """A menu whose targets no longer depend on where its file is."""
    entries = tuple(
        replace(entry, target=absolute_target(entry.target, menu.uri)) for entry in menu.entries
    )
    return menu._replace(entries=entries)


def absolute_target(target: str, base: str) -> str:
    """A link's target resolved against the file or page it is in; its fragment stays."""
    if target.startswith(("~", "@", "#", "app:", "tool:")) or "://" in target:
        return target
    path = path_of(base)
    if path is None:
        return joined(base, target)
    name, mark, block = target.partition("#")
    found = normpath(path.parent / unquote(name)) if name else str(path)
    # Whoever follows it takes the first `#` for the block's.
    return f"{Path(found).as_uri() if '#' in found else found}{mark}{block}"


def check_menu(document: Document, file: Included) -> None:
    """A menu that is the document, or names it as its own menu, would never end.

    Raises `CommandError`.
    """
    circular = file.uri == document.uri or any(
        absolute_target(path, file.uri) in (document.uri, str(path_of(document.uri)))
        for path in parse(file.source).menus.values()
    )
    if circular:
        raise CommandError(
            "CIRCULAR_REFERENCE", f"Circular menu/nav reference detected: {document.uri}"
        )


def _menu(call: "Call", document: Document, name: str, path: str) -> Menu:
    """A menu of a local document; one whose file cannot be read is empty."""
    directory = path_of(document.uri)
    if directory is None or is_web(path):
        return Menu(name, path)
    try:
        file = locate(call, unquote(path), directory.parent)
        found = Included(file.path.as_uri(), read_text(file).text)
    except CommandError:
        return Menu(name, path)
    check_menu(document, found)
    return absolute_menu(parse_menu(name, found.source, found.uri))


def _requirements(path: Path, document: Document) -> str | None:
    """Address of the document that says how to set this one up, if there is something to."""
    if document.requirements is not None or not (document.requires or document.actions):
        return document.requirements
    sibling = path.with_name(REQUIREMENTS_FILE)
    return REQUIREMENTS_FILE if sibling != path and is_file(sibling) else None


def _check_version(document: Document) -> None:
    if document.unsupported_version is not None:
        raise CommandError(
            "LOAD_ERROR",
            f"This document needs SFMD {document.unsupported_version}; this daemon speaks 0.1.",
        )


def _compiled(
    call: "Call", file: FilePath, document: Document, read: list[OpenedFile], *, make: bool
) -> Document:
    """A document with a source directory beside it: its include lines become blocks.

    `read` takes every file whose text becomes part of the document.
    """
    own = make and capabilities(provenance_of(call, tuple(read))).saves == "workspace"
    sources = source_directory(file.path)
    if sources is None:
        return document

    def load(include: Include) -> str:
        if not include.path:
            return _source_text(call, sources / f"{include.id}.md", read, make=own)
        part = Path(normpath(file.path.parent / include.file))
        inside = Path(realpath(file.path.parent)) in Path(realpath(part)).parents
        if not inside:
            raise CommandError(
                "FILE_NOT_ALLOWED", f"Include leaves the document's directory: {include.path}"
            )
        return _source_text(call, part, read, make=own)

    return parse(inline_sources(document, load), document.uri, original=document.source)


def _source_text(call: "Call", part: Path, read: list[OpenedFile], *, make: bool) -> str:
    """One source file of a document.

    Of the user's own documents a missing one is made, empty, for its author to fill.
    """
    located = locate(call, str(part))
    try:
        found = read_text(located)
        read.append(OpenedFile(str(located.real), digest(found.data).hex()))
        return found.text
    except CommandError as error:
        if error.code != "NOT_FOUND":
            raise
        if make:
            with suppress(OSError):
                located.real.touch()
        return ""
