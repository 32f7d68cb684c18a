"""A model behind HTTP, on our port: asked again when that may help."""

import asyncio
import logging
from collections.abc import AsyncGenerator, Callable, Mapping
from contextlib import aclosing
from typing import Any

from stringd.net.streams import StreamClient
from stringd.runs.errors import ModelError
from stringd.runs.models.port import Delayed, ModelEvent, ModelRequest, Price
from stringd.runs.models.retries import (
    DEFAULT_RETRIES,
    PATIENCE_SECONDS,
    pause,
    tries_again,
    worth_retrying,
)
from stringd.runs.models.wires.exchange import ProviderFailure, exchange
from stringd.runs.models.wires.wire import Wire

log = logging.getLogger(__name__)


class RemoteModel:
    """`wire` is how it is asked; `mask` takes secrets out of texts."""

    def __init__(
        self,
        name: str,
        wire: Wire,
        client: StreamClient,
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
        self._wire = wire
        self._client = client
        self._options = dict(options)
        self._mask = mask

    async def stream(self, request: ModelRequest) -> AsyncGenerator[ModelEvent, None]:
        retries = tries_again(request.options.get("maxRetries", DEFAULT_RETRIES))
        for attempt in range(retries + 1):
            try:
                answer = exchange(self._client, self._wire, request, self._options, self._name)
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


def _given_up(message: str, attempt: int) -> str:
    return message if attempt == 0 else f"{message} (asked {attempt + 1} times)"
