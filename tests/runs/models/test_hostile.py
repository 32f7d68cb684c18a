"""Providers at their worst, in every form they speak."""

import asyncio
import json
import logging
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from datetime import UTC, datetime, timedelta
from email.utils import format_datetime
from pathlib import Path
from typing import Any

import pytest

from tests.requirements import proves
from tests.runs.models import servers
from tests.runs.models.forms import FORMS, KEY, Form
from tests.runs.models.servers import ModelServer, Reply, model_server
from tests.runs.support import Json, RunsServer, Watcher, kinds, sequential, serving, strategy
from tests.support.daemon import WAIT_SECONDS

pytestmark = [
    pytest.mark.anyio,
    pytest.mark.parametrize("form", FORMS, ids=[form.name for form in FORMS]),
]


@asynccontextmanager
async def scene(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, form: Form, *replies: Reply
) -> AsyncIterator[tuple[ModelServer, RunsServer, Watcher]]:
    """A provider, a daemon that knows where it is, and a client."""
    for name in ("OPENAI_API_KEY", "OPENAI_BASE_URL", "ANTHROPIC_API_KEY", "ANTHROPIC_BASE_URL"):
        monkeypatch.delenv(name, raising=False)
    async with model_server(*replies) as provider:
        for name, value in form.environment(provider.url).items():
            monkeypatch.setenv(name, value)
        async with serving(tmp_path) as server:
            watcher = await server.watcher()
            data = form.credential(provider.url)
            if data is not None:
                await watcher.ask(
                    "set_credential",
                    providerId=form.name,
                    credentialType="custom",
                    customData=data,
                )
            yield provider, server, watcher


def one(form: Form, **agent: Any) -> Json:
    return strategy(sequential("a"), a={"model": form.model, **agent})


async def run(
    monkeypatch: pytest.MonkeyPatch,
    tmp_path: Path,
    form: Form,
    *replies: Reply,
    **agent: Any,
) -> tuple[list[Json], ModelServer]:
    async with scene(monkeypatch, tmp_path, form, *replies) as (provider, server, watcher):
        return await watcher.run(server.strategy(one(form, **agent)), "hello"), provider


def texts(messages: list[Json]) -> str:
    events = [m["event"] for m in messages if m["type"] == "agent_streaming"]
    return "".join(event["text"] for event in events if event["type"] == "text")


def thoughts(messages: list[Json]) -> str:
    events = [m["event"] for m in messages if m["type"] == "agent_streaming"]
    return "".join(event["text"] for event in events if event["type"] == "thinking")


def notes(messages: list[Json]) -> list[str]:
    events = [m["event"] for m in messages if m["type"] == "agent_streaming"]
    return [event["note"] for event in events if "note" in event]


@proves("RUN-46")
@pytest.mark.parametrize(
    "headers",
    [
        {"Retry-After": "0"},
        {"retry-after": "0.01"},
        {"Retry-After": format_datetime(datetime.now(UTC) - timedelta(hours=1), usegmt=True)},
        {"Retry-After": format_datetime(datetime.now(UTC) + timedelta(seconds=1), usegmt=True)},
        {"retry-after-ms": "5"},
    ],
)
async def test_it_is_asked_again_after_the_time_it_names(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, form: Form, headers: Json
) -> None:
    status = "429 Too Many Requests" if "ms" in str(headers) else "503 Service Unavailable"
    replies = (form.failure(status, "slow down", **headers), form.text("at last"))
    messages, provider = await run(monkeypatch, tmp_path, form, *replies)
    assert messages[-1]["result"] == "at last"
    assert len(provider.asked) == 2


async def test_one_that_wants_more_patience_than_anybody_has_is_not_asked_early(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, form: Form
) -> None:
    reply = form.failure("429 Too Many Requests", "quota used up", **{"Retry-After": "86400"})
    messages, provider = await run(monkeypatch, tmp_path, form, reply, form.text("no"))
    assert len(provider.asked) == 1
    error = messages[-1]["error"]["message"]
    assert f"{form.model} answered 429: quota used up" in error
    assert "86400" in error


@pytest.mark.parametrize("cut", [True, False])
async def test_wherever_a_stream_is_cut_the_step_ends_with_what_arrived(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, form: Form, cut: bool
) -> None:
    whole = form.text("one ", "two ", "three")
    ends = 2 if form.family == "anthropic" else 3
    for count in range(1, len(whole.chunks) - ends + 1):
        reply = Reply(whole.chunks[:count], cut=cut)
        folder = tmp_path / str(count)
        folder.mkdir()
        messages, _ = await run(monkeypatch, folder, form, reply, modelOptions={"maxRetries": 0})
        assert messages[-1]["type"] == "strategy_error", (count, messages[-1])
        error = messages[-1]["error"]["message"]
        assert error.startswith('Step "a" failed: LLM call failed: '), error
        arrived = texts(messages)
        assert "one two three".startswith(arrived)
        if arrived:
            assert f"after {len(arrived)} characters" in error


@proves("RUN-47")
async def test_an_error_inside_the_stream_is_quoted_after_what_arrived(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, form: Form
) -> None:
    reply = form.text("so far", finish=None)
    reply.chunks = [*reply.chunks, form.error(f"overloaded {KEY}")]
    messages, provider = await run(monkeypatch, tmp_path, form, reply)
    assert texts(messages) == "so far"
    error = messages[-1]["error"]
    assert error["code"] == "EXECUTION_ERROR"
    assert "overloaded" in error["message"]
    assert error["message"].count(form.model) == 1
    assert "after 6 characters" in error["message"]
    assert len(provider.asked) == 1
    assert form.name == "ollama" or KEY not in json.dumps(messages)


async def test_an_error_as_the_first_piece_is_quoted(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, form: Form
) -> None:
    reply = Reply([form.error("no capacity")])
    messages, _ = await run(monkeypatch, tmp_path, form, reply, modelOptions={"maxRetries": 0})
    assert "no capacity" in messages[-1]["error"]["message"]


@pytest.mark.parametrize("hold_at", [-1, 0, 2])
async def test_stopping_closes_the_connection_at_once(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, form: Form, hold_at: int
) -> None:
    reply = form.text("first", "never")
    reply.hold, reply.hold_at = asyncio.Event(), hold_at
    async with scene(monkeypatch, tmp_path, form, reply) as (provider, server, watcher):
        path = str(server.strategy(one(form)))
        await watcher.ask("prepare_run", runId="r", strategyPath=path)
        await watcher.send("start_run", runId="r")
        async with asyncio.timeout(WAIT_SECONDS):
            await provider.held.wait()
        await watcher.send("stop_run", runId="r")
        assert (await watcher.ended())["error"]["code"] == "CANCELLED"
        async with asyncio.timeout(WAIT_SECONDS):
            await provider.left.wait()
        assert len(provider.asked) == 1


async def test_stopping_ends_the_wait_before_another_try(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, form: Form
) -> None:
    busy = form.failure("429 Too Many Requests", "later", **{"Retry-After": "250"})
    async with scene(monkeypatch, tmp_path, form, form.text("x"), busy) as scenery:
        provider, server, watcher = scenery
        source = strategy(sequential("a", "a"), a={"model": form.model})
        path = str(server.strategy(source))
        await watcher.ask("prepare_run", runId="r", strategyPath=path)
        await watcher.send("start_run", runId="r", input="x")
        while "asking again in 250.0 s" not in str((await watcher.receive()).get("event")):
            pass
        await watcher.send("stop_run", runId="r")
        assert (await watcher.ended())["error"]["code"] == "CANCELLED"
        assert len(provider.asked) == 2


@proves("RUN-43")
async def test_no_secret_is_in_any_log_file_or_message(
    monkeypatch: pytest.MonkeyPatch,
    tmp_path: Path,
    form: Form,
    caplog: pytest.LogCaptureFixture,
) -> None:
    caplog.set_level(logging.DEBUG)
    for name in ("openai", "anthropic", "httpx2", "httpcore2", "pydantic_ai", "stringd"):
        caplog.set_level(logging.DEBUG, name)
    replies = (
        form.failure("500 Oops", f"bad key {KEY}", **{"Retry-After": "0"}),
        form.failure("429 Slow", f"still {KEY}", **{"Retry-After": "0"}),
        form.failure("401 Unauthorized", f"Incorrect API key provided: {KEY}"),
    )
    async with scene(monkeypatch, tmp_path, form, *replies) as (provider, server, watcher):
        await watcher.run(server.strategy(one(form)), "hello")
        await watcher.ask("list_providers", live=True)
        sent = KEY in " ".join(provider.asked[0].headers.values())
        if form.name == "ollama":
            # It is asked without a key, so there is none that its words could give away.
            assert not sent
            return
        assert sent
        assert KEY not in json.dumps(watcher.seen)
    assert len(provider.asked) >= 3
    # The client of this test logs what it sends; that is no log of the daemon.
    ours = [r for r in caplog.records if not r.name.startswith("websockets")]
    assert len(ours) > 10
    assert KEY not in " ".join(f"{record.getMessage()} {record.args}" for record in ours)
    assert holding(tmp_path, KEY) == (["credentials.json"] if form.name == "mine" else [])


def holding(folder: Path, text: str) -> list[str]:
    files = (path for path in folder.rglob("*") if path.is_file())
    return [path.name for path in files if text.encode() in path.read_bytes()]


async def test_a_redirect_takes_no_key_elsewhere(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, form: Form
) -> None:
    async with model_server(form.text("stolen")) as thief:
        reply = Reply([b""], "307 Temporary Redirect", {"Location": f"{thief.url}/x"})
        messages, _ = await run(monkeypatch, tmp_path, form, reply)
        heard = " ".join(value for asked in thief.asked for value in asked.headers.values())
    assert KEY not in heard
    assert thief.asked == []
    assert messages[-1]["type"] == "strategy_error"
    assert "307" in messages[-1]["error"]["message"]


@pytest.mark.parametrize("key", ["sk-with-newline\n", "sk-in\r\nX-Evil: 1", "sk-\u20ac-sign-key"])
async def test_a_key_no_header_can_carry_is_refused_unseen(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, form: Form, key: str
) -> None:
    async with scene(monkeypatch, tmp_path, form, form.text("ok")) as (provider, server, watcher):
        for name in ("OPENAI_API_KEY", "ANTHROPIC_API_KEY"):
            monkeypatch.delenv(name, raising=False)
        data: Json = {"baseURL": f"{provider.url}{'' if form.family == 'anthropic' else '/v1'}"}
        await watcher.ask(
            "set_credential",
            providerId=form.name,
            credentialType="custom",
            customData={**data, "apiKey": key},
        )
        messages = await watcher.run(server.strategy(one(form)), "x")
        seen = json.dumps(watcher.seen)
    if key.strip().isascii() and key.strip().isprintable():
        assert messages[-1].get("result") == "ok", messages[-1]
    else:
        assert messages[-1]["type"] == "strategy_error"
        assert provider.asked == []
    assert not any("x-evil" in asked.headers for asked in provider.asked)
    assert key[:8] not in seen


async def test_thoughts_are_told_apart_from_the_answer(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, form: Form
) -> None:
    messages, _ = await run(monkeypatch, tmp_path, form, form.thinking("hmm", "yes"))
    assert (thoughts(messages), texts(messages)) == ("hmm", "yes")
    assert messages[-1]["result"] == "yes"
    shape = [kind for kind in kinds(messages) if "thinking" in kind]
    assert shape == ["a:thinking-start", "a:thinking", "a:thinking-end"]


async def test_the_schema_of_an_answer_reaches_the_provider(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, form: Form
) -> None:
    schema = {
        "type": "object",
        "properties": {"unusual": {"type": "integer"}},
        "required": ["unusual"],
    }
    reply = form.text('{"unus', 'ual": 1}')
    messages, provider = await run(monkeypatch, tmp_path, form, reply, outputSchema=schema)
    assert json.loads(messages[-1]["result"]) == {"unusual": 1}
    assert "unusual" in json.dumps(provider.asked[0].body)
    if form.name == "openai":
        assert provider.asked[0].body["response_format"]["type"] == "json_schema"


@pytest.mark.parametrize(
    ("args", "seen"),
    [
        ('{"path": "note.txt"}', "forty-two"),
        ("", "Invalid arguments"),
        ("{", ""),
        ("[1]", ""),
        ('{"path": 5}', "Invalid arguments"),
        ('{"path": "note.txt"}  ', "forty-two"),
        ('{"path": "note.txt", "nosuch": 1}', ""),
        ("null", ""),
        (r'{"path": "\ud83d"}', ""),
    ],
)
async def test_whatever_a_model_says_to_a_tool_the_run_goes_on(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, form: Form, args: str, seen: str
) -> None:
    (tmp_path / "note.txt").write_text("forty-two", "utf-8")
    replies = (form.tool("read_file", args), form.text("done"))
    messages, provider = await run(monkeypatch, tmp_path, form, *replies, tools=["read_file"])
    assert messages[-1].get("result") == "done", messages[-1]
    results = [m["event"] for m in messages if m.get("event", {}).get("type") == "tool-result"]
    assert len(results) == 1
    assert seen in results[0]["output"] + results[0].get("error", "")
    assert len(provider.asked) == 2


async def test_a_tool_nobody_has_is_named_and_the_run_goes_on(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, form: Form
) -> None:
    replies = (form.tool("no_such_tool", "{}"), form.text("done"))
    messages, provider = await run(monkeypatch, tmp_path, form, *replies, tools=["read_file"])
    assert messages[-1].get("result") == "done", messages[-1]
    assert "no_such_tool" in json.dumps(provider.asked[1].body["messages"][-1])


async def test_letters_cut_in_two_and_pings_between_change_nothing(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, form: Form
) -> None:
    whole = b"".join(form.text("h\u00e9llo ", "\U0001f600 \u4f60\u597d").chunks)
    raw = whole.replace(b"\\u00e9", "\u00e9".encode()).replace(b"\\u4f60", "\u4f60".encode())
    ping = b': ping\n\nevent: ping\ndata: {"type": "ping"}\n\n'
    lead = ping if form.family == "anthropic" else b": ping\n\n"
    pieces = [lead, *(raw[at : at + 7] for at in range(0, len(raw), 7))]
    messages, _ = await run(monkeypatch, tmp_path, form, Reply(pieces))
    assert messages[-1].get("result") == "h\u00e9llo \U0001f600 \u4f60\u597d", messages[-1]


async def test_a_server_that_never_hangs_up_ends_nothing_late(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, form: Form
) -> None:
    reply = form.text("all of it")
    reply.hold, reply.hold_at = asyncio.Event(), len(reply.chunks)
    messages, _ = await run(monkeypatch, tmp_path, form, reply)
    assert messages[-1]["result"] == "all of it"


@pytest.mark.parametrize("body", [b"<html>Bad gateway</html>", b"", b'{"detail": "not here"}'])
async def test_a_failure_in_any_words_is_a_sentence(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, form: Form, body: bytes
) -> None:
    reply = Reply([body] if body else [], "404 Not Found", content_type="text/html")
    messages, provider = await run(monkeypatch, tmp_path, form, reply)
    assert len(provider.asked) == 1
    assert f"{form.model} answered 404" in messages[-1]["error"]["message"]


async def test_usage_of_every_round_trip_is_added_up(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, form: Form
) -> None:
    replies = (form.tool("todo_get", "{}"), form.text("done"))
    messages, _ = await run(monkeypatch, tmp_path, form, *replies, tools=["todo_get"])
    each = (9, 5) if form.family == "anthropic" else (11, 7)
    assert messages[-1]["usage"] == {"promptTokens": 2 * each[0], "completionTokens": 2 * each[1]}
    output = next(m for m in messages if m["type"] == "agent_output")
    assert output["contextUsage"]["totalTokens"] == sum(each)


async def test_thoughts_in_tags_are_thoughts(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, form: Form
) -> None:
    reply = form.text("<think>", "hm", "m", "</think>", "ok")
    messages, _ = await run(monkeypatch, tmp_path, form, reply)
    # Servers with a field for thoughts write no such tags: there it is text like any other.
    expected = ("", "<think>hmm</think>ok") if form.family == "anthropic" else ("hmm", "ok")
    assert (thoughts(messages), texts(messages)) == expected


async def test_options_have_the_names_each_server_knows(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, form: Form
) -> None:
    options = {"maxOutputTokens": 77, "topK": 5, "temperature": 0.25}
    _, provider = await run(monkeypatch, tmp_path, form, form.text("x"), modelOptions=options)
    body = provider.asked[0].body
    limit = "max_completion_tokens" if form.name == "openai" else "max_tokens"
    assert (body[limit], body["temperature"]) == (77, 0.25)
    assert ("max_tokens" in body) is (form.name != "openai")
    assert body.get("top_k") == (None if form.name == "openai" else 5)


async def test_tools_asked_for_side_by_side_keep_their_arguments(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, form: Form
) -> None:
    first, second = servers.side_by_side(
        form.family,
        ("todo_add", '{"content"', ': "a"}'),
        ("todo_add", '{"content": ', '"b"}'),
    )
    replies = (first, second, form.text("done"))
    messages, provider = await run(monkeypatch, tmp_path, form, *replies, tools=["todo_add"])
    calls = [m["event"] for m in messages if m.get("event", {}).get("type") == "tool-call"]
    assert [call["args"] for call in calls[:2]] == ['{"content":"a"}', '{"content":"b"}']
    assert len({call["toolCallId"] for call in calls}) == len(calls)
    assert messages[-1].get("result") == "done", messages[-1]
    assert len(provider.asked) == 3


@pytest.mark.parametrize(
    ("openai", "anthropic", "ours"),
    [
        ("length", "max_tokens", "length"),
        ("content_filter", "refusal", "content-filter"),
        ("eos", "pause_turn", None),
        ("brand new reason", "brand new reason", None),
    ],
)
async def test_an_answer_that_ends_for_any_reason_is_an_answer(
    monkeypatch: pytest.MonkeyPatch,
    tmp_path: Path,
    form: Form,
    openai: str,
    anthropic: str,
    ours: str | None,
) -> None:
    if form.family == "anthropic":
        reply = servers.anthropic(servers.anthropic_text("x"), stop=anthropic)
    else:
        reply = servers.openai_text("x", finish=openai)
    messages, _ = await run(monkeypatch, tmp_path, form, reply)
    completed = next(m for m in messages if m["type"] == "step_completed")
    assert completed["result"]["text"] == "x"
    theirs = anthropic if form.family == "anthropic" else openai
    assert completed["result"]["finishReason"] in (ours or theirs, "stop")


async def test_provider_options_become_fields_of_the_request(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, form: Form
) -> None:
    options = {"thinking": {"type": "enabled", "budgetTokens": 2048}, "someOption": {"aB": [1]}}
    _, provider = await run(
        monkeypatch,
        tmp_path,
        form,
        form.text("x"),
        providerOptions={form.name: options},
        modelOptions={"maxRetries": -1},
    )
    body = provider.asked[0].body
    assert body["thinking"] == {"type": "enabled", "budget_tokens": 2048}
    assert body["some_option"] == {"a_b": [1]}


@pytest.mark.parametrize(
    ("kind", "body", "said"),
    [
        ("application/json", b'{"error": {"message": "quota used up"}}', "quota used up"),
        ("application/json; charset=utf-8", b'{"error": "out of credit"}', "out of credit"),
        ("application/json", b'{"choices": [{"message": {"content": "whole"}}]}', "whole"),
        ("text/html", b"<html>Please log in</html>", "Please log in"),
        ("text/html", b"\xff" * 5000, "\ufffd"),
    ],
)
async def test_an_answer_that_is_no_stream_is_quoted(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, form: Form, kind: str, body: bytes, said: str
) -> None:
    messages, provider = await run(monkeypatch, tmp_path, form, Reply([body], content_type=kind))
    error = messages[-1]["error"]["message"]
    assert f"{form.model} answered without a stream: " in error
    assert said in error
    assert len(error) < 500
    assert len(provider.asked) == 1


@pytest.mark.parametrize("kind", ["application/json", "text/plain", "application/octet-stream"])
async def test_a_stream_under_another_name_is_still_one(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, form: Form, kind: str
) -> None:
    reply = form.text("still ", "here")
    reply.content_type = kind
    messages, _ = await run(monkeypatch, tmp_path, form, reply)
    assert messages[-1].get("result") == "still here", messages[-1]
