"""Web pages of others as text: small ones here, others in a process that can be ended."""

from typing import Final

from stringd.documents.html import html_to_markdown, html_to_text
from stringd.system.workers import WorkerError, WorkerTask, await_answer

SMALL_PAGE: Final = 16 * 1024
"""Characters; the worst page of this size takes some 20 ms, and no thread runs beside it."""
CONVERSION_SECONDS: Final = 10.0
_MODULE: Final = "stringd.documents.html"
_TO_MARKDOWN: Final = WorkerTask(_MODULE, "html_to_markdown", CONVERSION_SECONDS)
_TO_TEXT: Final = WorkerTask(_MODULE, "html_to_text", CONVERSION_SECONDS)


class PageLimitError(Exception):
    """A page cannot be converted within the limits; the text says why."""


async def markdown_of(html: str) -> str:
    """A page as Markdown. Raises `PageLimitError`."""
    return html_to_markdown(html) if len(html) <= SMALL_PAGE else await _away(_TO_MARKDOWN, html)


async def text_of_page(html: str) -> str:
    """A page's bare text. Raises `PageLimitError`."""
    return html_to_text(html) if len(html) <= SMALL_PAGE else await _away(_TO_TEXT, html)


async def _away(task: WorkerTask, html: str) -> str:
    try:
        return await await_answer(task, html)
    except WorkerError as error:
        raise PageLimitError(f"the page cannot be converted: {error}") from None
