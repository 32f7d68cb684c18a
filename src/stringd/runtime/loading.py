"""Loading documents from files: the text, its menus, its includes."""

from os.path import normpath
from pathlib import Path
from typing import TYPE_CHECKING, Final
from urllib.parse import urljoin

from stringd.documents import (
    Document,
    Included,
    IncludeFailure,
    Menu,
    MenuEntry,
    parse,
    parse_menu,
)
from stringd.documents.directives import Directive
from stringd.runtime.errors import CommandError
from stringd.runtime.files import read_text
from stringd.runtime.page import Page, is_web, path_of
from stringd.runtime.paths import FilePath, locate

if TYPE_CHECKING:
    from stringd.runtime.commands.call import Call

REQUIREMENTS_FILE: Final = "requirements.md"


def load_file(call: "Call", file: FilePath) -> Page:
    """Load a local document. Raises `CommandError`."""
    loaded = read_text(file)
    call.session.saw(file.real, loaded.digest)
    document = parse(loaded.text, file.path.as_uri())
    if document.includes:
        document = _compiled(call, file, document)
    _check_version(document)
    menus = {name: _menu(call, document, name, path) for name, path in document.menus.items()}
    return Page(document, menus, requirements=_requirements(file.path, document))


def include_from_files(call: "Call", path: str, base: str) -> Included | IncludeFailure:
    """What a local document includes, checked like every other path."""
    directory = path_of(base)
    if directory is None or is_web(path) or not path:
        return IncludeFailure("only files can be included here")
    try:
        file = locate(call, path, directory.parent)
        return Included(file.path.as_uri(), read_text(file).text)
    except CommandError as error:
        return IncludeFailure(error.message.partition("\n")[0])


def absolute_menu(menu: Menu) -> Menu:
    """A menu whose targets no longer depend on where its file is."""
    entries = tuple(
        entry._replace(target=absolute_target(entry.target, menu.uri)) for entry in menu.entries
    )
    return menu._replace(entries=entries)


def absolute_target(target: str, base: str) -> str:
    """A link's target resolved against the file or page it stands in; its fragment stays."""
    if target.startswith(("~", "@", "#")) or "://" in target:
        return target
    path = path_of(base)
    if path is None:
        return urljoin(base, target)
    name, mark, block = target.partition("#")
    return f"{normpath(path.parent / name) if name else path}{mark}{block}"


def check_menu_is_not(document: Document, uri: str) -> None:
    """A menu file that is the document itself would never end. Raises `CommandError`."""
    if uri == document.uri:
        raise CommandError("CIRCULAR_REFERENCE", f"Circular menu/nav reference detected: {uri}")


def _menu(call: "Call", document: Document, name: str, path: str) -> Menu:
    """A menu of a local document; one whose file cannot be read is empty."""
    directory = path_of(document.uri)
    if directory is None or is_web(path):
        return Menu(name, path)
    try:
        file = locate(call, path, directory.parent)
        text = read_text(file).text
    except CommandError:
        return Menu(name, path)
    uri = file.path.as_uri()
    check_menu_is_not(document, uri)
    return absolute_menu(parse_menu(name, text, uri))


def _requirements(path: Path, document: Document) -> str | None:
    if document.requirements is not None:
        return document.requirements
    sibling = path.with_name(REQUIREMENTS_FILE)
    return REQUIREMENTS_FILE if sibling != path and sibling.is_file() else None


def _check_version(document: Document) -> None:
    if document.unsupported_version is not None:
        raise CommandError(
            "LOAD_ERROR",
            f"This document needs SFMD {document.unsupported_version}; this daemon speaks 0.1.",
        )


def _compiled(call: "Call", file: FilePath, document: Document) -> Document:
    """A document with a source directory beside it: its include lines become blocks."""
    sources = file.path.with_name(f"{file.path.name}.source")
    if not sources.is_dir():
        sources = file.path.with_suffix(".source")
        if not sources.is_dir():
            return document
    pieces: list[str] = []
    position = 0
    for directive in document.directives:
        if directive.type == "include" and directive.name:
            pieces += [
                document.source[position : directive.start],
                _block_of(call, file, sources, directive),
            ]
            position = directive.end
    pieces.append(document.source[position:])
    return parse("".join(pieces), document.uri, original=document.source)


def _block_of(call: "Call", file: FilePath, sources: Path, directive: Directive) -> str:
    name = directive.name
    part = file.path.parent / directive.path if directive.path else sources / f"{name}.md"
    located = locate(call, str(part))
    if file.path.parent not in located.path.parents:
        raise CommandError(
            "FILE_NOT_ALLOWED", f"Include leaves the document's directory: {directive.path}"
        )
    try:
        text = read_text(located).text.strip()
    except CommandError as error:
        if error.code != "NOT_FOUND":
            raise
        text = ""
    inner = f"{text}\n" if text else ""
    return f"<!-- #{name} -->\n{inner}<!-- /{name} -->\n"


__all__ = [
    "MenuEntry",
    "absolute_menu",
    "absolute_target",
    "check_menu_is_not",
    "include_from_files",
    "load_file",
]
