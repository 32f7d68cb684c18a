"""Asking an OpenAI-compatible server: one chat completion, streamed."""

from collections.abc import Mapping
from typing import Any, Final

import msgspec

from stringd import __version__
from stringd.runs.models.port import ModelRequest, ToolOffer
from stringd.runs.models.providers import Access
from stringd.runs.models.wires import facts, schemas
from stringd.runs.models.wires.openai_stream import OpenAiReader
from stringd.runs.models.wires.parts import EarlierCall, answered, outputs, plain
from stringd.runs.models.wires.sent import body, sent_of

_OPTIONS: Final = {
    "temperature": "temperature",
    "topP": "top_p",
    "frequencyPenalty": "frequency_penalty",
    "presencePenalty": "presence_penalty",
}


class OpenAiWire:
    """A model of an OpenAI-compatible server."""

    def __init__(self, access: Access, model_id: str) -> None:
        self.url = f"{access.base_url.rstrip('/')}/chat/completions"
        self.headers: Mapping[str, str] = {
            "Authorization": f"Bearer {access.key}",
            "Accept": "application/json",
            "Content-Type": "application/json",
            "User-Agent": f"stringd/{__version__}",
        }
        self._model = model_id

    def body(self, request: ModelRequest, options: Mapping[str, Any]) -> bytes:
        sent = sent_of(request, "openai")
        fields: dict[str, Any] = {
            "model": self._model,
            "stream": True,
            "stream_options": {"include_usage": True},
            **self._settings(request.options),
        }
        if request.output_schema is not None:
            fields["response_format"] = _response_format(request.output_schema)
        tools = sent.tools(request.tools, _tool) if request.tools else b""
        if tools:
            fields["tool_choice"] = "auto"
        role = facts.system_role(self._model)
        first = [{"role": role, "content": request.system}] if request.system else []
        messages = sent.messages(request.messages, _message)
        return body({**fields, **options}, messages, first=first, tools=tools)

    def reader(self) -> OpenAiReader:
        return OpenAiReader()

    def _settings(self, options: Mapping[str, float]) -> dict[str, Any]:
        found: dict[str, Any] = {}
        if facts.takes_sampling(self._model):
            found = {name: options[ours] for ours, name in _OPTIONS.items() if ours in options}
        own = facts.is_openai_model(self._model)
        if "maxOutputTokens" in options:
            limit = "max_completion_tokens" if own else "max_tokens"
            found[limit] = int(options["maxOutputTokens"])
        if "seed" in options:
            found["seed"] = int(options["seed"])
        if "topK" in options and not own:
            found["top_k"] = int(options["topK"])
        return found


def _message(message: Mapping[str, Any]) -> list[Any]:
    content = message.get("content")
    match message.get("role"):
        case "assistant":
            return [_answer(content)]
        case "tool":
            return [
                {"role": "tool", "tool_call_id": each.call_id, "content": each.text}
                for each in outputs(content)
            ]
        case _:
            return [{"role": "user", "content": plain(content)}]


def _answer(content: Any) -> dict[str, Any]:
    # A thought stays out: these servers refuse to see theirs again.
    parts = list(answered(content))
    text = "".join(part for part in parts if isinstance(part, str))
    calls = [
        {
            "id": part.id,
            "type": "function",
            "function": {
                "name": part.name,
                "arguments": msgspec.json.encode(part.input).decode(),
            },
        }
        for part in parts
        if isinstance(part, EarlierCall)
    ]
    if not calls:
        return {"role": "assistant", "content": text}
    return {"role": "assistant", "content": text or None, "tool_calls": calls}


def _tool(offer: ToolOffer) -> dict[str, Any]:
    function = {
        "name": offer.name,
        "description": offer.description,
        "parameters": dict(offer.parameters),
    }
    return {"type": "function", "function": function}


def _response_format(schema: Mapping[str, Any]) -> dict[str, Any]:
    strict = schemas.strict(schema)
    form = {
        "name": "answer",
        "schema": dict(schema) if strict is None else strict,
        "strict": strict is not None,
    }
    return {"type": "json_schema", "json_schema": form}
