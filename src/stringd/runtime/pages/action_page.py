"""An action's answer that is a document: how it becomes a page."""

import asyncio
from typing import Final

from stringd.actions.hosts import origin_of
from stringd.actions.provenance import WebPage
from stringd.actions.run import DocumentAnswer
from stringd.documents import html_to_markdown, parse
from stringd.runtime.pages.web import CONVERTED
from stringd.runtime.topics.location import Page

LARGE_ANSWER: Final = 256 * 1024
"""HTML above this is converted outside the loop thread."""


async def page_of(answer: DocumentAnswer) -> Page:
    """The page of an answer. Secrets stay out of its text and its address."""
    fetched = answer.fetched
    asked, final = answer.url.partition("?")[0], fetched.url.partition("?")[0]
    url = answer.mask(answer.shown_url if asked == final else fetched.url)
    text = answer.mask(fetched.text())
    provenance = WebPage(origin_of(fetched.url), fetched.public)
    if "text/html" not in fetched.content_type.lower():
        return Page(parse(text.removeprefix("\ufeff"), url), provenance, public=fetched.public)
    if len(text) > LARGE_ANSWER:
        markdown = await asyncio.to_thread(html_to_markdown, text)
    else:
        markdown = html_to_markdown(text)
    document = parse(markdown, url, original=text, converted=True)
    return Page(document, provenance, notice=CONVERTED, public=fetched.public)
