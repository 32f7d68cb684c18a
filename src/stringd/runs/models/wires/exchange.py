"""One exchange with a provider over HTTP: its stream as our events, its failures as sentences."""

import asyncio
import re
from collections.abc import AsyncGenerator, Mapping
from contextlib import aclosing
from typing import Any, Final

import msgspec

from stringd.net.fetch import FetchError
from stringd.net.streams import StreamClient, StreamedAnswer
from stringd.runs.errors import ModelError
from stringd.runs.models.port import ModelEvent, ModelRequest, Started, TextDelta
from stringd.runs.models.wires.wire import CutError, EventReader, SaidError, Wire
from stringd.wire.sse import SseReader

_MAX_REASON: Final = 1000
_MAX_SHOWN: Final = 300
# Other names are given to streams by servers that do not care.
_NO_STREAMS: Final = ("application/json", "text/html")
_EVENTS: Final = (b"data:", b"event:", b"id:", b":")
# An answer that has its end may be followed by the tokens it took.
_CLOSING_SECONDS: Final = 5.0
# A body read to its end lets the connection be used again.
_CLOSED_SECONDS: Final = 1.0


class ProviderFailure(Exception):  # noqa: N818  # becomes a retry or a ModelError
    """The provider answered with an error, or not at all. `status` is None without an answer."""

    def __init__(
        self, message: str, status: int | None, headers: Mapping[str, str] | None = None
    ) -> None:
        super().__init__(message)
        self.status = status
        self.headers = headers


async def exchange(
    client: StreamClient,
    wire: Wire,
    request: ModelRequest,
    options: Mapping[str, Any],
    name: str,
) -> AsyncGenerator[ModelEvent, None]:
    """Ask once. Raises `ProviderFailure` before anything has arrived, `ModelError` after."""
    heard = _Heard(name)
    try:
        body = wire.body(request, snaked(options))
        async with client.post(wire.url, wire.headers, body) as answer:
            first = await _first(answer, name)
            async with aclosing(_events(answer, first, wire.reader())) as events:
                async for event in events:
                    for each in heard.noted(event):
                        yield each
    except FetchError as error:
        lead = "The answer broke off" if heard.began else f"{name} could not be reached"
        raise heard.failure(f"{lead}: {_cut(str(error), _MAX_REASON)}", None) from error
    except CutError:
        raise heard.failure("The answer broke off before its end", None) from None
    except SaidError as error:
        text = f"{name} answered with an error: {_cut(str(error), _MAX_REASON)}"
        raise heard.failure(text, error.status) from None
    except (ValueError, TypeError, LookupError, AttributeError) as error:
        why = _cut(str(error) or type(error).__name__, _MAX_REASON)
        raise heard.failure(f"{name} gave an answer that makes no sense: {why}", 0) from error


async def _first(answer: StreamedAnswer, name: str) -> bytes:
    """What was read to see that the answer is a stream. Raises `ProviderFailure`."""
    if not 200 <= answer.status < 300:
        said = _said(await answer.whole())
        text = f"{name} answered {answer.status}: {_cut(said, _MAX_REASON)}".removesuffix(": ")
        raise ProviderFailure(text, answer.status, answer.headers)
    if not answer.content_type.startswith(_NO_STREAMS):
        return b""
    content = await answer.whole()
    if not content.lstrip().startswith(_EVENTS):
        said = _cut(_said(content), _MAX_SHOWN)
        raise ProviderFailure(f"{name} answered without a stream: {said}", 0)
    return content


async def _events(
    answer: StreamedAnswer, first: bytes, reader: EventReader
) -> AsyncGenerator[ModelEvent, None]:
    sse = SseReader()
    async with aclosing(_pieces(answer, first, reader)) as pieces:
        async for piece in pieces:
            for _, data in sse.feed(piece):
                if reader.closed:
                    break
                for event in reader.take(data):
                    yield event
    for event in reader.end():
        yield event


async def _pieces(
    answer: StreamedAnswer, first: bytes, reader: EventReader
) -> AsyncGenerator[bytes, None]:
    """The body, until it ends or the answer is complete and nothing follows soon."""
    if first:
        yield first
    else:
        async with aclosing(answer.pieces()) as pieces:
            while True:
                patience = _CLOSED_SECONDS if reader.closed else _CLOSING_SECONDS
                try:
                    async with asyncio.timeout(patience if reader.closing else None):
                        piece = await anext(pieces)
                except StopAsyncIteration:
                    break
                except TimeoutError:
                    return
                yield piece
    # The last event counts also without the empty line behind it.
    yield b"\n\n"


class _Heard:
    """What has arrived of an answer."""

    def __init__(self, name: str) -> None:
        self._name = name
        self._characters = 0
        self.began = False

    def noted(self, event: ModelEvent) -> tuple[ModelEvent, ...]:
        if isinstance(event, TextDelta):
            self._characters += len(event.text)
        began, self.began = self.began, True
        if isinstance(event, Started):
            return () if began else (event,)
        return (event,) if began else (Started(), event)

    def failure(self, message: str, status: int | None) -> Exception:
        """Before the first event another try costs nothing; after it the run must end here."""
        if not self.began:
            return ProviderFailure(message, status)
        lead = "" if message.startswith(self._name) else f"{self._name}: "
        return ModelError(f"{lead}{message} (after {self._characters} characters of text)")


def _said(content: bytes) -> str:
    """The server's own words, as far as a person can read them."""
    text = content.decode("utf-8", "replace").strip()
    try:
        found = msgspec.json.decode(text)
    except msgspec.DecodeError:
        return text
    error = found.get("error", found) if isinstance(found, dict) else found
    said = (error.get("message") or error.get("detail")) if isinstance(error, dict) else error
    return str(said) if said else text


def _cut(text: str, most: int) -> str:
    return text if len(text) <= most else text[:most] + "…"


def snaked(options: Mapping[str, Any]) -> dict[str, Any]:
    """A strategy's options for a provider, as fields of a request."""
    found: dict[str, Any] = _snaked(dict(options))
    # These are the exchange itself.
    return {key: each for key, each in found.items() if key not in ("messages", "stream")}


def _snaked(value: Any) -> Any:
    if isinstance(value, dict):
        return {_snake(key): _snaked(each) for key, each in value.items()}
    return [_snaked(each) for each in value] if isinstance(value, list) else value


def _snake(name: str) -> str:
    return re.sub(r"(?<=[a-z0-9])([A-Z])", lambda found: "_" + found[1].lower(), name)
