"""The quick reader sees what the library's own would."""

from typing import Any

import httpx2
import pytest
from openai import AsyncOpenAI
from openai.types.chat import ChatCompletionChunk

from stringd.runs.models.pydantic_ai.fast_chunks import QuickOpenAI

BASE: dict[str, Any] = {"id": "c", "object": "chat.completion.chunk", "created": 1, "model": "m"}


def chunk(delta: dict[str, Any], finish: object = None, **more: Any) -> dict[str, Any]:
    return {**BASE, "choices": [{"index": 0, "delta": delta, "finish_reason": finish}], **more}


CALL = {"index": 0, "id": "x", "type": "function", "function": {"name": "f", "arguments": "{"}}


@pytest.mark.parametrize(
    "data",
    [
        chunk({"role": "assistant", "content": "hi"}),
        chunk({"content": None, "reasoning_content": "hm", "reasoning": {"a": [1]}}),
        chunk({"tool_calls": [CALL]}, "tool_calls"),
        chunk({"tool_calls": None}, "stop", usage=None, x_groq={"id": 1}),
        chunk({}, "a reason nobody heard of"),
        chunk({"role": 5, "content": ["odd"]}),
        {**BASE, "choices": [], "usage": {"prompt_tokens": 1, "completion_tokens": 2}},
        {"choices": [{"delta": {"content": "bare"}}]},
        {"choices": 5},
        {},
    ],
)
def test_both_readers_agree(data: dict[str, Any]) -> None:
    response = httpx2.Response(200, request=httpx2.Request("POST", "http://x.example"))
    ours, theirs = (
        client(api_key="k", base_url="http://x.example")._process_response_data(
            data=data, cast_to=ChatCompletionChunk, response=response
        )
        for client in (QuickOpenAI, AsyncOpenAI)
    )
    assert ours.model_dump(warnings=False) == theirs.model_dump(warnings=False)
