"""Asking Anthropic, or a server that speaks as it does: one message, streamed."""

from collections.abc import Iterator, Mapping
from typing import Any, Final

import msgspec

from stringd import __version__
from stringd.runs.models.port import ModelRequest, ToolOffer
from stringd.runs.models.providers import Access
from stringd.runs.models.wires import facts, schemas
from stringd.runs.models.wires.anthropic_stream import AnthropicReader
from stringd.runs.models.wires.parts import (
    EarlierCall,
    EarlierOutput,
    Thought,
    answered,
    outputs,
    plain,
)
from stringd.runs.models.wires.sent import body, sent_of

_API_VERSION: Final = "2026-10-21"
_OPTIONS: Final = {"temperature": "temperature", "topP": "top_p"}
_IN_WORDS: Final = "Answer with JSON only, in the form of this JSON Schema:\n\n"


def key_header(key: str) -> dict[str, str]:
    """The header of a key; tokens of a signed-in account have another one."""
    if key.startswith("sk-ant-oat"):
        return {"Authorization": f"Bearer {key}"}
    return {"x-api-key": key}


class AnthropicWire:
    """A model of Anthropic's API."""

    def __init__(self, access: Access, model_id: str) -> None:
        self.url = f"{access.base_url.rstrip('/')}/v1/messages"
        self.headers: Mapping[str, str] = {
            **key_header(access.key),
            "Accept": "application/json",
            "Content-Type": "application/json",
            "User-Agent": f"stringd/{__version__}",
            "anthropic-version": _API_VERSION,
        }
        self._model = model_id

    def body(self, request: ModelRequest, options: Mapping[str, Any]) -> bytes:
        sent = sent_of(request, "anthropic")
        fields: dict[str, Any] = {
            "model": self._model,
            "stream": True,
            **self._settings(request.options, options.get("thinking")),
        }
        texts = [request.system] if request.system else []
        if request.output_schema is not None:
            if facts.claude_takes_schema(self._model):
                form = {"type": "json_schema", "schema": schemas.closed(request.output_schema)}
                fields["output_config"] = {"format": form}
            else:
                texts.append(_IN_WORDS + msgspec.json.encode(request.output_schema).decode())
        if texts:
            blocks = [{"type": "text", "text": text} for text in texts]
            fields["system"] = texts[0] if len(texts) == 1 else blocks
        tools = sent.tools(request.tools, _tool) if request.tools else b""
        if tools:
            fields["tool_choice"] = {"type": "auto"}
        messages = sent.messages(request.messages, _message)
        return body({**fields, **options}, messages, tools=tools)

    def reader(self) -> AnthropicReader:
        return AnthropicReader()

    def _settings(self, options: Mapping[str, float], thinking: Any) -> dict[str, Any]:
        most = facts.claude_output(self._model, _budget(thinking))
        found: dict[str, Any] = {"max_tokens": int(options.get("maxOutputTokens", most))}
        if facts.claude_takes_sampling(self._model):
            found |= {name: options[ours] for ours, name in _OPTIONS.items() if ours in options}
            if "topK" in options:
                found["top_k"] = int(options["topK"])
        return found


def _budget(thinking: Any) -> int:
    enabled = isinstance(thinking, dict) and thinking.get("type") == "enabled"
    budget = thinking.get("budget_tokens") if enabled else 0
    return budget if isinstance(budget, int) else 0


def _message(message: Mapping[str, Any]) -> list[Any]:
    content = message.get("content")
    match message.get("role"):
        case "assistant":
            role, blocks = "assistant", [*_blocks(answered(content))]
        case "tool":
            role, blocks = "user", [_result(each) for each in outputs(content)]
        case _:
            text = plain(content)
            role, blocks = "user", [_text(text)] if text else []
    # A message without content is refused.
    return [{"role": role, "content": blocks}] if blocks else []


def _blocks(parts: Iterator[str | Thought | EarlierCall]) -> Iterator[dict[str, Any]]:
    for part in parts:
        match part:
            case str():
                if part:
                    yield _text(part)
            case Thought(text, signature, redacted):
                if redacted:
                    yield {"type": "redacted_thinking", "data": signature}
                else:
                    yield {"type": "thinking", "thinking": text, "signature": signature}
            case EarlierCall(id_, name, given):
                yield {"type": "tool_use", "id": id_, "name": name, "input": given}


def _text(text: str) -> dict[str, Any]:
    return {"type": "text", "text": text}


def _result(output: EarlierOutput) -> dict[str, Any]:
    return {
        "type": "tool_result",
        "tool_use_id": output.call_id,
        "content": [_text(output.text)],
        "is_error": False,
    }


def _tool(offer: ToolOffer) -> dict[str, Any]:
    return {
        "name": offer.name,
        "description": offer.description,
        "input_schema": dict(offer.parameters),
    }
