"""The OpenAI client, reading each piece of a stream in compiled code. Imported on first use only.

Their own way takes a dozen Python calls for every field: most of what a streamed answer costs.
"""

from typing import TYPE_CHECKING, TypeVar, cast

import pydantic
from openai import AsyncOpenAI
from openai.types.chat import ChatCompletionChunk

if TYPE_CHECKING:
    import httpx2

R = TypeVar("R")


class QuickOpenAI(AsyncOpenAI):
    def _process_response_data(
        self, *, data: object, cast_to: type[R], response: "httpx2.Response"
    ) -> R:
        if cast_to is ChatCompletionChunk:
            try:
                return cast(R, ChatCompletionChunk.model_validate(data))
            except pydantic.ValidationError:
                # A server that bends the form is read the lenient way.
                pass
        return super()._process_response_data(data=data, cast_to=cast_to, response=response)
