"""One exchange with a provider over HTTP: its stream as our events, its failures as sentences.

This module imports the model library, which takes a second or two; `stringd.runs.models.remote`
loads it when a real model is asked for the first time.
"""

import logging
from collections.abc import AsyncGenerator, AsyncIterator
from typing import Any, Final

from pydantic_ai import messages as theirs
from pydantic_ai.direct import model_request_stream
from pydantic_ai.exceptions import ModelAPIError, ModelHTTPError
from pydantic_ai.models import Model as TheirModel
from pydantic_ai.models import StreamedResponse

from stringd.runs.errors import ModelError
from stringd.runs.models.port import (
    Finished,
    ModelEvent,
    ModelRequest,
    Started,
    TextDelta,
    ThinkingDelta,
    ThinkingEnded,
    ThinkingStarted,
    ToolRequested,
)
from stringd.runs.models.pydantic_ai import translate
from stringd.runs.models.pydantic_ai.stream_guard import NoStreamError, plain_no_stream

log = logging.getLogger(__name__)

_MAX_REASON: Final = 1000


class ProviderFailure(Exception):  # noqa: N818  # becomes a retry or a ModelError
    """The provider answered with an error, or not at all. `status` is None without an answer."""

    def __init__(self, message: str, status: int | None, headers: dict[str, str] | None) -> None:
        super().__init__(message)
        self.status = status
        self.headers = headers


async def exchange(
    model: TheirModel, request: ModelRequest, options: dict[str, Any], name: str
) -> AsyncGenerator[ModelEvent, None]:
    """Ask once. Raises `ProviderFailure` before anything has arrived, `ModelError` after."""
    native = bool(model.profile.get("supports_json_schema_output", False))
    heard = _Heard(name)
    try:
        async with (
            plain_no_stream(),
            model_request_stream(
                model,
                translate.conversation(request, model.system),
                model_settings=translate.settings(
                    request, options, model.system, lenient=lenient(model)
                ),
                model_request_parameters=translate.parameters(request, native_schema=native),
            ) as response,
        ):
            async for event in heard.events(response):
                yield event
            finished = heard.finished(response)
            for request_of_tool in heard.tools(response):
                yield request_of_tool
            yield finished
    except ModelError:
        raise
    except ModelHTTPError as error:
        status, text = error.status_code, f"{name} answered {error.status_code}: {_reason(error)}"
        raise heard.failure(text, status, error.headers) from error
    except ModelAPIError as error:
        lead = "The answer broke off" if heard.began else f"{name} could not be reached"
        raise heard.failure(f"{lead}: {_reason(error)}", None) from error
    except NoStreamError as error:
        raise heard.failure(f"{name} answered without a stream: {error}", 0) from None
    except Exception as error:  # the libraries below raise anything when a server talks nonsense
        why = _reason(error)
        raise heard.failure(f"{name} gave an answer that makes no sense: {why}", 0) from error


def lenient(model: TheirModel) -> bool:
    """Whether it is one of the many servers that only resemble OpenAI's."""
    return not model.profile.get("openai_chat_supports_max_completion_tokens", True)


class _Heard:
    """What has arrived of one answer."""

    def __init__(self, name: str) -> None:
        self._name = name
        self._characters = 0
        self.began = False
        self._thoughts: dict[int, str] = {}

    async def events(self, response: StreamedResponse) -> AsyncIterator[ModelEvent]:
        async for event in response:
            if not self.began:
                self.began = True
                yield Started()
            for each in self._translated(event):
                yield each

    def _translated(self, event: Any) -> list[ModelEvent]:
        match event:
            case theirs.PartStartEvent(part=theirs.TextPart(content=text)):
                return self._text(text)
            case theirs.PartDeltaEvent(delta=theirs.TextPartDelta(content_delta=text)):
                return self._text(text)
            case theirs.PartStartEvent(index=index, part=theirs.ThinkingPart() as part):
                return self._thought(index, part)
            case theirs.PartDeltaEvent(index=index, delta=theirs.ThinkingPartDelta() as delta):
                if delta.content_delta and index in self._thoughts:
                    return [ThinkingDelta(self._thoughts[index], delta.content_delta)]
                return []
            case theirs.PartEndEvent(index=index, part=theirs.ThinkingPart() as part):
                redacted = part.id == translate.REDACTED
                return [ThinkingEnded(self._thoughts[index], part.signature, redacted)]
            case _:
                return []

    def _text(self, text: str) -> list[ModelEvent]:
        self._characters += len(text)
        return [TextDelta(text)] if text else []

    def _thought(self, index: int, part: theirs.ThinkingPart) -> list[ModelEvent]:
        name = part.id if part.id and part.id not in self._thoughts.values() else None
        self._thoughts[index] = name or f"thinking-{index + 1}"
        found: list[ModelEvent] = [ThinkingStarted(self._thoughts[index])]
        if part.content:
            found.append(ThinkingDelta(self._thoughts[index], part.content))
        return found

    def tools(self, response: StreamedResponse) -> list[ToolRequested]:
        """The tools asked for, known only now: a server may send several side by side."""
        return [
            ToolRequested(part.tool_call_id, part.tool_name, translate.arguments(part))
            for part in response.get().parts
            if isinstance(part, theirs.ToolCallPart)
        ]

    def finished(self, response: StreamedResponse) -> Finished:
        reason = response.finish_reason or (response.provider_details or {}).get("finish_reason")
        if not reason:
            raise self.failure("The answer broke off before its end", None)
        usage = response.usage() if callable(response.usage) else response.usage
        return Finished(translate.tokens(usage), translate.finish(str(reason)))

    def failure(
        self, message: str, status: int | None, headers: dict[str, str] | None = None
    ) -> Exception:
        """Before the first event another try costs nothing; after it the run must end here."""
        if not self.began:
            return ProviderFailure(message, status, headers)
        lead = "" if message.startswith(self._name) else f"{self._name}: "
        return ModelError(f"{lead}{message} (after {self._characters} characters of text)")


def _reason(error: BaseException) -> str:
    """The provider's own words, as far as a person can read them."""
    body = getattr(error, "body", None)
    inner = body.get("error", body) if isinstance(body, dict) else body
    said = inner.get("message") if isinstance(inner, dict) else inner
    text = str(said) if said else str(getattr(error, "message", None) or error)
    if not text:
        text = type(error).__name__
    return text if len(text) <= _MAX_REASON else text[:_MAX_REASON] + "…"
