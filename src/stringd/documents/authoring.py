"""What authors need beyond reading: mistakes only they can make, and the files of a document.

A document `notes.md` may keep blocks as files in `notes.md.source/`, named by includes without
a path.
"""

from collections.abc import Iterable, Iterator

from stringd.documents.action_blocks import action_info
from stringd.documents.diagnostics import Diagnostic, Finding, diagnose
from stringd.documents.document import Document
from stringd.documents.edits import append_text
from stringd.documents.scan import newline_of
from stringd.formats.front_matter import header_bounds
from stringd.formats.places import SourceSyntaxError
from stringd.formats.yaml12 import parse_yaml


def author_diagnostics(document: Document) -> tuple[Diagnostic, ...]:
    """What parsing reports, and names that stand for two things or for none, in document order."""
    found = diagnose(
        document.source,
        (*_broken_header(document), *_named_twice(document), *_named_in_vain(document)),
    )
    return tuple(sorted((*document.diagnostics, *found)))


def source_names(document: Document) -> set[str]:
    """Names, without ending, of the source files a document shows or has taken in as blocks."""
    paths = (each.file or f"{each.id}.md" for each in document.includes)
    return {*document.blocks, *(path.rpartition("/")[2].removesuffix(".md") for path in paths)}


def with_includes(source: str, names: Iterable[str]) -> str:
    """The text with an include line for each source file, at its end."""
    newline = newline_of(source)
    for name in names:
        source = append_text(source, f"[!include:{name}](){newline}")
    return source


def _broken_header(document: Document) -> Iterator[Finding]:
    """Reading is lenient: what is not YAML in a header is passed over, so its author is told."""
    start, end, _ = header_bounds(document.source)
    text = document.source[start:end]
    try:
        parse_yaml(text)
    except SourceSyntaxError as error:
        lines = text.split("\n")[: error.place.line - 1] if error.place else []
        at = min(start + sum(len(line) + 1 for line in lines), max(end - 1, start))
        yield Finding(at, "INVALID_FRONTMATTER", error.problem)


def _named_twice(document: Document) -> Iterator[Finding]:
    seen: set[tuple[str, str]] = set()
    for each in document.directives:
        if not each.name or each.type == "requirements":
            continue
        if (each.type, each.name) in seen:
            code = "DUPLICATE_INCLUDE_ID" if each.type == "include" else "DUPLICATE_MENU_NAME"
            text = f"[!{each.written}:{each.name}] already declared in this document"
            yield Finding(each.start, code, text)
        elif each.type == "include" and each.name in document.blocks:
            text = f"[!include:{each.name}] has the id of a block of this document"
            yield Finding(each.start, "BLOCK_ID_COLLISION", text)
        seen.add((each.type, each.name))


def _named_in_vain(document: Document) -> Iterator[Finding]:
    fences = [(each, info) for each in document.fences.all if (info := action_info(each.info))]
    ids = {info.id for _, info in fences if info.template is None}
    for fence, info in fences:
        if info.template and info.id not in ids:
            text = f"act.{info.id}.{info.template} belongs to no action of this document"
            yield Finding(fence.start, "UNKNOWN_ACTION", text)
    default = document.default_action
    if default is not None and default not in ids:
        yield Finding(0, "UNKNOWN_ACTION", f"default: {default} is not an action of this document")
