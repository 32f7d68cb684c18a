"""Looking at the document of a topic without opening it: nothing of the topic changes."""

import asyncio
from typing import TYPE_CHECKING

from stringd.documents import render
from stringd.runtime.editing.text_file import LARGE_FILE_BYTES, is_large
from stringd.runtime.pages.load import load_file
from stringd.runtime.pages.show import file_of, include_resolver
from stringd.runtime.topics.location import Page, path_of

if TYPE_CHECKING:
    from stringd.runtime.topics.call import Call
    from stringd.runtime.topics.location import Location


async def peek(call: "Call", location: "Location") -> Page | None:
    """The document of a location. Raises `CommandError`.

    After a restart a file is read for this look alone; None for what would have to be fetched.
    """
    if location.page is not None or path_of(location.uri) is None:
        return location.page
    file = file_of(call, location)
    if is_large(file.real):
        return await asyncio.to_thread(load_file, call, file, again=True, make=False)
    return load_file(call, file, again=True, make=False)


async def read(call: "Call", page: Page, block: str | None) -> str:
    """A page or a block of it as Markdown, as its reader sees it."""
    if len(page.document.source) > LARGE_FILE_BYTES:
        return await asyncio.to_thread(_read, call, page, block)
    return _read(call, page, block)


def _read(call: "Call", page: Page, block: str | None) -> str:
    return render(
        page.document,
        block=block,
        menus=page.menus,
        include=include_resolver(call, page),
        taken=[entry.id for menu in page.menus.values() for entry in menu.entries],
        hints=False,
    ).text
