"""Showing documents: loading where a session is, and rendering it for its reader."""

import asyncio
from contextlib import suppress
from typing import TYPE_CHECKING

from stringd.actions.provenance import InstalledApp, capabilities
from stringd.actions.schema import schema, signatures
from stringd.documents import Included, IncludeFailure, Resolve, available_blocks, render
from stringd.runtime.editing.paths import FilePath, locate
from stringd.runtime.editing.text_file import LARGE_FILE_BYTES, is_large
from stringd.runtime.errors import CommandError
from stringd.runtime.packages.action_lines import (
    described,
    is_mounted,
    left_out,
    mounted_lines,
    without_list,
)
from stringd.runtime.packages.mcp_app import SCHEME
from stringd.runtime.packages.mounts import open_resource
from stringd.runtime.pages.action_context import stored_names
from stringd.runtime.pages.load import include_from_files, load_file
from stringd.runtime.pages.target import WebAddress, resolve
from stringd.runtime.pages.web import included_web, load_web, reload_web, with_web_parts
from stringd.runtime.topics.location import Location, Page, is_web, path_of

if TYPE_CHECKING:
    from stringd.runtime.topics.call import Call


def current_page(call: "Call") -> Page:
    """The open document, loaded again if the daemon restarted. Raises `CommandError`."""
    location = call.session.location
    if location is None:
        raise CommandError("INVALID_TARGET", "No document open.")
    if location.page is None:
        if is_web(location.uri) or location.uri.startswith(SCHEME):
            raise CommandError(
                "LOAD_ERROR",
                f"{location.uri} was not kept while the daemon restarted.\n"
                "Recovery: /refresh loads it again.",
            )
        location.page = load_file(call, file_of(call, location), again=True)
    return location.page


async def wake(call: "Call") -> None:
    """Load the document of a restored session; commands that need it say why it is missing."""
    location = call.session.location
    if location is not None and path_of(location.uri) is not None:
        with suppress(CommandError):
            location.page = await load_local(call, file_of(call, location), again=True)


async def load_local(call: "Call", file: FilePath, *, again: bool = False) -> Page:
    """Load a local document with everything it hangs on. Raises `CommandError`."""
    if is_large(file.real):
        page = await asyncio.to_thread(load_file, call, file, again=again)
    else:
        page = load_file(call, file, again=again)
    return await with_web_parts(call, page)


async def reload(call: "Call", location: Location) -> Page:
    """Load a location's document again, from file or web. Raises `CommandError`."""
    if location.uri.startswith(SCHEME):
        return await open_resource(call, location.uri)
    if is_web(location.uri):
        return await reload_web(call, location.place)
    return await load_local(call, file_of(call, location))


async def open_app_page(call: "Call") -> Page:
    """The page of an app topic's own app, loaded without running anything.

    Raises `CommandError`.
    """
    address = resolve(call, f"app:{call.session.topic.name.partition(':')[0]}")
    if isinstance(address, WebAddress):
        page = await load_web(call, address.url, may_be_private=address.may_be_private)
    else:
        page = await load_local(call, address)
    call.session.location = Location.of(page)
    return page


def visit(call: "Call", page: Page, block: str | None) -> str:
    """Make a loaded page current, push the previous one, and render it. Raises `CommandError`."""
    if block is not None:
        check_block(call, page, block)
    return show(call, go_to(call, page, block))


async def visited(call: "Call", page: Page, block: str | None) -> str:
    """`visit`, outside the loop thread if the document is large. Raises `CommandError`."""
    if len(page.document.source) > LARGE_FILE_BYTES:
        return await asyncio.to_thread(_explore_and_visit, call, page, block)
    return visit(call, page, block)


def _explore_and_visit(call: "Call", page: Page, block: str | None) -> str:
    page.document.explore()
    return visit(call, page, block)


def go_to(call: "Call", page: Page, block: str | None) -> Location:
    """Make a loaded page current; the previous one is where `/back` leads."""
    session = call.session
    if session.location is not None:
        session.history.push(session.location)
    session.location = Location.of(page, block)
    session.directory = None
    # The reply needs it too, and a large document has a thread here.
    session.meta()
    return session.location


def action_shown(call: "Call", page: Page, block: str | None) -> str | None:
    """What `#act.name` shows: the action's flags, and what the page says it is for.

    None where that is not an action of the page, or a block of it has this name.
    """
    document = page.document
    if block is None or not block.startswith("act.") or document.has_block(block):
        return None
    action = document.actions.get(block.removeprefix("act."))
    if action is None:
        return None
    owner = page.provenance
    short = call.caller.brief and isinstance(owner, InstalledApp)
    name = f"{owner.name}.{action.id}" if short and isinstance(owner, InstalledApp) else f"/{block}"
    about = described(document).get(action.id, "")
    return f"{name}  {about}\n{schema(action)}" if about else f"{name}\n{schema(action)}"


def check_block(call: "Call", page: Page, block: str) -> None:
    """Raises `CommandError` when a page has no such block."""
    if page.document.has_block(block):
        return
    known = available_blocks(page.document, block, brief=True)
    shown = call.session.shown(page.uri)
    raise CommandError("BLOCK_NOT_FOUND", f"Block not found: #{block} in {shown}\n{known}")


async def shown(call: "Call", location: Location) -> str:
    """`show`, outside the loop thread if the document is large."""
    assert location.page is not None
    if len(location.page.document.source) > LARGE_FILE_BYTES:
        return await asyncio.to_thread(show, call, location)
    return show(call, location)


def show(call: "Call", location: Location) -> str:
    """Render a loaded location; the session remembers the shortcuts this view introduced."""
    session = call.session
    page = location.page
    assert page is not None
    rendered = render(
        page.document,
        block=location.block,
        menus=page.menus,
        include=include_resolver(call, page),
        seen_menus=session.seen_menus,
        missing_env=missing_variables(call, page),
        requirements=page.requirements,
        taken=[entry.id for menu in page.menus.values() for entry in menu.entries],
        action_lines=brief_actions(page) if call.caller.brief else None,
    )
    session.auto_shortcuts = dict(rendered.auto_shortcuts)
    session.seen_menus |= rendered.unfolded_menus
    if call.caller.brief and location.block is None and is_mounted(page.document):
        return without_list(rendered.text)
    if page.appendix and location.block is None:
        return f"{rendered.text}\n\n---\n\n{page.appendix}"
    return rendered.text


def brief_actions(page: Page) -> list[str]:
    """The actions of a page in a line each; those of an app can be called from any topic."""
    owner = page.provenance
    prefix = f"{owner.name}." if isinstance(owner, InstalledApp) else "/act."
    if is_mounted(page.document):
        rest = left_out(page.document, owner.name) if isinstance(owner, InstalledApp) else ""
        return [*mounted_lines(page.document, prefix), *filter(None, [rest])]
    return signatures(page.document.actions.values(), prefix)


def include_resolver(call: "Call", page: Page) -> Resolve:
    """How the includes of a page are found: on disk, or fetched when it was loaded."""

    def include(path: str, base: str) -> Included | IncludeFailure:
        if is_web(base) or is_web(path):
            return included_web(page, path, base)
        return include_from_files(call, path, base)

    return include


def file_of(call: "Call", location: Location) -> FilePath:
    """The file of a local location, checked like every other path. Raises `CommandError`."""
    path = path_of(location.uri) or location.uri
    return locate(call, str(path))._replace(typed=call.session.shown(location.uri))


def missing_variables(call: "Call", page: Page) -> list[str]:
    """Persistent variables the document requires and this topic cannot read."""
    wanted = page.document.requires
    if not wanted:
        return []
    if capabilities(page.provenance).names == "none":
        return []
    held = stored_names(call, page.document, page.provenance).usable
    return [name for name in wanted if name not in held]
