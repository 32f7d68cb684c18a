"""A model behind HTTP, on our port: loaded on first use, asked again when that may help."""

import asyncio
import logging
from collections.abc import AsyncGenerator, Callable, Mapping
from contextlib import aclosing
from importlib import import_module
from typing import TYPE_CHECKING, Any

from stringd.runs.errors import ModelError
from stringd.runs.models.port import Delayed, ModelEvent, ModelRequest, Price
from stringd.runs.models.retries import (
    DEFAULT_RETRIES,
    PATIENCE_SECONDS,
    pause,
    tries_again,
    worth_retrying,
)

if TYPE_CHECKING:
    from stringd.runs.models.providers import Family
    from stringd.runs.models.pydantic_ai.clients import TheirModel

log = logging.getLogger(__name__)


class Library:
    """The model libraries: imported once for each family, in a thread, and said so."""

    def __init__(self) -> None:
        self._lock: asyncio.Lock | None = None
        self._loaded: set[str] = set()

    def delay(self, family: "Family") -> str | None:
        """Why the next use takes longer, or None."""
        if family in self._loaded:
            return None
        return f"loading the model libraries for {family}; this happens once"

    async def load(self, family: "Family") -> None:
        """Raises `ImportError`."""
        self._lock = self._lock or asyncio.Lock()
        async with self._lock:
            why = self.delay(family)
            if why is not None:
                # A warning: whoever watches the daemon should see why this answer takes longer.
                log.warning("%s", why)
                await asyncio.to_thread(_import, family)
                self._loaded.add(family)


def _import(family: "Family") -> None:
    import_module("stringd.runs.models.pydantic_ai.exchange")
    from stringd.runs.models.pydantic_ai.clients import load

    load(family)


class RemoteModel:
    """`build` makes the library's model; `mask` takes secrets out of texts."""

    def __init__(
        self,
        name: str,
        build: Callable[[], "TheirModel"],
        library: Library,
        *,
        family: "Family",
        options: Mapping[str, Any],
        mask: Callable[[str], str],
        context_window: int | None = None,
        max_input_tokens: int | None = None,
        price: Price | None = None,
    ) -> None:
        self.context_window = context_window
        self.max_input_tokens = max_input_tokens
        self.price = price
        self._name = name
        self._build = build
        self._library = library
        self._family = family
        self._options = dict(options)
        self._mask = mask

    async def stream(self, request: ModelRequest) -> AsyncGenerator[ModelEvent, None]:
        if (why := self._library.delay(self._family)) is not None:
            yield Delayed(why)
        model = await self._ready()
        from stringd.runs.models.pydantic_ai.exchange import ProviderFailure, exchange

        retries = tries_again(request.options.get("maxRetries", DEFAULT_RETRIES))
        for attempt in range(retries + 1):
            try:
                answer = exchange(model, request, self._options, self._name)
                async with aclosing(answer) as events:
                    async for event in events:
                        yield event
                return
            except ModelError as error:
                raise ModelError(self._mask(str(error))) from None
            except ProviderFailure as failure:
                message = self._mask(str(failure))
                if attempt == retries or not worth_retrying(failure.status):
                    raise ModelError(_given_up(message, attempt)) from None
                wait = pause(attempt, failure.headers)
                if wait > PATIENCE_SECONDS:
                    raise ModelError(f"{message} (it asks to wait {wait:.0f} s)") from None
                log.warning("%s; asking again in %.1f s", message, wait)
                yield Delayed(f"{message}; asking again in {wait:.1f} s")
                await asyncio.sleep(wait)

    async def _ready(self) -> "TheirModel":
        try:
            await self._library.load(self._family)
            return self._build()
        except ImportError as error:
            raise ModelError(
                f'Provider resolution failed for "{self._name.partition("/")[0]}": {error}. '
                'Install it with: pip install "stringd[providers]"'
            ) from None


def _given_up(message: str, attempt: int) -> str:
    return message if attempt == 0 else f"{message} (asked {attempt + 1} times)"
