"""Our messages, options and events, and those of the model library. Imported on first use only."""

import re
from collections.abc import Iterator, Mapping
from typing import Any, Final, cast

import msgspec
from pydantic_ai import messages as theirs
from pydantic_ai.models import ModelRequestParameters
from pydantic_ai.output import OutputObjectDefinition
from pydantic_ai.settings import ModelSettings
from pydantic_ai.tools import ToolDefinition
from pydantic_ai.usage import RequestUsage

from stringd.runs.models.port import ModelRequest, Tokens

_SETTINGS: Final = {
    "temperature": "temperature",
    "topP": "top_p",
    "topK": "top_k",
    "maxOutputTokens": "max_tokens",
    "frequencyPenalty": "frequency_penalty",
    "presencePenalty": "presence_penalty",
    "seed": "seed",
}
REDACTED: Final = "redacted_thinking"
"""What the library calls a thought only its provider can read."""
_WHOLE: Final = ("topK", "maxOutputTokens", "seed")
_REASONS: Final = {
    "tool_call": "tool-calls",
    "content_filter": "content-filter",
}


def conversation(request: ModelRequest, system: str) -> list[theirs.ModelMessage]:
    """The messages of a request, system prompt first; `system` is the provider's name."""
    found: list[theirs.ModelMessage] = []
    if request.system:
        found.append(theirs.ModelRequest(parts=[theirs.SystemPromptPart(request.system)]))
    return [*found, *(_message(message, system) for message in request.messages)]


def _message(message: Mapping[str, Any], system: str) -> theirs.ModelMessage:
    content = message.get("content")
    match message.get("role"):
        case "assistant":
            return theirs.ModelResponse(parts=list(_answered(content, system)))
        case "tool":
            return theirs.ModelRequest(parts=list(_returned(content)))
        case _:
            return theirs.ModelRequest(parts=[theirs.UserPromptPart(_plain(content))])


def _plain(content: Any) -> str:
    if isinstance(content, str):
        return content
    parts = content if isinstance(content, list) else []
    return "\n".join(str(part.get("text", "")) for part in parts if isinstance(part, dict))


def _answered(content: Any, system: str) -> Iterator[theirs.ModelResponsePart]:
    if not isinstance(content, list):
        yield theirs.TextPart(str(content or ""))
        return
    for part in content:
        match part.get("type"):
            case "text":
                yield theirs.TextPart(str(part.get("text", "")))
            case "reasoning" if part.get("signature") and system == "anthropic":
                # Only here a thought must come back; other servers refuse to see theirs again.
                yield theirs.ThinkingPart(
                    str(part.get("text", "")),
                    id=REDACTED if part.get("redacted") else None,
                    signature=part.get("signature"),
                    provider_name=system,
                )
            case "tool-call":
                given = part.get("input")
                args = given if isinstance(given, dict) else str(given or "{}")
                yield theirs.ToolCallPart(part["toolName"], args, part["toolCallId"])
            case _:
                pass


def _returned(content: Any) -> Iterator[theirs.ModelRequestPart]:
    for part in content if isinstance(content, list) else []:
        output = part.get("output")
        value = output.get("value") if isinstance(output, dict) else output
        text = value if isinstance(value, str) else msgspec.json.encode(value).decode()
        yield theirs.ToolReturnPart(part["toolName"], text, part["toolCallId"])


def settings(
    request: ModelRequest, options: Mapping[str, Any], system: str, *, lenient: bool = False
) -> ModelSettings:
    """The agent's model options, and its provider options as extra fields of the body.

    `system` is the provider's name; `lenient` servers take options that OpenAI's own refuses.
    """
    found: dict[str, Any] = {}
    for ours, name in _SETTINGS.items():
        if ours in request.options:
            value = request.options[ours]
            found[name] = int(value) if ours in _WHOLE else value
    extra = {_snake(key): _snaked(value) for key, value in options.items()}
    # The library must know of this one: it changes what else may be sent.
    thinking = extra.pop("thinking", None) if system == "anthropic" else None
    if lenient and "top_k" in found:
        extra.setdefault("top_k", found["top_k"])
    if thinking is not None:
        found["anthropic_thinking"] = thinking
    if extra:
        found["extra_body"] = extra
    return cast(ModelSettings, found)


def _snaked(value: Any) -> Any:
    if isinstance(value, dict):
        return {_snake(key): _snaked(each) for key, each in value.items()}
    return [_snaked(each) for each in value] if isinstance(value, list) else value


def _snake(name: str) -> str:
    return re.sub(r"(?<=[a-z0-9])([A-Z])", lambda found: "_" + found[1].lower(), name)


def parameters(request: ModelRequest, *, native_schema: bool) -> ModelRequestParameters:
    """Tools on offer, and the form the answer must have."""
    tools = [
        ToolDefinition(
            name=tool.name,
            description=tool.description,
            parameters_json_schema=dict(tool.parameters),
            strict=False,
        )
        for tool in request.tools
    ]
    if request.output_schema is None:
        return ModelRequestParameters(function_tools=tools)
    form = OutputObjectDefinition(json_schema=dict(request.output_schema), name="answer")
    return ModelRequestParameters(
        function_tools=tools,
        output_mode="native" if native_schema else "prompted",
        output_object=form,
        prompted_output_template=None
        if native_schema
        else "Answer with JSON only, in the form of this JSON Schema:\n\n{schema}",
    )


def tokens(usage: RequestUsage) -> Tokens:
    """What the provider counted; zeros mean that it said nothing."""
    if not (usage.input_tokens or usage.output_tokens):
        return Tokens()
    read, written = usage.cache_read_tokens or None, usage.cache_write_tokens or None
    reasoning = (usage.details or {}).get("reasoning_tokens") or None
    fresh = None
    if read is not None or written is not None:
        fresh = max(0, usage.input_tokens - (read or 0) - (written or 0))
    return Tokens(
        input=usage.input_tokens,
        output=usage.output_tokens,
        no_cache=fresh,
        cache_read=read,
        cache_write=written,
        text=None if reasoning is None else max(0, usage.output_tokens - reasoning),
        reasoning=reasoning,
    )


def finish(reason: str | None) -> str:
    return _REASONS.get(reason or "", reason or "stop")


def arguments(part: theirs.ToolCallPart) -> str:
    """The JSON text the model produced, as it is."""
    if part.args is None:
        return "{}"
    return part.args if isinstance(part.args, str) else msgspec.json.encode(part.args).decode()
