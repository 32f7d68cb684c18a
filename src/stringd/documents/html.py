"""HTML → Markdown, for sites that serve none. The one place that knows the converters.

The page's text is escaped here, node by node, and emphasis and rules are written here too: the
converter would escape every punctuation mark, and an agent pays for each of them.
"""

import re
from typing import TYPE_CHECKING, Final

from stringd.documents.addresses import joined
from stringd.documents.disarm import disarmed

if TYPE_CHECKING:
    from collections.abc import Iterator

    from selectolax.lexbor import LexborHTMLParser, LexborNode

# As deep as browsers go. Parsers walk up from every block, so a deep page could take hours.
MAX_DEPTH: Final = 512
# Tags that lay out nothing are often left open, and cost less.
_MAX_INLINE: Final = 1000

# Stand for `\\` and for a rule until the conversion is over: it would escape the real ones again.
_BACKSLASH: Final = "\ue000"
_RULE: Final = "\ue001"

_CHROME: Final = [
    *("script", "style", "noscript", "iframe", "svg"),
    *("nav", "footer", "header", "aside"),
]
_NESTING = re.compile(
    r"(?i)<(/?)(?:(address|article|aside|blockquote|center|details|dialog|dir|div|dl|fieldset"
    r"|figcaption|figure|footer|form|header|hgroup|listing|main|menu|nav|ol|optgroup|pre|rp|rt"
    r"|search|section|summary|table|ul|xmp)"
    r"|a|abbr|b|big|cite|code|em|font|i|ins|del|kbd|label|mark|q|s|samp|small|span|strike|strong"
    r"|sub|sup|tt|u|var)(?=[\s/>])"
)
_TAG = re.compile(r"<[^<>]*>")
_MANY_BLANKS = re.compile(r"\n{3,}")
_ALWAYS_SPECIAL: Final = str.maketrans({char: _BACKSLASH + char for char in "\\*`[]_"})
_SPECIAL_AT_START = re.compile(r"(\s*)(?:(-|\+(?= )|=+|#{1,6}(?= )|~~~|>|<!--)|(\d+)(?=\. ))")
_SPACES = re.compile(r"[ \t\r\n\f]+")
_NOSCRIPT = re.compile(r"<noscript\b[^<>]*>", re.IGNORECASE)
_NOSCRIPT_END = re.compile(r"</noscript\b[^<>]*>", re.IGNORECASE)
_VERBATIM: Final = {"pre", "code", "kbd", "samp"}


def html_to_markdown(html: str) -> str:
    """A page's main content as Markdown; links stay as the page writes them."""
    from html_to_markdown import (
        ConversionError,
        ConversionOptions,
        PreprocessingOptions,
        convert,
    )

    options = ConversionOptions(
        bullets="*",
        code_block_style="backticks",
        highlight_style="none",
        extract_metadata=False,
        autolinks=False,
        compact_tables=True,
        inline_data_media="alt_text_only",
        preprocessing=PreprocessingOptions(enabled=False),
    )
    html = _without_noscript(html.replace(_BACKSLASH, "").replace(_RULE, ""))
    if too_deep(html):
        return disarmed(_TAG.sub(" ", html).strip())
    try:
        markdown = convert(_content(html), options).content or ""
    except ConversionError:  # better plain text than no page
        return disarmed(_TAG.sub(" ", html).strip())
    markdown = markdown.replace("\r\n", "\n")
    markdown = markdown.replace(_BACKSLASH, "\\").replace(_RULE, "\n\n* * *\n\n")
    return disarmed(_MANY_BLANKS.sub("\n\n", markdown).strip())


def _without_noscript(html: str) -> str:
    """The parser takes what is in a `<noscript>` of the head for the start of the body."""
    before, *pieces = _NOSCRIPT.split(html)
    ends = ((piece, _NOSCRIPT_END.search(piece)) for piece in pieces)
    return before + "".join(piece[end.end() :] if end else piece for piece, end in ends)


def too_deep(html: str) -> bool:
    """Whether a page is nested so deep that no parser should be given it."""
    blocks = inline = 0
    for tag in _NESTING.finditer(html):
        step = -1 if tag[1] else 1
        if tag[2]:
            blocks = max(0, blocks + step)
        else:
            inline = max(0, inline + step)
        if blocks > MAX_DEPTH or inline > _MAX_INLINE:
            return True
    return False


def html_to_text(html: str) -> str:
    """A page's text, one line for each piece of it."""
    from selectolax.lexbor import LexborHTMLParser

    tree = LexborHTMLParser(html.encode("utf-8", "replace"))
    tree.strip_tags(["script", "style", "noscript", "template"])
    body = tree.body
    lines = (body.text(separator="\n") if body else "").splitlines()
    return "\n".join(line.strip() for line in lines if line.strip())


def _content(html: str) -> str:
    """The inner HTML of the main part, without what is not content."""
    from selectolax.lexbor import LexborHTMLParser

    tree = LexborHTMLParser(html.encode("utf-8", "replace"))
    parts = map(tree.css_first, ("main", "[role=main]", "article", "body"))
    part = next(filter(None, parts), None)
    if part is None:
        return ""
    part.strip_tags(_CHROME)
    _follow_base(tree, part)
    _free_headings(part)
    _name_links(part)
    _plain_code(part)
    _escape_text(part)
    _drop_action_languages(part)
    _write_marks(part)
    return part.inner_html or ""


def _follow_base(tree: "LexborHTMLParser", part: "LexborNode") -> None:
    """Links of a page that names another place to start from lead on from there."""
    base = tree.css_first("base[href]")
    start = (base.attributes.get("href") or "").strip() if base is not None else ""
    for name in ("href", "src") if start else ():
        for node in part.css(f"[{name}]"):
            target = node.attributes.get(name)
            # A fragment stays within the page, wherever its links start.
            if target and not target.startswith("#"):
                node.attrs[name] = joined(start, target)


def _free_headings(part: "LexborNode") -> None:
    """A heading that links to itself is addressed by its words; the link says nothing more."""
    for link in part.css("h1 a, h2 a, h3 a, h4 a, h5 a, h6 a"):
        if (link.attributes.get("href") or "").startswith("#"):
            if any(char.isalnum() for char in link.text()):
                link.unwrap()
            else:
                link.decompose()


def _name_links(part: "LexborNode") -> None:
    """A link that was an icon is called what its label says."""
    for link in part.css("a[href]"):
        if link.text().strip() or link.css_first("img") is not None:
            continue
        name = link.attributes.get("aria-label") or link.attributes.get("title")
        if name:
            link.insert_child(name)
        else:
            link.decompose()


def _plain_code(part: "LexborNode") -> None:
    """Code is shown letter by letter, so a mark in it would be taken for part of it."""
    emphasised = (f"{tag} {mark}" for tag in sorted(_VERBATIM) for mark in ("em", "i"))
    for node in part.css(", ".join(("pre a", *emphasised))):
        node.unwrap()


def _escape_text(part: "LexborNode") -> None:
    for node in list(_prose(part)):
        text = node.text_content
        if text and not text.isspace():
            escaped = _escaped(text)
            if escaped != text:
                node.replace_with(escaped)


def _prose(part: "LexborNode") -> "Iterator[LexborNode]":
    """The text nodes that are not shown letter by letter, in any order."""
    waiting = [part]
    while waiting:
        for node in waiting.pop().iter(include_text=True):
            if node.tag == "-text":
                yield node
            elif node.tag not in _VERBATIM:
                waiting.append(node)


def _escaped(text: str) -> str:
    # A line break in the source is a space to readers; kept, it could start a heading or a list.
    text = _SPACES.sub(" ", text)
    text = text.translate(_ALWAYS_SPECIAL)
    start = _SPECIAL_AT_START.match(text)
    if start is None:
        return text
    if start[3]:
        return text[: start.end()] + _BACKSLASH + text[start.end() :]
    return start[1] + _BACKSLASH + text[start.end(1) :]


def _drop_action_languages(part: "LexborNode") -> None:
    """`class="language-act.x"` would make a code sample an action of the page."""
    for code in part.css("pre, code"):
        if "act." in (code.attributes.get("class") or ""):
            del code.attrs["class"]


def _trim(node: "LexborNode") -> None:
    """Take the spaces off both ends of what a node holds."""
    first: LexborNode | None = node
    while first is not None and first.tag != "-text":
        first = first.first_child
    if first is not None:
        first.replace_with((first.text_content or "").lstrip())
    last: LexborNode | None = node
    while last is not None and last.tag != "-text":
        last = last.last_child
    if last is not None:
        last.replace_with((last.text_content or "").rstrip())


def _write_marks(part: "LexborNode") -> None:
    for rule in part.css("hr"):
        rule.replace_with(_RULE)
    for inner in part.css("em em, em i, i em, i i"):
        inner.unwrap()
    for emphasis in part.css("em, i"):
        text = emphasis.text()
        if text.strip():
            # A mark beside a space marks nothing, so spaces go outside.
            emphasis.insert_before("_" if text[0] == text.lstrip()[0] else " _")
            emphasis.insert_after("_" if text[-1] == text.rstrip()[-1] else "_ ")
            if text != text.strip():
                _trim(emphasis)
    part.unwrap_tags(["em", "i"])
