"""HTML → Markdown, for sites that serve none. The one place that knows the converters."""

import re
from typing import Final

_CHROME: Final = (
    "script",
    "style",
    "noscript",
    "iframe",
    "svg",
    "nav",
    "footer",
    "header",
    "aside",
)
_MANY_BLANKS = re.compile(r"\n{3,}")


def html_to_markdown(html: str) -> str:
    """A page's main content as Markdown; links stay as the page writes them."""
    from html_to_markdown import ConversionOptions, PreprocessingOptions, convert

    options = ConversionOptions(
        bullets="*",
        strong_em_symbol="_",
        code_block_style="backticks",
        extract_metadata=False,
        autolinks=False,
        escape_misc=True,
        preprocessing=PreprocessingOptions(enabled=False),
    )
    markdown = convert(_content(html), options).content or ""
    return _MANY_BLANKS.sub("\n\n", markdown.replace("\r\n", "\n")).strip()


def _content(html: str) -> str:
    """The inner HTML of the main part, without what is not content."""
    from selectolax.lexbor import LexborHTMLParser

    tree = LexborHTMLParser(html)
    tree.strip_tags(list(_CHROME))
    part = tree.css_first("main") or tree.css_first("article") or tree.body
    return (part.inner_html if part is not None else html) or ""
