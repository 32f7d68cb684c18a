"""Answers that are not streams: a server that fails politely, or cannot stream, says so in JSON.

The libraries look for events, find none and lose what was said.
"""

import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Final

import httpx2

# Other names are given to streams by servers that do not care.
_NO_STREAMS: Final = ("application/json", "text/html")
_EVENTS: Final = (b"data:", b"event:", b":")
_MAX_SHOWN: Final = 300


class NoStreamError(Exception):
    """What came instead of a stream; the text is the server's own, cut."""


async def want_stream(response: httpx2.Response) -> None:
    """A hook for clients that only ever ask for streams. Raises `NoStreamError`."""
    kind = response.headers.get("content-type", "")
    if response.is_success and kind.startswith(_NO_STREAMS):
        content = await response.aread()
        if not content.lstrip().startswith(_EVENTS):
            raise NoStreamError(_said(content))


def _said(content: bytes) -> str:
    text = content.decode("utf-8", "replace").strip()
    try:
        found = json.loads(text)
        error = found.get("error", found)
        text = str(error.get("message") or text) if isinstance(error, dict) else str(error)
    except (ValueError, AttributeError):
        pass
    return text if len(text) <= _MAX_SHOWN else text[:_MAX_SHOWN] + "…"


@asynccontextmanager
async def plain_no_stream() -> AsyncIterator[None]:
    """Raises `NoStreamError` where a library raised something of its own from it."""
    try:
        yield
    except Exception as error:
        cause: BaseException | None = error
        while cause is not None and not isinstance(cause, NoStreamError):
            cause = cause.__cause__ or cause.__context__
        if cause is not None:
            raise cause from None
        raise
