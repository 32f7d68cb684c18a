"""`/outline`: the headings and blocks of a document, with their lines and ids."""

import asyncio

from stringd.documents import Document, outline
from stringd.runtime.commands.edit_target import unquoted
from stringd.runtime.editing.paths import locate_named
from stringd.runtime.pages.load import load_file
from stringd.runtime.pages.show import current_page
from stringd.runtime.topics.call import Call
from stringd.wire.result import Result

MAX_ENTRIES = 500


async def outline_(call: Call) -> Result:
    """What `/open <path>#<id>` can show of the open document, or of the file that is named."""
    typed = unquoted(call.argument.strip())
    if typed:
        file = locate_named(call, typed)
        page = await asyncio.to_thread(load_file, call, file, make=False)
    else:
        page = current_page(call)
        typed = call.session.shown(page.uri)
    return Result.page(f"Outline of {typed}", await asyncio.to_thread(_rows, page.document))


def _rows(document: Document) -> str:
    entries = outline(document)
    if not entries:
        return "(no headings and no blocks)"
    rows = []
    line, position = 1, 0
    for entry in entries[:MAX_ENTRIES]:
        if entry.start >= position:
            line += document.source.count("\n", position, entry.start)
            position = entry.start
            where = f"L{line}"
        else:
            where = "-"
        indent = "  " * max(entry.level - 1, 0)
        title = f"{entry.title}  " if entry.title else ""
        rows.append(f"{where:<6}{indent}{title}#{entry.id}")
    if len(entries) > MAX_ENTRIES:
        rows.append(f"(+{len(entries) - MAX_ENTRIES} more; /find <text> searches the document)")
    return "\n".join(rows)
