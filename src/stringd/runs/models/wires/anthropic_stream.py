"""Reading the stream of Anthropic's API."""

from typing import Any, Final

import msgspec

from stringd.formats.surrogates import paired
from stringd.runs.models.port import Finished, ModelEvent, Started, ToolRequested
from stringd.runs.models.wires.calls import own_id
from stringd.runs.models.wires.counts import NOTHING, Count, fields, whole
from stringd.runs.models.wires.prose import Prose
from stringd.runs.models.wires.wire import CutError, SaidError, error_of, object_of, text_of

_REASONS: Final = {
    "end_turn": "stop",
    "stop_sequence": "stop",
    "max_tokens": "length",
    "model_context_window_exceeded": "length",
    "tool_use": "tool-calls",
    "refusal": "content-filter",
}
_STATUSES: Final = {
    "invalid_request_error": 400,
    "authentication_error": 401,
    "permission_error": 403,
    "not_found_error": 404,
    "request_too_large": 413,
    "rate_limit_error": 429,
    "api_error": 500,
    "timeout_error": 504,
    "overloaded_error": 529,
}


class _Block:
    """A block of the answer whose pieces are arriving."""

    def __init__(self, start: dict[str, Any]) -> None:
        self.kind = str(start.get("type") or "")
        self.id = str(start.get("id") or "")
        self.name = str(start.get("name") or "")
        self.signature = str(start.get("signature") or start.get("data") or "")
        given = start.get("input")
        self.input = given if isinstance(given, dict) else {}
        self.args: list[str] = []

    def request(self, seen: set[str]) -> ToolRequested:
        text = "".join(self.args)
        if not text.strip() and self.input:
            text = msgspec.json.encode(self.input).decode()
        return ToolRequested(own_id(self.id, seen), paired(self.name), paired(text))


class AnthropicReader:
    """One answer."""

    def __init__(self) -> None:
        self.closed = False
        self._reason: str | None = None
        self._prose = Prose()
        self._open: dict[Any, _Block] = {}
        self._tools: list[_Block] = []
        self._count = NOTHING

    @property
    def closing(self) -> bool:
        return self._reason is not None

    def take(self, data: str) -> list[ModelEvent]:
        event = object_of(data)
        index = event.get("index")
        match event.get("type"):
            case "message_start":
                self._counted(fields(event.get("message")).get("usage"))
            case "content_block_start":
                return self._begin(index, _Block(fields(event.get("content_block"))), event)
            case "content_block_delta":
                return self._delta(index, fields(event.get("delta")))
            case "content_block_stop":
                return self._stop(index)
            case "message_delta":
                self._counted(event.get("usage"))
                reason = fields(event.get("delta")).get("stop_reason")
                self._reason = str(reason) if reason else self._reason
            case "message_stop":
                self.closed = True
            case "error":
                error = event.get("error")
                kind = fields(error).get("type")
                raise SaidError(error_of(error), _STATUSES.get(str(kind)))
            case None if event.get("error"):
                raise SaidError(error_of(event["error"]))
        return []

    def _begin(self, index: Any, block: _Block, event: dict[str, Any]) -> list[ModelEvent]:
        # A server that does not stop its blocks begins the next one instead.
        found = self._stop(index)
        self._open[index] = block
        start = fields(event.get("content_block"))
        match block.kind:
            case "text":
                found += self._prose.say(text_of(start.get("text")))
            case "thinking" | "redacted_thinking":
                found += [*self._prose.close(), *self._prose.open()]
                found += self._prose.think(text_of(start.get("thinking")))
            case "tool_use":
                # Tools are known only at the end, but the answer has begun.
                found += [*self._prose.close(), Started()]
                self._tools.append(block)
        return found

    def _delta(self, index: Any, delta: dict[str, Any]) -> list[ModelEvent]:
        block = self._open.get(index)
        match delta.get("type"):
            case "text_delta":
                return self._prose.say(text_of(delta.get("text")))
            case "thinking_delta":
                return self._prose.think(text_of(delta.get("thinking")))
            case "signature_delta" if block is not None:
                block.signature += text_of(delta.get("signature"))
            case "input_json_delta" if block is not None:
                block.args.append(text_of(delta.get("partial_json")))
        return []

    def _stop(self, index: Any) -> list[ModelEvent]:
        block = self._open.pop(index, None)
        if block is None or block.kind not in ("thinking", "redacted_thinking"):
            return []
        redacted = block.kind == "redacted_thinking"
        return self._prose.close(block.signature or None, redacted=redacted)

    def end(self) -> list[ModelEvent]:
        if self._reason is None and not self.closed:
            raise CutError
        seen: set[str] = set()
        tools = [block.request(seen) for block in self._tools]
        return [*self._prose.end(), *tools, Finished(self._count.tokens(), self._finish())]

    def _finish(self) -> str:
        reason = _REASONS.get(self._reason or "", self._reason or "stop")
        return "tool-calls" if reason == "stop" and self._tools else reason

    def _counted(self, usage: Any) -> None:
        """Every report is the total so far; what it leaves out was said before."""
        said = fields(usage)
        cached = ("cache_read_input_tokens", "cache_creation_input_tokens")
        fresh = self._count.input - self._count.read - self._count.written
        read = max(self._count.read, whole(said.get(cached[0])))
        written = max(self._count.written, whole(said.get(cached[1])))
        details = fields(said.get("output_tokens_details"))
        self._count = Count(
            input=max(fresh, whole(said.get("input_tokens"))) + read + written,
            output=max(self._count.output, whole(said.get("output_tokens"))),
            read=read,
            written=written,
            thought=max(self._count.thought, whole(details.get("thinking_tokens"))),
        )
