"""The agent loop: round-trips, tools, questions, thinking, empty and failing streams."""

from collections.abc import AsyncGenerator
from pathlib import Path

import pytest

from stringd.runs.agents.tool_calls import as_object
from stringd.runs.models.port import (
    Finished,
    ModelEvent,
    ModelRequest,
    Started,
    TextDelta,
    Tokens,
    ToolRequested,
)
from stringd.runs.models.resolve import Models
from tests.runs.support import RunsServer, Watcher, kinds, scripted, sequential, serving, strategy

pytestmark = pytest.mark.anyio


async def test_thinking_is_streamed_before_the_text(server: RunsServer, watcher: Watcher) -> None:
    source = strategy(sequential("a"), a=scripted({"thinking": "hm", "text": "ok"}))
    assert kinds(await watcher.run(server.strategy(source)))[2:8] == [
        "a:step-start",
        "a:thinking-start",
        "a:thinking",
        "a:thinking-end",
        "a:text",
        "a:output",
    ]


async def test_an_agent_asks_the_human_in_the_middle_of_its_turn(
    server: RunsServer, watcher: Watcher
) -> None:
    ask = {"tools": [{"name": "ask_question", "args": {"question": "Why?"}}]}
    source = strategy(sequential("a"), a={**scripted(ask, "thanks"), "tools": ["ask_question"]})
    await watcher.ask("prepare_run", runId="r", strategyPath=str(server.strategy(source)))
    await watcher.send("start_run", runId="r", requestId="s")
    asked = (await watcher.until("request_question"))[-1]
    assert (asked["agentName"], asked["toolName"], asked["question"]) == (
        "a",
        "ask_question",
        "Why?",
    )
    assert asked["requestId"] != "s"
    late = await server.watcher()
    await late.send("subscribe", runId="r")
    assert await late.receive() == asked
    answer = {"runId": "r", "questionRequestId": asked["requestId"], "response": "because"}
    await late.send("question_response", **answer)
    rest = await watcher.until("strategy_completed")
    assert kinds(rest)[:3] == ["a:tool-result", "a:step-start", "a:text"]
    assert rest[0]["event"] == {
        "type": "tool-result",
        "toolCallId": "demo-0-0",
        "toolName": "ask_question",
        "output": 'User response: "because"',
        "status": "completed",
    }
    [kept] = [e for e in server.timeline("r") if e["type"] == "user_input"]
    assert (kept["agentName"], kept["text"], kept["source"]) == ("a", "because", "human")
    again = await watcher.ask("question_response", **answer)
    assert again["code"] == "NO_PENDING_QUESTION"
    record = (await watcher.ask("prepare_run", runId="r"))["conversation"]["records"][0]
    assert [m["role"] for m in record["responseMessages"]] == ["assistant", "tool", "assistant"]


async def test_stopping_while_a_question_waits_ends_the_run(
    server: RunsServer, watcher: Watcher
) -> None:
    ask = {"tools": [{"name": "ask_question", "args": {"question": "Why?"}}]}
    source = strategy(sequential("a"), a={**scripted(ask), "tools": ["ask_question"]})
    await watcher.ask("prepare_run", runId="r", strategyPath=str(server.strategy(source)))
    await watcher.send("start_run", runId="r")
    asked = (await watcher.until("request_question"))[-1]
    await watcher.send("stop_run", runId="r")
    assert (await watcher.ended())["error"]["code"] == "CANCELLED"
    await watcher.ask("prepare_run", runId="r")
    late = await watcher.ask(
        "question_response", runId="r", questionRequestId=asked["requestId"], response="x"
    )
    assert late["code"] == "NO_PENDING_QUESTION"


@pytest.mark.parametrize(
    ("tool", "told"),
    [
        ({"name": "launch_missiles"}, 'Tool "launch_missiles" is not available to this agent'),
        ({"name": "run_command"}, 'Tool "run_command" is not available to this agent'),
    ],
)
async def test_tools_an_agent_does_not_have_are_errors_the_model_sees(
    server: RunsServer, watcher: Watcher, tool: dict[str, str], told: str
) -> None:
    source = strategy(sequential("a"), a=scripted({"tools": [tool]}, "well then"))
    messages = await watcher.run(server.strategy(source))
    result = next(m["event"] for m in messages if kinds([m]) == ["a:tool-result"])
    assert (result["status"], result["output"], result["error"]) == ("error", "", told)
    assert messages[-1]["result"] == "well then"


async def test_bad_arguments_are_told_to_the_model(server: RunsServer, watcher: Watcher) -> None:
    ask = {"tools": [{"name": "ask_question", "args": {"q": 1}}]}
    source = strategy(sequential("a"), a={**scripted(ask, "sorry"), "tools": ["ask_question"]})
    messages = await watcher.run(server.strategy(source))
    result = next(m["event"] for m in messages if kinds([m]) == ["a:tool-result"])
    assert result["status"] == "completed"
    assert result["output"].startswith("Invalid arguments for `ask_question`:")


async def test_max_steps_bounds_the_round_trips(server: RunsServer, watcher: Watcher) -> None:
    endless = {"text": "again", "tools": [{"name": "nothing"}]}
    source = strategy(sequential("a"), a={**scripted(endless), "maxSteps": 3})
    messages = await watcher.run(server.strategy(source))
    assert kinds(messages).count("a:step-start") == 3
    assert messages[-1]["result"] == "again"


async def test_an_empty_stream_is_a_success_without_a_step_start(
    server: RunsServer, watcher: Watcher
) -> None:
    source = strategy(sequential("a"), a=scripted({"empty": True}))
    messages = await watcher.run(server.strategy(source))
    assert kinds(messages)[2:4] == ["a:output", "a:done"]
    assert messages[-1]["result"] == ""
    assert messages[-1]["usage"] == {"promptTokens": 0, "completionTokens": 0}


class Double:
    """A model registered under an exact name."""

    context_window = 1000
    max_input_tokens = None

    def __init__(self) -> None:
        self.asked: list[ModelRequest] = []
        self.closed = False

    async def stream(self, request: ModelRequest) -> AsyncGenerator[ModelEvent, None]:
        self.asked.append(request)
        try:
            yield Started()
            yield TextDelta("hi")
            if request.turn == 0:
                yield ToolRequested("t1", "nope", "not json")
            yield Finished(Tokens(input=7, output=3, total=12, cache_read=2), "length")
        finally:
            self.closed = True


async def test_a_registered_double_answers_for_its_exact_name(tmp_path: Path) -> None:
    double, models = Double(), Models()
    models.register("my/double", double)
    source = strategy(
        sequential("a"), a={"model": "my/double", "systemPrompt": "S", "modelOptions": {"seed": 1}}
    )
    async with serving(tmp_path, models=models) as server:
        watcher = await server.watcher()
        messages = await watcher.run(server.strategy(source), "q")
        output = next(m for m in messages if m["type"] == "agent_output")
        assert (output["model"], output["contextWindow"]) == ("my/double", 1000)
        assert output["usage"] == {"promptTokens": 14, "completionTokens": 6}
        assert output["contextUsage"] == {
            "totalTokens": 12,
            "inputTokens": 7,
            "outputTokens": 3,
            "inputTokenDetails": {"cacheReadTokens": 2},
        }
        assert messages[-2]["result"]["finishReason"] == "length"
        assert [request.turn for request in double.asked] == [0, 1]
        assert double.asked[0].system == "S"
        assert double.asked[0].options == {"seed": 1}
        assert double.closed
        override = await watcher.ask(
            "prepare_run",
            runId="o",
            strategyPath=str(server.strategy(source)),
            modelOverride="demo/echo",
        )
        assert override["type"] == "run_prepared"
        await watcher.send("start_run", runId="o", input="hey")
        assert (await watcher.ended())["result"] == "hey"


async def test_half_a_character_in_a_message_stops_nothing(tmp_path: Path) -> None:
    source = strategy(sequential("a"), a=scripted("{message}"))
    async with serving(tmp_path) as server:
        watcher = await server.watcher()
        await watcher.ask("prepare_run", runId="r", strategyPath=str(server.strategy(source)))
        await watcher.socket.send(r'{"type":"start_run","runId":"r","input":"hi \ud83dx"}')
        assert (await watcher.ended())["result"] == "hi \ufffdx"


def test_arguments_may_hold_half_a_character() -> None:
    assert as_object(r'{"a": "\ud83d"}') == {"a": "\ufffd"}
