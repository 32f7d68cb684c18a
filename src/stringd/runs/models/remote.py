"""A model behind HTTP, on our port: loaded on first use, asked again when that may help."""

import asyncio
import logging
from collections.abc import AsyncGenerator, Callable, Mapping
from contextlib import aclosing
from typing import TYPE_CHECKING, Any, Final

from stringd.runs.errors import ModelError
from stringd.runs.models.port import Delayed, ModelEvent, ModelRequest, Price
from stringd.runs.models.retries import DEFAULT_RETRIES, pause, worth_retrying

if TYPE_CHECKING:
    from pydantic_ai.models import Model as TheirModel

log = logging.getLogger(__name__)


LOADING: Final = "loading the model libraries; this happens once"


class Library:
    """The model library: imported once, in a thread, with a line in the log that says so."""

    def __init__(self) -> None:
        self._lock: asyncio.Lock | None = None
        self.loaded = False

    async def load(self, load: Callable[[], object]) -> None:
        if self.loaded:
            return
        self._lock = self._lock or asyncio.Lock()
        async with self._lock:
            if not self.loaded:
                # A warning: whoever watches the daemon should see why this answer takes longer.
                log.warning(LOADING)
                await asyncio.to_thread(load)
                self.loaded = True


class RemoteModel:
    """`build` makes the library's model; `mask` takes secrets out of texts."""

    def __init__(
        self,
        name: str,
        build: Callable[[], "TheirModel"],
        library: Library,
        *,
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
        self._options = dict(options)
        self._mask = mask

    async def stream(self, request: ModelRequest) -> AsyncGenerator[ModelEvent, None]:
        if not self._library.loaded:
            yield Delayed(LOADING)
        model = await self._ready()
        from stringd.runs.models.exchange import ProviderFailure, exchange

        retries = int(request.options.get("maxRetries", DEFAULT_RETRIES))
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
                log.warning("%s; asking again in %.1f s", message, wait)
                yield Delayed(f"{message}; asking again in {wait:.1f} s")
                await asyncio.sleep(wait)

    async def _ready(self) -> "TheirModel":
        try:
            await self._library.load(_import_library)
            return self._build()
        except ImportError as error:
            raise ModelError(
                f'Provider resolution failed for "{self._name.partition("/")[0]}": {error}. '
                'Install it with: pip install "stringd[providers]"'
            ) from None


def _given_up(message: str, attempt: int) -> str:
    return message if attempt == 0 else f"{message} (asked {attempt + 1} times)"


def _import_library() -> None:
    import stringd.runs.models.exchange  # noqa: F401
