"""The library's clients and models. Imported on first use only, and slowly: see `load`."""

import ssl
from collections.abc import Awaitable, Callable, Iterable
from functools import cache
from importlib import import_module
from typing import TYPE_CHECKING, Final

import httpx2

from stringd.runs.models.pydantic_ai.stream_end import end_with_last_event
from stringd.runs.models.pydantic_ai.stream_guard import want_stream

if TYPE_CHECKING:
    from pydantic_ai.models import Model

    TheirModel = Model
    """The library's model; who only hands it on imports it from here."""

    from stringd.runs.models.providers import Access, Family

Hook = Callable[[httpx2.Response], Awaitable[None]]
# Only these know `max_completion_tokens`, and some of them no longer `max_tokens`.
_OPENAI_MODELS: Final = ("gpt-", "chatgpt-", "o1", "o3", "o4", "codex-")
# A model may think long before its first word; a connection is there at once or not at all.
_TIMEOUT: Final = httpx2.Timeout(600.0, connect=10.0)


def load(family: "Family") -> None:
    """Import everything `build` needs; it takes seconds, so a thread should do it."""
    _certificates()
    import_module(f"pydantic_ai.models.{family}")
    import_module(f"pydantic_ai.providers.{family}")


@cache
def _certificates() -> ssl.SSLContext:
    """Read once: it is most of what a new client costs."""
    return httpx2.create_ssl_context()


def build(access: "Access", model_id: str) -> "TheirModel":
    """A model with a client of its own. Nothing is sent yet."""
    if access.family == "anthropic":
        return _anthropic(access, model_id, _client(want_stream, end_with_last_event))
    return _openai(access, model_id, _client(want_stream))


def _client(*hooks: Hook) -> httpx2.AsyncClient:
    return httpx2.AsyncClient(
        timeout=_TIMEOUT, verify=_certificates(), event_hooks={"response": list(hooks)}
    )


def _anthropic(access: "Access", model_id: str, client: httpx2.AsyncClient) -> "TheirModel":
    from anthropic import AsyncAnthropic
    from pydantic_ai.models.anthropic import AnthropicModel
    from pydantic_ai.providers.anthropic import AnthropicProvider

    anthropic = AsyncAnthropic(
        api_key=access.key, base_url=access.base_url, max_retries=0, http_client=client
    )
    return AnthropicModel(model_id, provider=AnthropicProvider(anthropic_client=anthropic))


def _openai(access: "Access", model_id: str, client: httpx2.AsyncClient) -> "TheirModel":
    from pydantic_ai.models.openai import OpenAIChatModel
    from pydantic_ai.profiles import merge_profile
    from pydantic_ai.profiles.openai import OpenAIModelProfile
    from pydantic_ai.providers.openai import OpenAIProvider

    from stringd.runs.models.pydantic_ai.fast_chunks import QuickOpenAI

    openai = QuickOpenAI(
        api_key=access.key, base_url=access.base_url, max_retries=0, http_client=client
    )
    # A stream that stops without saying so was cut; the library would take it for complete.
    strict = OpenAIModelProfile(
        openai_chat_streaming_requires_finish_reason=True,
        openai_chat_supports_max_completion_tokens=model_id.startswith(_OPENAI_MODELS),
    )
    profile = merge_profile(OpenAIProvider.model_profile(model_id), strict)
    provider = OpenAIProvider(openai_client=openai)
    return OpenAIChatModel(model_id, provider=provider, profile=profile)


async def close(models: Iterable["TheirModel"]) -> None:
    """Close what `build` opened."""
    for model in models:
        client = getattr(model, "client", None)
        if client is not None:
            await client.close()
