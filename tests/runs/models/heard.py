"""A model asked over real HTTP, and what was heard of its answer."""

import json
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from stringd.net.streams import StreamClient
from stringd.runs.models.directory import ProviderDirectory
from stringd.runs.models.port import (
    Finished,
    Model,
    ModelEvent,
    ModelRequest,
    ModelSetup,
    TextDelta,
    ThinkingDelta,
    ThinkingEnded,
    ThinkingStarted,
    ToolRequested,
)
from stringd.runs.models.providers import Access
from stringd.runs.models.remote import RemoteModel
from stringd.runs.models.wires.anthropic import AnthropicWire
from stringd.runs.models.wires.openai import OpenAiWire
from tests.runs.models import servers
from tests.runs.models.servers import Reply, event, model_server

Json = dict[str, Any]
NO_RETRIES = {"maxRetries": 0.0}


@dataclass
class Heard:
    events: list[ModelEvent]

    @property
    def text(self) -> str:
        return "".join(each.text for each in self.events if isinstance(each, TextDelta))

    @property
    def thoughts(self) -> str:
        return "".join(each.text for each in self.events if isinstance(each, ThinkingDelta))

    @property
    def tools(self) -> list[tuple[str, str]]:
        calls = [each for each in self.events if isinstance(each, ToolRequested)]
        assert all(call.id for call in calls)
        assert len({call.id for call in calls}) == len(calls)
        return [(call.name, call.args) for call in calls]

    @property
    def ids(self) -> list[str]:
        return [each.id for each in self.events if isinstance(each, ToolRequested)]

    @property
    def finished(self) -> Finished:
        (found,) = (each for each in self.events if isinstance(each, Finished))
        return found

    @property
    def spent(self) -> tuple[int | None, int | None]:
        return self.finished.tokens.input, self.finished.tokens.output

    def check(self) -> "Heard":
        """Every thought has its beginning and its end, and nothing follows the end of it all."""
        begun = [each.id for each in self.events if isinstance(each, ThinkingStarted)]
        ended = [each.id for each in self.events if isinstance(each, ThinkingEnded)]
        assert begun == ended
        assert isinstance(self.events[-1], Finished)
        return self


def model(family: str, url: str, client: StreamClient) -> Model:
    """A model of a server at this address."""
    if family == "anthropic":
        wire: Any = AnthropicWire(Access("anthropic", url, "key"), "m")
    else:
        wire = OpenAiWire(Access("openai", f"{url}/v1", "key"), "m")
    return RemoteModel(f"{family}/m", wire, client, options={}, mask=str)


def asking(
    messages: Sequence[Json] = ({"role": "user", "content": "hello"},), **more: Any
) -> ModelRequest:
    return ModelRequest("a", None, messages, options=NO_RETRIES, **more)


async def heard(family: str, *chunks: bytes, silence: float = 60.0, **reply: Any) -> Heard:
    """What is heard of a stream of these pieces. Raises `ModelError`."""
    client = StreamClient(silence)
    async with model_server(Reply(chunks, **reply)) as server:
        try:
            stream = model(family, server.url, client).stream(asking())
            return Heard([each async for each in stream]).check()
        finally:
            await client.close()


def chunk(delta: Json | None = None, finish: str | None = None, **more: Any) -> bytes:
    """A chunk of an OpenAI-compatible stream with nothing a server may leave out."""
    choice: Json = {"delta": delta}
    if finish:
        choice["finish_reason"] = finish
    return event({"choices": [choice], **more})


def call(
    name: str | None = None, args: Any = None, *, call_id: str | None = None, index: Any = None
) -> Json:
    """A piece of a tool call that says only what it is given."""
    function = {
        key: each for key, each in (("name", name), ("arguments", args)) if each is not None
    }
    piece: Json = {"function": function}
    if call_id is not None:
        piece["id"] = call_id
    if index is not None:
        piece["index"] = index
    return piece


def calls(*pieces: Json, finish: str | None = None) -> bytes:
    return chunk({"tool_calls": list(pieces)}, finish)


DONE = event("[DONE]")


def said(name: str, **more: Any) -> bytes:
    """An event of Anthropic's stream."""
    return event({"type": name, **more}, name)


def begun(index: int, **block: Any) -> bytes:
    return said("content_block_start", index=index, content_block=block)


def added(index: int, kind: str, **delta: Any) -> bytes:
    return said("content_block_delta", index=index, delta={"type": kind, **delta})


def stopped(reason: str | None = "end_turn", **more: Any) -> bytes:
    return said("message_delta", delta={"stop_reason": reason}, **more)


STARTED = said("message_start", message={"usage": {"input_tokens": 9, "output_tokens": 1}})
STOP = said("message_stop")


def words(family: str, *texts: str) -> list[bytes]:
    """A plain answer, whole."""
    if family == "anthropic":
        return list(servers.anthropic(servers.anthropic_text(*texts)).chunks)
    return list(servers.openai_text(*texts).chunks)


def directory(folder: Path, family: str, url: str) -> ProviderDirectory:
    base = url if family == "anthropic" else f"{url}/v1"
    name = family.upper()
    return ProviderDirectory(folder, environ={f"{name}_BASE_URL": base, f"{name}_API_KEY": "key"})


def setup(folder: Path) -> Any:
    return lambda _, model_id: ModelSetup(model_id, "a", {}, folder)


def raw(text: str) -> str:
    """A JSON string whose escapes are those of the text."""
    return json.dumps(text)[1:-1]
