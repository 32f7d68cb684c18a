"""Documents kept in several files: includes written out as blocks when the document is loaded."""

from collections.abc import Callable

from stringd.documents.directives import Include
from stringd.documents.document import Document
from stringd.documents.scan import newline_of, with_newlines


def inline_sources(document: Document, load: Callable[[Include], str]) -> str:
    """The document's text with every include line replaced by a block that holds its file.

    `load` returns the text of the file an include means; an empty one makes an empty block.
    """
    newline = newline_of(document.source)
    pieces: list[str] = []
    position = 0
    for each in document.directives:
        if each.type != "include" or not each.name:
            continue
        body = with_newlines(load(Include(each.name, each.path)).strip(), newline)
        lines = [f"<!-- #{each.name} -->", *([body] if body else []), f"<!-- /{each.name} -->"]
        end = newline if document.source[each.end - 1] == "\n" else ""
        pieces += [document.source[position : each.start], newline.join(lines), end]
        position = each.end
    return "".join([*pieces, document.source[position:]])
