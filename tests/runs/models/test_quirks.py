"""What real servers send, though no page says so: read as a person would, over real HTTP."""

import asyncio
import json
from typing import Any

import pytest

from stringd.runs.errors import ModelError
from tests.runs.models.heard import (
    DONE,
    STARTED,
    STOP,
    added,
    begun,
    call,
    calls,
    chunk,
    heard,
    said,
    stopped,
    words,
)
from tests.runs.models.servers import event

pytestmark = pytest.mark.anyio

both = pytest.mark.parametrize("family", ["openai", "anthropic"])


def think(*pieces: str) -> list[bytes]:
    return [chunk({"content": piece}) for piece in pieces]


@pytest.mark.parametrize(
    "deltas",
    [
        [{"reasoning_content": "hmm"}, {"content": "yes"}],
        [{"reasoning": "h"}, {"reasoning": "mm", "content": None}, {"content": "yes"}],
        [{"reasoning_details": [{"type": "reasoning.text", "text": "hmm"}]}, {"content": "yes"}],
        [
            {"reasoning_details": [{"type": "reasoning.summary", "summary": "hmm"}]},
            {"content": "yes"},
        ],
        [{"reasoning": "hmm", "reasoning_details": [{"text": "hmm"}]}, {"content": "yes"}],
        [{"reasoning_content": "hmm", "content": "yes"}],
        [
            {"reasoning_details": [{"type": "reasoning.encrypted", "data": "xx"}, None]},
            {"reasoning_content": "hmm"},
            {"content": "yes"},
        ],
        [{"content": "<think>"}, {"content": "hmm"}, {"content": "</think>"}, {"content": "yes"}],
        [{"content": "<think>hmm</think>\n\nyes"}],
        [
            {"content": "\n<th"},
            {"content": "ink>h"},
            {"content": "mm</thi"},
            {"content": "nk>\n"},
            {"content": "\nyes"},
        ],
        [{"content": "<think>h</think>"}, {"content": "<think>mm</think>yes"}],
    ],
)
async def test_thoughts_are_found_wherever_a_server_puts_them(deltas: list[Any]) -> None:
    answer = await heard("openai", *map(chunk, deltas), chunk({}, "stop"), DONE)
    assert (answer.thoughts, answer.text) == ("hmm", "yes")


@pytest.mark.parametrize(
    ("text", "thoughts", "answer"),
    [
        ("Use <think> and </think> as tags.", "", "Use <think> and </think> as tags."),
        ("<thin ice>", "", "<thin ice>"),
        ("<", "", "<"),
        ("  indented", "", "  indented"),
        ("<think>never closed </", "never closed </", ""),
        ("<think></think>ok", "", "ok"),
        ("<think>a</b></think>ok <think>not</think>", "a</b>", "ok <think>not</think>"),
    ],
)
@pytest.mark.parametrize("size", [1, 3, 100])
async def test_tags_count_only_before_the_answer(
    text: str, thoughts: str, answer: str, size: int
) -> None:
    pieces = [text[at : at + size] for at in range(0, len(text), size)]
    found = await heard("openai", *think(*pieces), chunk({}, "stop"))
    assert (found.thoughts, found.text) == (thoughts, answer)


@pytest.mark.parametrize(
    "chunks",
    [
        [chunk({"role": "assistant", "content": None}), chunk({"content": "ok"}, "stop"), DONE],
        [
            chunk(
                {"content": [{"type": "text", "text": "o"}, {"type": "text", "text": "k"}]}, "stop"
            )
        ],
        [chunk({"content": ["o", {"text": "k"}, None]}, "stop")],
        [chunk({"content": "ok"}), DONE],
        [chunk({"content": "ok"}), chunk(None, "stop")],
        [chunk({"content": "ok"}), chunk({}, "stop"), DONE],
        [event({"choices": []}), event({"choices": None}), chunk({"content": "ok"}, "stop")],
        [event({}), event({"choices": [None]}), chunk({"content": "ok"}, "stop")],
        [event({"choices": [{"delta": None}]}), chunk({"content": "ok"}, "stop")],
        [chunk({"content": "ok"}, "stop", usage=None), DONE],
        [chunk({"content": "ok"}, "stop", error=None), DONE],
        [chunk({"content": "ok"}), event({"choices": [{"finish_reason": "stop"}]})],
        [chunk({"content": "ok", "tool_calls": None, "function_call": None}, "stop")],
        [b": hello\n\n", b"retry: 5\n\n", chunk({"content": "ok"}, "stop"), b": bye\n\n", DONE],
        [b"id: 1\nevent: completion\n" + chunk({"content": "ok"}, "stop"), DONE],
        [(chunk({"content": "ok"}, "stop") + DONE).replace(b"\n", b"\r\n")],
        [(chunk({"content": "o"}) + DONE).replace(b"data: ", b"data:").replace(b'"o"', b'"ok"')],
        [chunk({"content": "ok"}), chunk({}, "stop").rstrip(b"\n")],
        [b"\xef\xbb\xbf: mark\n\n" + chunk({"content": "ok"}, "stop")],
    ],
)
async def test_a_bent_openai_stream_is_still_an_answer(chunks: list[bytes]) -> None:
    answer = await heard("openai", *chunks)
    assert (answer.text, answer.finished.reason, answer.tools) == ("ok", "stop", [])


OK = [begun(0, type="text", text=""), added(0, "text_delta", text="ok")]
OVER = [said("content_block_stop", index=0), stopped(), STOP]


@pytest.mark.parametrize(
    "chunks",
    [
        [STARTED, *OK, *OVER],
        [*OK, *OVER],
        [STARTED, begun(0, type="text", text="ok"), *OVER],
        [STARTED, begun(0, type="text", text=None), *OK[1:], *OVER],
        [STARTED, *OK, stopped()],
        [STARTED, *OK, STOP],
        [STARTED, *OK, stopped(None), STOP],
        [STARTED, *OK[1:], *OVER],
        [b": hi\n\n", said("ping"), STARTED, said("ping"), *OK, said("brand_new"), *OVER],
        [(b"".join([STARTED, *OK, *OVER])).replace(b"\n", b"\r\n")],
        [b"".join([STARTED, *OK, *OVER]).replace(b"event: ", b"id: ")],
        [
            STARTED,
            begun(0, type="brand_new"),
            added(0, "brand_new_delta", x=1),
            said("content_block_stop", index=0),
            *OK,
            *OVER,
        ],
        [said("message_start", message=None), *OK, *OVER],
        [said("message_start", message={"usage": None}), *OK, stopped(usage=None), STOP],
        [STARTED, *OK, STOP.rstrip(b"\n")],
    ],
)
async def test_a_bent_anthropic_stream_is_still_an_answer(chunks: list[bytes]) -> None:
    answer = await heard("anthropic", *chunks)
    assert (answer.text, answer.finished.reason, answer.tools) == ("ok", "stop", [])


def counted(*pairs: tuple[int, int]) -> list[bytes]:
    return [
        chunk({"content": "x"}, usage={"prompt_tokens": a, "completion_tokens": b})
        for a, b in pairs
    ]


@pytest.mark.parametrize(
    ("chunks", "spent"),
    [
        (counted((5, 7), (5, 7), (5, 7)), (5, 7)),
        (counted((5, 1), (5, 2), (5, 3)), (5, 3)),
        (counted((5, 0), (0, 1), (0, 1)), (5, 2)),
        ([*counted((5, 7)), chunk({}, usage={"prompt_tokens": 0, "completion_tokens": 0})], (5, 7)),
        ([*counted((5, 7)), chunk({}, usage=None)], (5, 7)),
        ([chunk({"content": "x"})], (None, None)),
        ([chunk({"content": "x"}, usage={"prompt_tokens": None})], (None, None)),
        ([chunk({"content": "x"}, usage=[1])], (None, None)),
        ([event({"choices": [], "usage": {"prompt_tokens": 5, "completion_tokens": 7.0}})], (5, 7)),
        (
            [event({"choices": [{"usage": {"prompt_tokens": 5, "completion_tokens": 7}}]})],
            (5, 7),
        ),
        (
            [chunk({}, x_groq={"usage": {"prompt_tokens": 5, "completion_tokens": 7}})],
            (5, 7),
        ),
    ],
)
async def test_usage_is_counted_once_however_often_it_is_told(
    chunks: list[bytes], spent: tuple[int | None, int | None]
) -> None:
    answer = await heard("openai", *chunks, chunk({}, "stop"), DONE)
    assert answer.spent == spent


@pytest.mark.parametrize(
    ("chunks", "spent"),
    [
        ([STARTED, stopped(usage={"output_tokens": 5})], (9, 5)),
        (
            [STARTED, stopped(usage={"output_tokens": 3}), stopped(usage={"output_tokens": 5})],
            (9, 5),
        ),
        ([STARTED, stopped(usage={"input_tokens": 9, "output_tokens": 5})], (9, 5)),
        ([STARTED, stopped(usage={"input_tokens": 0, "output_tokens": 5})], (9, 5)),
        ([said("message_start", message={}), stopped(usage=None)], (None, None)),
        (
            [
                STARTED,
                stopped(usage={"output_tokens": 5, "cache_read_input_tokens": 4}),
                stopped(usage={"output_tokens": 5, "cache_read_input_tokens": 4}),
            ],
            (13, 5),
        ),
    ],
)
async def test_anthropic_usage_is_counted_once(
    chunks: list[bytes], spent: tuple[int | None, int | None]
) -> None:
    assert (await heard("anthropic", *chunks, STOP)).spent == spent


@pytest.mark.parametrize(
    ("finish", "reason"),
    [
        ("length", "length"),
        ("content_filter", "content-filter"),
        ("function_call", "tool-calls"),
        ("eos", "eos"),
        ("完", "完"),
    ],
)
async def test_an_answer_ends_for_the_reason_it_gives(finish: str, reason: str) -> None:
    answer = await heard("openai", chunk({"content": "x"}), chunk({}, finish), DONE)
    assert (answer.text, answer.finished.reason) == ("x", reason)


@pytest.mark.parametrize(
    ("stop", "reason"),
    [
        ("max_tokens", "length"),
        ("model_context_window_exceeded", "length"),
        ("refusal", "content-filter"),
        ("stop_sequence", "stop"),
        ("brand_new", "brand_new"),
    ],
)
async def test_an_anthropic_answer_ends_for_the_reason_it_gives(stop: str, reason: str) -> None:
    answer = await heard("anthropic", STARTED, *OK, stopped(stop), STOP)
    assert (answer.text, answer.finished.reason) == ("ok", reason)


async def test_a_refusal_is_shown_and_named() -> None:
    chunks = [chunk({"refusal": "I will "}), chunk({"refusal": "not."}), chunk({}, "stop"), DONE]
    answer = await heard("openai", *chunks)
    assert (answer.text, answer.finished.reason) == ("I will not.", "content-filter")


ADD = ("add", '{"n":1}')
SUB = ("sub", '{"n":2}')
HALVES = ('{"n"', ":1}")


@pytest.mark.parametrize(
    ("chunks", "tools"),
    [
        # With everything the form asks for.
        ([calls(call(*ADD, call_id="a", index=0), call(*SUB, call_id="b", index=1))], [ADD, SUB]),
        # Without an index.
        ([calls(call(*ADD, call_id="a")), calls(call(*SUB, call_id="b"))], [ADD, SUB]),
        (
            [
                calls(call("add", HALVES[0], call_id="a")),
                calls(call(None, HALVES[1])),
                calls(call(*SUB, call_id="b")),
            ],
            [ADD, SUB],
        ),
        # Without an id.
        ([calls(call(*ADD, index=0), call(*SUB, index=1))], [ADD, SUB]),
        # Without either.
        ([calls(call(*ADD), call(*SUB))], [ADD, SUB]),
        ([calls(call("add", "")), calls(call(None, ADD[1])), calls(call(*SUB))], [ADD, SUB]),
        ([calls(call(*ADD)), calls(call(*ADD))], [ADD, ADD]),
        # An empty id and name in what continues.
        (
            [
                calls(call("add", HALVES[0], call_id="a", index=0)),
                calls(call("", HALVES[1], call_id="", index=0)),
            ],
            [ADD],
        ),
        # The id and name again in what continues.
        (
            [
                calls(call("add", HALVES[0], call_id="a", index=0)),
                calls(call("add", HALVES[1], call_id="a", index=0)),
                calls(call("add", "", call_id="a", index=0)),
            ],
            [ADD],
        ),
        # Another id for every piece.
        (
            [
                calls(call("add", HALVES[0], call_id="a", index=0)),
                calls(call(None, HALVES[1], call_id="b", index=0)),
            ],
            [ADD],
        ),
        # One id for two calls.
        ([calls(call(*ADD, call_id="a", index=0), call(*SUB, call_id="a", index=1))], [ADD, SUB]),
        ([calls(call(*ADD, call_id="a")), calls(call(*SUB, call_id="a"))], [ADD, SUB]),
        # All with index 0, told apart by their ids.
        ([calls(call(*ADD, call_id="a", index=0), call(*SUB, call_id="b", index=0))], [ADD, SUB]),
        (
            [
                calls(call("add", "", call_id="a", index=0)),
                calls(call(None, ADD[1], index=0)),
                calls(call("sub", "", call_id="b", index=0)),
                calls(call(None, SUB[1], index=0)),
            ],
            [ADD, SUB],
        ),
        ([calls(call(*ADD, call_id="a", index=0), call(*ADD, call_id="b", index=0))], [ADD, ADD]),
        # All with index 0 and without ids.
        ([calls(call(*ADD, index=0)), calls(call(*SUB, index=0))], [ADD, SUB]),
        # A name in pieces.
        (
            [
                calls(call("a", call_id="a", index=0)),
                calls(call("dd", index=0)),
                calls(call(None, ADD[1], index=0)),
            ],
            [ADD],
        ),
        # Arguments as an object, and by turns.
        ([calls(call("add", {"n": 1}, call_id="a", index=0))], [ADD]),
        (
            [
                calls(call("add", HALVES[0], call_id="a", index=0), call("sub", "", index=1)),
                calls(call(None, SUB[1], index=1), call(None, HALVES[1], index=0)),
            ],
            [ADD, SUB],
        ),
        # Empty, null and broken ones are the agent's to judge.
        ([calls(call("add", "", call_id="a", index=0))], [("add", "")]),
        (
            [calls({"id": "a", "index": 0, "function": {"name": "add", "arguments": None}})],
            [("add", "")],
        ),
        ([calls(call("add", '{"n":', call_id="a", index=0))], [("add", '{"n":')]),
        # Pieces that are nothing.
        ([calls({"index": 0}), chunk({"tool_calls": [None, 5]})], []),
        # The old form, and one call that is not in a list.
        ([chunk({"function_call": {"name": "add", "arguments": ADD[1]}})], [ADD]),
        ([chunk({"tool_calls": call(*ADD, call_id="a", index=0)})], [ADD]),
    ],
)
@pytest.mark.parametrize("finish", ["tool_calls", "stop"])
async def test_tool_calls_are_told_apart(
    chunks: list[bytes], tools: list[tuple[str, str]], finish: str
) -> None:
    answer = await heard("openai", *chunks, chunk({}, finish), DONE)
    assert answer.tools == tools
    if tools:
        assert answer.finished.reason == "tool-calls"


async def test_ids_that_are_unique_are_kept() -> None:
    pieces = calls(call(*ADD, call_id="a", index=0), call(*SUB, call_id="b", index=1))
    assert (await heard("openai", pieces, DONE)).ids == ["a", "b"]


def tool(index: int, call_id: Any, name: str, *pieces: Any, **more: Any) -> list[bytes]:
    parts = [added(index, "input_json_delta", partial_json=each) for each in pieces]
    start = {"type": "tool_use", "name": name, "input": {}, **more}
    if call_id is not None:
        start["id"] = call_id
    return [begun(index, **start), *parts, said("content_block_stop", index=index)]


@pytest.mark.parametrize(
    ("chunks", "tools"),
    [
        ([*tool(0, "a", "add", *HALVES), *tool(1, "b", *SUB)], [ADD, SUB]),
        ([*tool(0, "a", *ADD), *tool(0, "b", *SUB)], [ADD, SUB]),
        ([*tool(0, "a", *ADD), *tool(1, "a", *SUB)], [ADD, SUB]),
        ([*tool(0, None, *ADD), *tool(1, "", *SUB)], [ADD, SUB]),
        ([*tool(0, "a", *ADD)[:-1], *tool(0, "b", *SUB)[:-1]], [ADD, SUB]),
        (tool(0, "a", "add", input={"n": 1}), [ADD]),
        (tool(0, "a", "add", "", ADD[1], None), [ADD]),
        (tool(0, "a", "add"), [("add", "")]),
        (tool(0, "a", "add", '{"n":'), [("add", '{"n":')]),
        ([added(7, "input_json_delta", partial_json="{}")], []),
    ],
)
@pytest.mark.parametrize("stop", ["tool_use", "end_turn"])
async def test_anthropic_tool_calls_are_told_apart(
    chunks: list[bytes], tools: list[tuple[str, str]], stop: str
) -> None:
    answer = await heard("anthropic", STARTED, *chunks, stopped(stop), STOP)
    assert answer.tools == tools


SMILE = "\U0001f600"


def halves(family: str) -> list[bytes]:
    """A smile whose halves are in two events."""
    pieces = ["a\ud83d", "\ude00b"]
    if family == "anthropic":
        body = [added(0, "text_delta", text=piece) for piece in pieces]
        return [STARTED, begun(0, type="text", text=""), *body, *OVER]
    return [*(chunk({"content": piece}) for piece in pieces), chunk({}, "stop"), DONE]


@both
async def test_halves_of_a_character_meet_across_events(family: str) -> None:
    answer = await heard(family, *halves(family))
    assert answer.text == f"a{SMILE}b"
    answer.text.encode()


@both
async def test_a_half_that_stays_alone_is_replaced(family: str) -> None:
    alone = [each for each in halves(family) if b"ude00" not in each]
    assert (await heard(family, *alone)).text == "a\ufffd"
    wrong = [each.replace(b"ude00", b"ud83d") for each in halves(family)]
    assert (await heard(family, *wrong)).text == "a\ufffd\ufffdb"


@both
async def test_halves_in_arguments_and_thoughts_meet_too(family: str) -> None:
    if family == "anthropic":
        chunks = [
            STARTED,
            begun(0, type="thinking", thinking=""),
            added(0, "thinking_delta", thinking="\ud83d"),
            added(0, "thinking_delta", thinking="\ude00"),
            said("content_block_stop", index=0),
            *tool(1, "a", "add", '{"n":"\ud83d', '\ude00"}'),
            *OVER[1:],
        ]
    else:
        chunks = [
            chunk({"reasoning": "\ud83d"}),
            chunk({"reasoning": "\ude00"}),
            calls(call("add", '{"n":"\ud83d', index=0)),
            calls(call(None, '\ude00"}', index=0)),
            DONE,
        ]
    answer = await heard(family, *chunks)
    assert answer.thoughts == SMILE
    assert json.loads(answer.tools[0][1]) == {"n": SMILE}


@both
async def test_characters_are_whole_wherever_the_bytes_are_cut(family: str) -> None:
    whole = b"".join(words(family, "hé", "你好", SMILE))
    raw = whole.replace(b"\\u00e9", "é".encode()).replace(b"\\u4f60", "你".encode())
    assert "é".encode() in raw
    pieces = [raw[at : at + 1] for at in range(len(raw))]
    assert (await heard(family, *pieces)).text == f"hé你好{SMILE}"


@both
async def test_a_very_large_piece_arrives_whole(family: str) -> None:
    text = "0123456789" * 200_000
    raw = b"".join(words(family, text, "end"))
    pieces = [raw[at : at + 65_536] for at in range(0, len(raw), 65_536)]
    assert (await heard(family, *pieces)).text == text + "end"


@both
async def test_a_stall_in_the_middle_ends_with_a_sentence(family: str) -> None:
    chunks = words(family, "so far", "never")
    at = next(n for n, each in enumerate(chunks) if b"never" in each)
    with pytest.raises(ModelError, match=r"broke off: it said nothing for too long \(after 6"):
        await heard(family, *chunks, silence=0.2, hold=asyncio.Event(), hold_at=at)


@both
async def test_an_answer_that_has_its_end_does_not_wait_for_more(family: str) -> None:
    chunks = words(family, "all of it")
    answer = await heard(family, *chunks, hold=asyncio.Event(), hold_at=len(chunks))
    assert answer.text == "all of it"


@both
@pytest.mark.parametrize("cut", [True, False])
async def test_a_stream_cut_inside_a_tool_call_asks_for_no_tool(family: str, cut: bool) -> None:
    if family == "anthropic":
        chunks = [STARTED, *tool(0, "a", "add", '{"n"')[:-1]]
    else:
        chunks = [calls(call("add", '{"n"', call_id="a", index=0))]
    with pytest.raises(ModelError, match="broke off"):
        await heard(family, *chunks, cut=cut)
