"""Showing documents: loading where a session stands, and rendering it for its reader."""

from contextlib import suppress
from typing import TYPE_CHECKING

from stringd.documents import Included, IncludeFailure, render
from stringd.runtime import environment
from stringd.runtime.errors import CommandError
from stringd.runtime.loading import include_from_files, load_file
from stringd.runtime.page import Location, Page, is_web
from stringd.runtime.paths import locate
from stringd.runtime.web import included_web, load_web

if TYPE_CHECKING:
    from stringd.runtime.commands.call import Call


def current_page(call: "Call") -> Page:
    """The open document, loaded again if the daemon restarted. Raises `CommandError`."""
    location = call.session.location
    if location is None:
        raise CommandError("INVALID_TARGET", "No document open.")
    if location.page is None:
        location.page = load_file(call, locate(call, location.uri))
    return location.page


def wake(call: "Call") -> None:
    """Load the document of a restored session; commands that need it say why it is missing."""
    with suppress(CommandError):
        current_page(call)


async def reload(call: "Call", location: Location) -> Page:
    """Load a location's document anew, from file or web. Raises `CommandError`."""
    if is_web(location.uri):
        known = location.page
        return await load_web(call, location.uri, may_be_private=known is None or not known.public)
    return load_file(call, locate(call, location.uri))


def show(call: "Call", location: Location) -> str:
    """Render a loaded location; the session remembers the shortcuts this view introduced."""
    session = call.session
    page = location.page
    assert page is not None
    document = page.document

    def include(path: str, base: str) -> Included | IncludeFailure:
        if is_web(base):
            return included_web(page, path, base)
        return include_from_files(call, path, base)

    rendered = render(
        document,
        block=location.block,
        menus=page.menus,
        include=include,
        seen_menus=session.seen_menus,
        missing_env=missing_variables(call, page),
        requirements=page.requirements,
        taken=[entry.id for menu in page.menus.values() for entry in menu.entries],
    )
    session.auto_shortcuts = dict(rendered.auto_shortcuts)
    session.seen_menus |= rendered.unfolded_menus
    if page.appendix and location.block is None:
        return f"{rendered.text}\n\n---\n\n{page.appendix}"
    return rendered.text


def missing_variables(call: "Call", page: Page) -> list[str]:
    """Persistent variables the document requires and this topic cannot read."""
    wanted = page.document.requires
    if not wanted:
        return []
    held = environment.visible(call.session.user.home, call.session.topic)
    return [name for name in wanted if name not in held]
