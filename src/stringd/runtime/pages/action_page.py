"""An action's answer that is a document: how it becomes a page."""

from stringd.actions.conversion import PageLimitError, markdown_of
from stringd.actions.hosts import origin_of
from stringd.actions.provenance import WebPage
from stringd.actions.run import DocumentAnswer
from stringd.documents import parse
from stringd.runtime.errors import CommandError
from stringd.runtime.pages.web import CONVERTED, explored
from stringd.runtime.topics.location import Page


async def page_of(answer: DocumentAnswer) -> Page:
    """The page of an answer. Secrets stay out of its text and its address.

    Raises `CommandError`.
    """
    fetched = answer.fetched
    asked, final = answer.url.partition("?")[0], fetched.url.partition("?")[0]
    url = answer.mask(answer.shown_url if asked == final else fetched.url)
    text = answer.mask(fetched.text())
    provenance = WebPage(origin_of(fetched.url), fetched.public)
    if "text/html" not in fetched.content_type.lower():
        document = await explored(parse(text.removeprefix("\ufeff"), url))
        return Page(document, provenance, public=fetched.public)
    try:
        markdown = await markdown_of(text)
    except PageLimitError as error:
        raise CommandError("LOAD_ERROR", f"Failed to read {url}: {error}") from error
    document = await explored(parse(markdown, url, original=text, converted=True))
    return Page(document, provenance, notice=CONVERTED, public=fetched.public)
