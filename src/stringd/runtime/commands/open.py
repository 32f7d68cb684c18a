"""`/open`, `/back`, `/refresh`, `/source`: moving between documents."""

import asyncio
from collections.abc import Awaitable
from pathlib import Path
from typing import Final

from msgspec.structs import replace

from stringd.actions.provenance import is_foreign
from stringd.documents import DocumentError, lines_text
from stringd.runtime.commands.act import has_more_to_say, with_default_action
from stringd.runtime.commands.edit import edit
from stringd.runtime.commands.edit_target import unquoted
from stringd.runtime.commands.ls import list_directory
from stringd.runtime.commands.tabs import named_topic, open_in_tab, open_topic
from stringd.runtime.editing.paths import (
    FilePath,
    is_directory,
    is_file,
    locate,
)
from stringd.runtime.editing.text_file import LARGE_FILE_BYTES, is_large
from stringd.runtime.errors import CommandError
from stringd.runtime.packages.mcp_app import SCHEME
from stringd.runtime.packages.mounts import open_resource
from stringd.runtime.pages.load import load_file
from stringd.runtime.pages.shortcuts import (
    known_shortcuts,
    owner_of_shortcut,
    resolve_shortcut,
)
from stringd.runtime.pages.show import (
    action_shown,
    check_block,
    current_page,
    go_to,
    reload,
    show,
    shown,
    visit,
    visited,
)
from stringd.runtime.pages.target import Destination, WebAddress, destination
from stringd.runtime.pages.web import load_web, may_have_web_parts, with_web_parts
from stringd.runtime.topics.call import Call
from stringd.runtime.topics.location import Location, Page, is_web
from stringd.wire.result import Result

_SHORTCUTS_SHOWN: Final = 8
_IMAGES: Final = {
    ".png": "image/png",
    ".jpg": "image/jpeg",
    ".jpeg": "image/jpeg",
    ".gif": "image/gif",
    ".webp": "image/webp",
    ".avif": "image/avif",
    ".bmp": "image/bmp",
    ".tif": "image/tiff",
    ".tiff": "image/tiff",
    ".ico": "image/x-icon",
}
_USAGE: Final = """Usage: /open <uri | path | file.md#block | @shortcut>
Examples:
  /open README.md
  /open notes/plan.md#goals
  /open https://example.com/docs
  /open @docs"""


def open_(call: Call) -> Result | Awaitable[Result]:
    """Open a document, a block of one, an app, a page or a directory."""
    target = unquoted(call.argument.strip())
    if not target and call.session.topic.type == "app":
        target = f"app:{call.session.topic.name.partition(':')[0]}"
    if not target:
        raise CommandError("INVALID_TARGET", _USAGE)
    switch, _, rest = target.partition(" ")
    if switch == "--edit":
        return edit(replace(call, line=replace(call.line, argument=rest.strip(), body=None)))
    if switch == "--tab":
        return open_in_tab(call, rest, _open_at)
    topic = named_topic(call, target)
    if topic is not None:
        return open_topic(call, topic, open_)
    resource = _resource(call, target)
    if resource is not None:
        return _open_resource(call, resource)
    return _open_at(call, destination(call, target))


def _open_at(call: Call, going: Destination) -> Result | Awaitable[Result]:
    if going.address is None:
        return _open_here(call, going)
    if isinstance(going.address, WebAddress):
        return _open_web(call, going, going.address)
    return _open_local(call, going, going.address)


async def back(call: Call) -> Result:
    """Return to the previous page; if it cannot be loaded again, as it was remembered."""
    session = call.session
    if not session.history:
        raise CommandError("INVALID_TARGET", "No previous page in history.")
    place = session.history.last
    try:
        page = await reload(call, place)
    except CommandError as error:
        if place.page is None:
            raise _gone(call, error) from error
        page = place.page
    session.history.pop()
    session.location = Location.of(page, _existing_block(page, place.block))
    session.directory = None
    return await _page_result(call, f"Back to {session.shown(page.uri)}")


def _gone(call: Call, error: CommandError) -> CommandError:
    """Why there is no way back; what is not there any more must not block the way for good."""
    if error.code != "NOT_FOUND":
        return error
    call.session.history.pop()
    return CommandError(
        error.code,
        f"{error.message}\nIt is no longer part of the history; /back leads to the page before it.",
    )


async def refresh(call: Call) -> Result:
    """Load the current document again; if that fails the old one stays."""
    session = call.session
    location = session.location
    if location is None:
        raise CommandError("INVALID_TARGET", "No document open.")
    page = await reload(call, location)
    session.location = Location.of(page, _existing_block(page, location.block))
    return await _page_result(call, f"Refreshed {session.shown(page.uri)}")


def source(call: Call) -> Result:
    """The source of the current document, before any conversion."""
    document = current_page(call).document
    return Result.page(f"[source: {document.uri}]", document.original)


def _resource(call: Call, target: str) -> str | None:
    """The address of a mounted server's resource, if the target is one or stands for one.

    Raises `CommandError` for a link that may not lead there.
    """
    if not target.startswith("@"):
        return target if target.startswith(SCHEME) else None
    named = resolve_shortcut(call.session, target[1:])
    if not isinstance(named, str) or not named.startswith(SCHEME):
        return None
    page = current_page(call)
    left = is_foreign(owner_of_shortcut(call.session, target[1:]))
    if left or is_web(page.uri) or page.is_of_web_part(named):
        raise CommandError(
            "FILE_NOT_ALLOWED", f"A web page may link only to web addresses, not to {named}"
        )
    if page.uri.startswith(SCHEME) and _server(page.uri) != _server(named):
        raise CommandError(
            "FILE_NOT_ALLOWED", f"A server's resource may link only to its own, not to {named}"
        )
    return named


def _server(uri: str) -> str:
    return uri.removeprefix(SCHEME).partition("/")[0]


async def _open_resource(call: Call, uri: str) -> Result:
    page = await open_resource(call, uri)
    return Result.page(f"Opened {uri}", await visited(call, page, None))


def _open_here(call: Call, going: Destination) -> Result:
    """A part of the current document: the view changes, the history does not."""
    page = current_page(call)
    block = going.block
    message = f"Opened {call.session.shown(page.uri)}{going.part}"
    if going.lines is not None:
        return Result.page(message, _lines(page, going, call.session.shown(page.uri)))
    action = action_shown(call, page, block)
    if action is not None:
        return Result.page(message, action)
    if block is not None:
        check_block(call, page, block)
    call.session.location = Location.of(page, block)
    return Result.page(message, show(call, call.session.location))


def _lines(page: Page, going: Destination, path: str) -> str:
    """Lines of a document's source, exactly. Raises `CommandError`."""
    document = page.document
    first, last = going.lines or (1, 1)
    try:
        text = document.source if document.converted else document.original
        return lines_text(text, first, last).replace("\r\n", "\n")
    except DocumentError as error:
        raise CommandError(error.code, error.message(path)) from error


def _open_local(call: Call, going: Destination, file: FilePath) -> Result | Awaitable[Result]:
    if is_directory(file.real):
        index = file.path / "string.md"
        if not is_file(index):
            listing = list_directory(call, file, going.typed)
            call.session.directory = file.path
            return listing
        file = locate(call, str(index))
    kind = _IMAGES.get(file.path.suffix.lower())
    if kind is not None and is_file(file.real):
        return _image(call, file, kind)
    if is_large(file.real):
        return _open_large(call, going, file)
    page = _load(call, going, file)
    if may_have_web_parts(page):
        return _open_with_web_parts(call, going, page)
    result = _opened(call, page, going)
    if not going.part and has_more_to_say(page):
        return with_default_action(call, result)
    return result


async def _open_with_web_parts(call: Call, going: Destination, page: Page) -> Result:
    page = await with_web_parts(call, page)
    result = await asyncio.to_thread(_opened, call, page, going)
    return result if going.part else await with_default_action(call, result)


async def _open_large(call: Call, going: Destination, file: FilePath) -> Result:
    page, result = await asyncio.to_thread(_load_and_open, call, going, file)
    if result is None:
        return await _open_with_web_parts(call, going, page)
    return result if going.part else await with_default_action(call, result)


def _load_and_open(call: Call, going: Destination, file: FilePath) -> tuple[Page, Result | None]:
    """The page of a file and its view, in one visit to a thread; no view if it needs the web."""
    page = _load(call, going, file)
    return page, None if may_have_web_parts(page) else _opened(call, page, going)


async def _open_web(call: Call, going: Destination, address: WebAddress) -> Result:
    try:
        page = await load_web(
            call,
            address.url,
            may_be_private=address.may_be_private,
            manifest=address.manifest,
        )
    except CommandError as error:
        if error.code == "NOT_FOUND":
            raise CommandError(error.code, f"{error.message}\n{_url_hint(call)}") from error
        raise
    if len(page.document.source) > LARGE_FILE_BYTES or page.includes:
        result = await asyncio.to_thread(_opened, call, page, going)
    else:
        result = _opened(call, page, going)
    return result if going.part else await with_default_action(call, result)


def _opened(call: Call, page: Page, going: Destination) -> Result:
    action = action_shown(call, page, going.block)
    if action is not None:
        text = action
        go_to(call, page, None)
    elif going.lines is None:
        text = visit(call, page, going.block)
    else:
        text = _lines(page, going, going.typed)
        go_to(call, page, None)
        call.session.auto_shortcuts = {}
    message = f"Opened {call.session.shown(page.uri)}{going.part}"
    return Result.page(f"{message}\n{page.notice}" if page.notice else message, text)


async def _page_result(call: Call, message: str) -> Result:
    location = call.session.location
    assert location is not None
    result = Result.page(message, await shown(call, location))
    return result if location.block else await with_default_action(call, result)


def _load(call: Call, going: Destination, file: FilePath) -> Page:
    try:
        return load_file(call, file._replace(typed=going.typed))
    except CommandError as error:
        if error.code != "NOT_FOUND":
            raise
        hint = "Recovery: Use /ls to list available files, or check the path spelling."
        raise CommandError("NOT_FOUND", f"{error.message}\n{hint}") from error


def _url_hint(call: Call) -> str:
    names = [f"@{name}" for name in known_shortcuts(call.session)]
    if not names:
        return (
            "Recovery: Verify the URL spelling, scheme, and path. "
            "Use /info to see shortcuts on the current page."
        )
    more = len(names) - _SHORTCUTS_SHOWN
    shown = ", ".join(names[:_SHORTCUTS_SHOWN])
    rest = f", +{more} more (run /info)" if more > 0 else ""
    return f"Recovery: Verify the URL, or use a shortcut from the current page: {shown}{rest}"


def _existing_block(page: Page, block: str | None) -> str | None:
    return block if block is not None and page.document.has_block(block) else None


def _image(call: Call, file: FilePath, kind: str) -> Result:
    """An image is described, not shown; the current document stays."""
    shown = call.session.shown(file.path.as_uri())
    size = _size(file.real)
    return Result.page(f"Opened {shown}", f"path: {file.path}\ntype: {kind}\nsize: {size} bytes")


def _size(path: Path) -> int:
    try:
        return path.stat().st_size
    except OSError:
        return 0
