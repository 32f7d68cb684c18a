"""What is sent is built once: a request encodes only what is new in its conversation."""

import json
from collections.abc import Mapping
from typing import Any

import pytest

from stringd.runs.models.port import ModelRequest, ToolOffer
from stringd.runs.models.providers import Access
from stringd.runs.models.wires.anthropic import AnthropicWire
from stringd.runs.models.wires.openai import OpenAiWire
from stringd.runs.models.wires.sent import Sent
from stringd.runs.models.wires.wire import Wire

Json = dict[str, Any]
TOOLS = [ToolOffer("read", "Reads.", {"type": "object", "properties": {}})]


class Form:
    """Translates a message to itself, and remembers which."""

    def __init__(self) -> None:
        self.seen: list[Any] = []

    def __call__(self, message: Mapping[str, Any]) -> list[Any]:
        self.seen.append(message["n"])
        return [dict(message)] * message.get("times", 1)


def encoded(sent: Sent, form: Form, *messages: Json) -> list[Json]:
    members: list[Json] = json.loads(b"[%b]" % bytes(sent.messages(messages, form)))
    return members


def test_a_message_that_was_sent_is_not_encoded_again() -> None:
    sent, form = Sent(), Form()
    talk: list[Json] = []
    for n in range(5):
        talk.append({"n": n})
        assert encoded(sent, form, *talk) == talk
    assert form.seen == [0, 1, 2, 3, 4]


def test_a_message_made_again_with_the_same_content_is_known() -> None:
    sent, form = Sent(), Form()
    encoded(sent, form, {"n": 1}, {"n": 2})
    encoded(sent, form, {"n": 1}, {"n": 2}, {"n": 3})
    assert form.seen == [1, 2, 3]


def test_a_conversation_that_was_replaced_or_shortened_is_encoded_as_it_is() -> None:
    sent, form = Sent(), Form()
    encoded(sent, form, {"n": 1}, {"n": 2}, {"n": 3})
    assert encoded(sent, form, {"n": 9}, {"n": 3}) == [{"n": 9}, {"n": 3}]
    assert encoded(sent, form, {"n": 9}) == [{"n": 9}]
    assert encoded(sent, form) == []


def test_a_message_may_become_several_or_none() -> None:
    sent, form = Sent(), Form()
    none, two = {"n": 1, "times": 0}, {"n": 2, "times": 2}
    assert encoded(sent, form, none, two, none, two) == [two] * 4


def test_half_a_character_is_sent_as_a_replacement() -> None:
    sent, form = Sent(), Form()
    assert encoded(sent, form, {"n": "a\ud83d"}) == [{"n": "a\ufffd"}]


def wire(family: str) -> Wire:
    if family == "anthropic":
        return AnthropicWire(Access("anthropic", "http://x.example", "k"), "m")
    return OpenAiWire(Access("openai", "http://x.example", "k"), "m")


@pytest.mark.parametrize("family", ["openai", "anthropic"])
def test_every_request_of_a_conversation_is_what_a_fresh_one_would_be(family: str) -> None:
    call = {"type": "tool-call", "toolCallId": "t", "toolName": "read", "input": {"a": 1}}
    output = {"type": "text", "value": "é"}
    result = {"type": "tool-result", "toolCallId": "t", "toolName": "read", "output": output}
    talk: list[Json] = [
        {"role": "user", "content": "hi"},
        {"role": "assistant", "content": "hello"},
        {"role": "user", "content": "read"},
        {"role": "assistant", "content": [{"type": "text", "text": "yes"}, call]},
        {"role": "tool", "content": [result]},
        {"role": "assistant", "content": "done"},
        {"role": "user", "content": ""},
    ]
    kept: Json = {}
    for count in range(len(talk) + 1):
        for tools in ([], TOOLS):
            grown = ModelRequest("a", "s", talk[:count], tools=tools, kept=kept)
            fresh = ModelRequest("a", "s", talk[:count], tools=tools)
            body = wire(family).body(grown, {})
            assert body == wire(family).body(fresh, {})
            assert isinstance(json.loads(body)["messages"], list)


@pytest.mark.parametrize("family", ["openai", "anthropic"])
def test_tools_a_strategy_gives_itself_are_the_only_ones(family: str) -> None:
    request = ModelRequest("a", None, [{"role": "user", "content": "x"}], tools=TOOLS)
    body = wire(family).body(request, {"tools": [{"type": "web"}]})
    assert json.loads(body)["tools"] == [{"type": "web"}]
    assert body.count(b'"tools"') == 1
