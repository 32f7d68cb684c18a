"""Real models over real HTTP: streams, tools, thinking, errors, retries, cuts and stops."""

import asyncio
import json
import logging
from pathlib import Path
from typing import Any

import pytest

from tests.requirements import proves
from tests.runs.models import servers
from tests.runs.models.servers import Reply, model_server
from tests.runs.support import Json, kinds, sequential, serving, strategy

pytestmark = pytest.mark.anyio

KEY = "sk-very-secret-1234567890"


@pytest.fixture(autouse=True)
def keys(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("OPENAI_BASE_URL", "ANTHROPIC_BASE_URL", "OLLAMA_BASE_URL"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("OPENAI_API_KEY", KEY)
    monkeypatch.setenv("ANTHROPIC_API_KEY", KEY)


def one(model: str, **agent: Any) -> Json:
    return strategy(sequential("a"), a={"model": model, "systemPrompt": "Be brief.", **agent})


async def run(
    monkeypatch: pytest.MonkeyPatch,
    tmp_path: Path,
    source: Json,
    *replies: Reply,
    text: str = "hello",
) -> tuple[list[Json], servers.ModelServer]:
    async with model_server(*replies) as provider:
        monkeypatch.setenv("OPENAI_BASE_URL", f"{provider.url}/v1")
        monkeypatch.setenv("OLLAMA_BASE_URL", f"{provider.url}/v1")
        monkeypatch.setenv("ANTHROPIC_BASE_URL", provider.url)
        async with serving(tmp_path) as server:
            watcher = await server.watcher()
            return await watcher.run(server.strategy(source), text), provider


async def test_text_is_streamed_as_it_arrives(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    reply = servers.openai_text("Hel", "lo")
    messages, provider = await run(monkeypatch, tmp_path, one("openai/gpt-4o"), reply)
    assert kinds(messages)[2:7] == ["a:step-start", "a:text", "a:text", "a:output", "a:done"]
    assert messages[-1]["result"] == "Hello"
    assert messages[-1]["usage"] == {"promptTokens": 11, "completionTokens": 7}
    output = next(m for m in messages if m["type"] == "agent_output")
    assert output["model"] == "openai/gpt-4o"
    assert output["contextWindow"] == 128000
    assert output["contextUsage"] == {
        "totalTokens": 18,
        "inputTokens": 11,
        "outputTokens": 7,
        "inputTokenDetails": {"noCacheTokens": 7, "cacheReadTokens": 4},
        "outputTokenDetails": {"textTokens": 5, "reasoningTokens": 2},
    }
    asked = provider.asked[0]
    assert asked.path == "/v1/chat/completions"
    assert asked.headers["authorization"] == f"Bearer {KEY}"
    assert [m["role"] for m in asked.body["messages"]] == ["system", "user"]
    assert asked.body["messages"][1]["content"] == "hello"


async def test_model_options_reach_the_provider(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    source = one(
        "openai/gpt-4o",
        modelOptions={"temperature": 0.5, "topP": 0.9, "maxOutputTokens": 100, "seed": 3},
        providerOptions={"openai": {"reasoningEffort": "low", "user": "me"}},
    )
    _, provider = await run(monkeypatch, tmp_path, source, servers.openai_text("x"))
    body = provider.asked[0].body
    assert (body["temperature"], body["top_p"], body["seed"]) == (0.5, 0.9, 3)
    assert 100 in (body.get("max_tokens"), body.get("max_completion_tokens"))
    assert (body["reasoning_effort"], body["user"]) == ("low", "me")


async def test_openai_tools_are_called_and_their_results_fed_back(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    (tmp_path / "note.txt").write_text("forty-two", "utf-8")
    source = one("openai/gpt-4o", tools=["read_file"])
    ask = servers.openai_tool("read_file", '{ "path": "note.txt" }')
    messages, provider = await run(monkeypatch, tmp_path, source, ask, servers.openai_text("done"))
    events = [m["event"] for m in messages if m["type"] == "agent_streaming"]
    called = next(e for e in events if e["type"] == "tool-call")
    assert called["args"] == '{"path":"note.txt"}'
    assert called["toolCallId"] == "call_1"
    result = next(e for e in events if e["type"] == "tool-result")
    assert "forty-two" in result["output"]
    assert provider.asked[0].body["tools"][0]["function"]["name"] == "read_file"
    answered = provider.asked[1].body["messages"][-1]
    assert answered["role"] == "tool"
    assert "forty-two" in answered["content"]
    assert messages[-1]["usage"] == {"promptTokens": 22, "completionTokens": 14}


async def test_anthropic_thinks_calls_tools_and_gets_its_thought_back(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    (tmp_path / "note.txt").write_text("forty-two", "utf-8")
    source = one(
        "anthropic/claude-test",
        tools=["read_file"],
        providerOptions={"anthropic": {"thinking": {"type": "enabled", "budgetTokens": 1024}}},
    )
    first = servers.anthropic(
        servers.anthropic_thinking("let me see", "sig-1"),
        {"start": {"type": "redacted_thinking", "data": "sealed-1"}, "deltas": []},
        {"start": {"type": "redacted_thinking", "data": "sealed-2"}, "deltas": []},
        servers.anthropic_tool("read_file", '{"path": "note.txt"}'),
        stop="tool_use",
    )
    second = servers.anthropic(servers.anthropic_text("It says ", "forty-two"))
    messages, provider = await run(monkeypatch, tmp_path, source, first, second)
    assert messages[-1].get("result") == "It says forty-two", str(messages[-1])
    assert "a:thinking" in kinds(messages)
    assert provider.asked[0].path.startswith("/v1/messages")
    assert KEY in " ".join(provider.asked[0].headers.values())
    assert provider.asked[0].body["thinking"] == {"type": "enabled", "budget_tokens": 1024}
    back = provider.asked[1].body["messages"]
    kinds_back = [part["type"] for part in back[1]["content"]]
    assert kinds_back == ["thinking", "redacted_thinking", "redacted_thinking", "tool_use"]
    assert back[1]["content"][0]["signature"] == "sig-1"
    assert [part["data"] for part in back[1]["content"][1:3]] == ["sealed-1", "sealed-2"]
    assert "forty-two" in json.dumps(back[2])


async def test_ollama_needs_no_key(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    reply = servers.openai_text("local")
    messages, _ = await run(monkeypatch, tmp_path, one("ollama/meta/llama-3"), reply)
    assert messages[-1]["result"] == "local"


async def test_a_missing_credential_is_named(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.delenv("OPENAI_API_KEY")
    async with serving(tmp_path) as server:
        watcher = await server.watcher()
        messages = await watcher.run(server.strategy(one("openai/gpt-4o")), "x")
    assert messages[-1]["error"]["code"] == "EXECUTION_ERROR"
    assert messages[-1]["error"]["message"].startswith(
        'Step "a" failed: LLM call failed: No credential found for provider "openai".'
    )


async def test_a_busy_provider_is_asked_again_when_it_says(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    busy = servers.failure("429 Too Many Requests", "slow down", **{"Retry-After": "0"})
    broken = servers.failure("500 Internal Server Error", "oops", **{"Retry-After": "0"})
    replies = (busy, broken, servers.openai_text("at last"))
    messages, provider = await run(monkeypatch, tmp_path, one("openai/gpt-4o"), *replies)
    assert messages[-1]["result"] == "at last"
    assert len(provider.asked) == 3


@proves("RUN-46")
async def test_a_provider_that_stays_broken_is_quoted(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    broken = servers.failure("503 Service Unavailable", "melting", **{"Retry-After": "0"})
    source = one("openai/gpt-4o", modelOptions={"maxRetries": 1})
    messages, provider = await run(monkeypatch, tmp_path, source, broken)
    error = messages[-1]["error"]
    assert error["code"] == "EXECUTION_ERROR"
    assert "openai/gpt-4o answered 503: melting" in error["message"]
    assert len(provider.asked) == 2


async def test_a_refused_request_is_not_repeated(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    refused = servers.failure("401 Unauthorized", f"Incorrect API key provided: {KEY}")
    messages, provider = await run(monkeypatch, tmp_path, one("openai/gpt-4o"), refused)
    assert len(provider.asked) == 1
    assert "401" in messages[-1]["error"]["message"]
    assert KEY not in json.dumps(messages)
    assert "[hidden]" in messages[-1]["error"]["message"]


async def test_an_overloaded_anthropic_is_asked_again(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    replies = [
        servers.failure(status, "Overloaded", **{"Retry-After": "0"})
        for status in ("529 Overloaded", "429 Too Many Requests")
    ]
    replies.append(servers.anthropic(servers.anthropic_text("fine")))
    messages, provider = await run(monkeypatch, tmp_path, one("anthropic/claude-test"), *replies)
    assert messages[-1]["result"] == "fine"
    assert len(provider.asked) == 3


@pytest.mark.parametrize(
    "chunks",
    [
        [b"data: {not json\n\n"],
        [b"data: []\n\n"],
        [b"\xff\xfe\x00garbage"],
        [b'data: {"choices": 5}\n\n'],
        [],
    ],
)
async def test_garbage_ends_the_step_with_a_sentence(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, chunks: list[bytes]
) -> None:
    source = one("openai/gpt-4o", modelOptions={"maxRetries": 0})
    messages, _ = await run(monkeypatch, tmp_path, source, Reply(chunks))
    assert messages[-1]["type"] == "strategy_error"
    assert messages[-1]["error"]["message"].startswith('Step "a" failed: LLM call failed: ')


async def test_a_server_that_is_not_there_is_named(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setenv("OPENAI_BASE_URL", "http://127.0.0.1:9/v1")
    async with serving(tmp_path) as server:
        watcher = await server.watcher()
        source = one("openai/gpt-4o", modelOptions={"maxRetries": 0})
        messages = await watcher.run(server.strategy(source), "x")
    assert "openai/gpt-4o could not be reached" in messages[-1]["error"]["message"]


async def test_a_slow_drip_is_shown_drop_by_drop(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    hold = asyncio.Event()
    reply = servers.openai_text("first", "second")
    reply.chunks = [b"".join(reply.chunks[:2]), *reply.chunks[2:]]
    reply.hold = hold
    async with model_server(reply) as provider:
        monkeypatch.setenv("OPENAI_BASE_URL", f"{provider.url}/v1")
        async with serving(tmp_path) as server:
            watcher = await server.watcher()
            path = str(server.strategy(one("openai/gpt-4o")))
            await watcher.ask("prepare_run", runId="r", strategyPath=path)
            await watcher.send("start_run", runId="r")
            while (await watcher.receive()).get("event", {}).get("text") != "first":
                pass
            hold.set()
            assert (await watcher.ended())["result"] == "firstsecond"


async def test_the_key_is_in_no_log_and_no_file_of_the_run(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.DEBUG, "stringd")
    broken = servers.failure("500 Oops", f"bad key {KEY}", **{"Retry-After": "0"})
    await run(monkeypatch, tmp_path, one("openai/gpt-4o"), broken)
    assert KEY not in caplog.text
    for path in (tmp_path / "data").rglob("*"):
        assert not path.is_file() or KEY.encode() not in path.read_bytes()


@proves("RUN-43")
async def test_credentials_are_kept_private_and_never_echoed(tmp_path: Path) -> None:
    async with serving(tmp_path) as server:
        watcher = await server.watcher()
        answer = await watcher.ask(
            "set_credential", providerId="groq", credentialType="api", apiKey=KEY
        )
        assert answer["type"] == "credential_set"
        assert KEY not in json.dumps(watcher.seen)
        path = tmp_path / "data" / "credentials.json"
        assert path.stat().st_mode & 0o777 == 0o600
        assert json.loads(path.read_text("utf-8")) == {
            "$global": {"groq": {"type": "api", "key": KEY}}
        }
        listed = await watcher.ask("list_providers")
        status = {p["id"]: p["authStatus"] for p in listed["providers"]}
        assert (status["groq"], status["mistral"], status["ollama"]) == (
            "configured",
            "none",
            "configured",
        )
        assert list(status) == sorted(status)
        missing = await watcher.ask("set_credential", providerId="x", credentialType="oauth")
        assert missing["code"] == "INVALID_MESSAGE"


async def test_models_are_listed_once_with_their_providers(tmp_path: Path) -> None:
    async with serving(tmp_path) as server:
        watcher = await server.watcher()
        answer = await watcher.ask("get_available_models", modelId="gpt-4o")
        names = [model["id"] for model in answer["models"]]
        assert {"gpt-4o", "gpt-4o-mini"} <= set(names)
        assert names == sorted(set(names))
        assert all("gpt-4o" in name for name in names)
        model = next(each for each in answer["models"] if each["id"] == "gpt-4o")
        assert model["providers"] == model["configuredProviders"] == ["openai"]
        assert model["hasCredentials"] is True
        assert model["capabilities"]["vision"] is True


async def test_providers_are_registered_and_unregistered(tmp_path: Path) -> None:
    async with serving(tmp_path) as server:
        watcher = await server.watcher()
        for _ in range(2):
            answer = await watcher.ask("register_provider", providerId="groq")
            assert answer["type"] == "provider_registered"
        listed = (await watcher.ask("list_providers"))["providers"]
        assert [p["id"] for p in listed if p["isCustom"]] == ["groq"]
        unknown = await watcher.ask("register_provider", providerId="nobody")
        assert unknown["code"] == "NOT_FOUND"
        for _ in range(2):
            answer = await watcher.ask("unregister_provider", providerId="groq")
            assert answer["type"] == "provider_unregistered"
        path = tmp_path / "data" / "provider-registry.json"
        assert path.read_text("utf-8") == "[]"
        assert path.stat().st_mode & 0o777 == 0o600


async def test_live_models_of_ollama_replace_the_catalog(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    tags = json.dumps({"models": [{"name": "llama3:8b"}]}).encode()
    async with model_server(Reply([tags], content_type="application/json")) as provider:
        monkeypatch.setenv("OLLAMA_BASE_URL", f"{provider.url}/v1")
        async with serving(tmp_path) as server:
            watcher = await server.watcher()
            listed = (await watcher.ask("list_providers", live=True))["providers"]
    ollama = next(p for p in listed if p["id"] == "ollama")
    assert [m["id"] for m in ollama["models"]] == ["llama3:8b"]
    assert ollama["modelsSource"] == "live"
    assert "fetchedAt" in ollama


@pytest.mark.parametrize("answer", [b"{}", b"[1]", b'{"models": 5}', b'{"models": [1]}', b"hello"])
async def test_an_answer_that_lists_no_models_is_told_in_words(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, answer: bytes
) -> None:
    async with model_server(Reply([answer], content_type="application/json")) as provider:
        monkeypatch.setenv("OLLAMA_BASE_URL", provider.url)
        async with serving(tmp_path) as server:
            watcher = await server.watcher()
            listed = (await watcher.ask("list_providers", live=True))["providers"]
    ollama = next(p for p in listed if p["id"] == "ollama")
    assert ollama["error"] == "The answer is not a list of models"
    assert (ollama["modelsSource"], ollama["models"]) == ("error", [])


def notes(messages: list[Json]) -> list[str | None]:
    """What each round-trip said of its delay when it began."""
    events = [m["event"] for m in messages if m["type"] == "agent_streaming"]
    return [event.get("note") for event in events if event["type"] == "step-start"]


async def test_a_provider_that_is_asked_again_says_so(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    busy = servers.failure("429 Too Many Requests", f"slow {KEY}", **{"Retry-After": "0"})
    source = strategy(
        sequential("a", "b"), a={"model": "openai/gpt-4o"}, b={"model": "openai/gpt-4o"}
    )
    replies = (servers.openai_text("x"), busy, servers.openai_text("y"))
    messages, _ = await run(monkeypatch, tmp_path, source, *replies)
    note = "openai/gpt-4o answered 429: slow [hidden]; asking again in 0.0 s"
    assert notes(messages)[1:] == [note]
    assert messages[-1]["result"] == "y"


async def test_a_window_the_catalog_knows_is_compacted_before_it_overflows(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    full = servers.openai_text("long talk")
    full.chunks = [
        chunk.replace(b'"prompt_tokens": 11', b'"prompt_tokens": 120000').replace(
            b'"total_tokens": 18', b'"total_tokens": 120007'
        )
        for chunk in full.chunks
    ]
    replies = (full, servers.openai_text("in short"), servers.openai_text("on we go"))
    context = {"compaction": {"keepRecent": 0}}
    source = strategy(sequential("a", "a"), a={"model": "openai/gpt-4o", "context": context})
    messages, provider = await run(monkeypatch, tmp_path, source, *replies)
    assert messages[-1]["result"] == "on we go"
    retained = next(m["event"]["event"] for m in messages if kinds([m]) == ["a:retention"])
    assert (retained["reason"], retained["recordsCompacted"]) == ("context-window", 1)
    assert retained["trigger"]["contextWindow"] == 128000
    assert retained["summaryRecord"]["text"] == "in short"
    assert "long talk" in provider.asked[1].body["messages"][-1]["content"]
    told = [message["content"] for message in provider.asked[2].body["messages"]]
    assert told == ["[Earlier conversation compacted - summary follows.]", "in short", "long talk"]
    # What each agent call used counts; the summary is nobody's answer.
    assert messages[-1]["usage"]["promptTokens"] == 120011


async def test_an_empty_summary_replaces_nothing(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    context = {"compaction": {"keepRecent": 0, "threshold": 1}}
    source = strategy(sequential("a", "a", "a"), a={"model": "openai/gpt-4o", "context": context})
    replies = (servers.openai_text("x"), servers.openai_text("y"), servers.openai_text(" "))
    messages, provider = await run(
        monkeypatch, tmp_path, source, *replies, servers.openai_text("z")
    )
    assert messages[-1]["result"] == "z"
    assert "a:retention" not in kinds(messages)
    assert len(provider.asked) == 4
    assert len(provider.asked[3].body["messages"]) == 5
