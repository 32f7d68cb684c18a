"""SFMD documents: text in, structure and text out. No I/O.

`parse` any text into a `Document`, `render` it for a reader, edit its source with `replace_block`,
`replace_lines` and `replace_text`, and show the change with `diff`. Parsing and rendering never
raise; edits raise a `DocumentError` that words itself.
"""

from stringd.documents.action_blocks import METHODS, Action, Field
from stringd.documents.blocks import BlockSpan, Heading, slug
from stringd.documents.diagnostics import Diagnostic
from stringd.documents.diffs import Diff, diff
from stringd.documents.directives import Include
from stringd.documents.document import (
    Document,
    EnvVariable,
    available_blocks,
    find_block,
    parse,
    parse_menu,
)
from stringd.documents.edits import (
    Replacement,
    Target,
    append_text,
    block_text,
    line_count,
    lines_text,
    parse_target,
    replace_block,
    replace_lines,
    replace_text,
    split_replacement,
)
from stringd.documents.errors import (
    AmbiguousTextError,
    BlockBrokenError,
    BlockNotFoundError,
    DocumentError,
    LineRangeError,
    LineRangeOutOfBoundsError,
    ReplacementError,
    TextNotFoundError,
)
from stringd.documents.flags import Flags, FlagWord, flags_of, is_flag, parse_flags, tokens, words
from stringd.documents.html import html_to_markdown
from stringd.documents.outline import OutlineEntry, outline
from stringd.documents.render import (
    Included,
    IncludeFailure,
    Rendered,
    Resolve,
    menu_line,
    render,
    render_text,
)
from stringd.documents.scaffold import NO_LINKS, nav_scaffold
from stringd.documents.scan import newline_of, with_newlines
from stringd.documents.shortcuts import Menu, MenuEntry, Shortcut
from stringd.documents.sources import inline_sources
from stringd.documents.views import numbered, preview

__all__ = [
    "METHODS",
    "NO_LINKS",
    "Action",
    "AmbiguousTextError",
    "BlockBrokenError",
    "BlockNotFoundError",
    "BlockSpan",
    "Diagnostic",
    "Diff",
    "Document",
    "DocumentError",
    "EnvVariable",
    "Field",
    "FlagWord",
    "Flags",
    "Heading",
    "Include",
    "IncludeFailure",
    "Included",
    "LineRangeError",
    "LineRangeOutOfBoundsError",
    "Menu",
    "MenuEntry",
    "OutlineEntry",
    "Rendered",
    "Replacement",
    "ReplacementError",
    "Resolve",
    "Shortcut",
    "Target",
    "TextNotFoundError",
    "append_text",
    "available_blocks",
    "block_text",
    "diff",
    "find_block",
    "flags_of",
    "html_to_markdown",
    "inline_sources",
    "is_flag",
    "line_count",
    "lines_text",
    "menu_line",
    "nav_scaffold",
    "newline_of",
    "numbered",
    "outline",
    "parse",
    "parse_flags",
    "parse_menu",
    "parse_target",
    "preview",
    "render",
    "render_text",
    "replace_block",
    "replace_lines",
    "replace_text",
    "slug",
    "split_replacement",
    "tokens",
    "with_newlines",
    "words",
]
