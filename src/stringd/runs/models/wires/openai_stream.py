"""Reading the stream of an OpenAI-compatible server."""

from typing import Any, Final

from stringd.runs.models.port import Finished, ModelEvent, Started
from stringd.runs.models.wires.calls import PendingCalls
from stringd.runs.models.wires.counts import Count, Counted, fields, whole
from stringd.runs.models.wires.prose import Prose, TagSplitter
from stringd.runs.models.wires.wire import CutError, SaidError, error_of, object_of, text_of

_REASONS: Final = {
    "tool_calls": "tool-calls",
    "function_call": "tool-calls",
    "content_filter": "content-filter",
}
_THOUGHTS: Final = ("reasoning_content", "reasoning")


class OpenAiReader:
    """One answer."""

    def __init__(self) -> None:
        self.closed = False
        self._reason: str | None = None
        self._refused = False
        self._prose = Prose()
        self._tags = TagSplitter(self._prose)
        self._calls = PendingCalls()
        self._counted = Counted()

    @property
    def closing(self) -> bool:
        return self._reason is not None

    def take(self, data: str) -> list[ModelEvent]:
        if data.strip() == "[DONE]":
            self.closed = True
            return []
        chunk = object_of(data)
        if chunk.get("error"):
            raise _said(chunk["error"])
        choices = chunk.get("choices")
        if choices is not None and not isinstance(choices, list):
            raise ValueError("its choices are not a list")
        choice = fields(choices[0]) if choices else {}
        usage = (
            chunk.get("usage") or choice.get("usage") or fields(chunk.get("x_groq")).get("usage")
        )
        if isinstance(usage, dict):
            self._counted.take(_count(usage))
        found = self._delta(fields(choice.get("delta")))
        if choice.get("finish_reason"):
            self._reason = str(choice["finish_reason"])
        return found

    def _delta(self, delta: dict[str, Any]) -> list[ModelEvent]:
        found = self._prose.think(_thought(delta))
        if text := text_of(delta.get("content")):
            found += self._tags.feed(text)
        if refusal := text_of(delta.get("refusal")):
            self._refused = True
            found += self._prose.say(refusal)
        pieces = _calls(delta)
        if pieces and not self._calls:
            # Tools are known only at the end, but the answer has begun.
            found.append(Started())
        for piece in pieces:
            self._calls.take(piece)
        return found

    def end(self) -> list[ModelEvent]:
        if self._reason is None and not self.closed:
            raise CutError
        found = [*self._tags.end(), *self._prose.end()]
        return [*found, *self._calls.requested(), Finished(self._counted.tokens(), self._finish())]

    def _finish(self) -> str:
        if self._refused:
            return "content-filter"
        reason = self._reason or "stop"
        if reason == "stop" and self._calls:
            return "tool-calls"
        return _REASONS.get(reason, reason)


def _thought(delta: dict[str, Any]) -> str:
    """A thought, in whichever field it is; servers with two of them say it twice."""
    for name in _THOUGHTS:
        if text := text_of(delta.get(name)):
            return text
    details = delta.get("reasoning_details")
    parts = (
        [part for part in details if isinstance(part, dict)] if isinstance(details, list) else []
    )
    return "".join(str(part.get("text") or part.get("summary") or "") for part in parts)


def _calls(delta: dict[str, Any]) -> list[Any]:
    calls = delta.get("tool_calls")
    if isinstance(calls, list):
        return calls
    alone = calls or delta.get("function_call")
    if not isinstance(alone, dict):
        return []
    return [alone if "function" in alone else {"index": 0, "function": alone}]


def _count(usage: dict[str, Any]) -> Count:
    prompt = fields(usage.get("prompt_tokens_details"))
    completion = fields(usage.get("completion_tokens_details"))
    return Count(
        input=whole(usage.get("prompt_tokens")),
        output=whole(usage.get("completion_tokens")),
        read=whole(prompt.get("cached_tokens") or usage.get("prompt_cache_hit_tokens")),
        written=whole(prompt.get("cache_write_tokens")),
        thought=whole(completion.get("reasoning_tokens")),
    )


def _said(error: Any) -> SaidError:
    code = error.get("code") or error.get("status") if isinstance(error, dict) else None
    status = code if isinstance(code, int) and 400 <= code < 600 else None
    return SaidError(error_of(error), status)
