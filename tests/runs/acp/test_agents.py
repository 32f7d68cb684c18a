"""Coding agents of the user's as agents of a run: a real process, the protocol, the run's wire."""

import sys
from pathlib import Path
from typing import Any

import pytest

from stringd.runs import offer_of
from tests.runs.support import Json, Watcher, sequential, serving, strategy

pytestmark = pytest.mark.anyio
AGENT = Path(__file__).with_name("agent.py")


def coder(*options: str, **more: Any) -> Json:
    return {"type": "acp", "command": [sys.executable, str(AGENT), *options], **more}


def streamed(messages: list[Json], kind: str) -> list[Json]:
    events = (each["event"] for each in messages if each["type"] == "agent_streaming")
    return [each for each in events if each["type"] == kind]


async def run(tmp_path: Path, text: str, agent: Json | None = None) -> list[Json]:
    async with serving(tmp_path) as server:
        watcher = await server.watcher()
        path = server.own(strategy(sequential("coder"), coder=agent or coder()))
        return await watcher.run(path, text)


async def test_what_it_says_is_the_answer(tmp_path: Path) -> None:
    messages = await run(tmp_path, "hello", coder(systemPrompt="Be brief."))
    assert messages[-1]["result"] == "heard: Be brief.\n\nhello"
    assert messages[-1]["usage"] == {"promptTokens": 5, "completionTokens": 4}
    output = next(each for each in messages if each["type"] == "agent_output")
    assert output["model"] == f"acp/{sys.executable}"


async def test_thoughts_and_plans_are_events_of_the_run(tmp_path: Path) -> None:
    messages = await run(tmp_path, "think")
    assert [each["text"] for each in streamed(messages, "thinking")] == ["hm"]
    assert len(streamed(messages, "thinking-end")) == 1
    [plan] = streamed(messages, "tool-result")
    assert (plan["toolName"], plan["output"]) == ("plan", "- [x] look")


async def decided(tmp_path: Path, text: str, *decisions: Json) -> tuple[list[Json], list[Json]]:
    """A run whose agent asks for something, and the prompts it made."""
    async with serving(tmp_path) as server:
        watcher = await server.watcher()
        path = server.own(strategy(sequential("coder"), coder=coder()))
        await watcher.ask("prepare_run", runId="d1", strategyPath=str(path))
        await watcher.send("start_run", runId="d1", input=text)
        prompts: list[Json] = []
        messages: list[Json] = []
        for decision in decisions:
            messages += await watcher.until("request_permission")
            prompts.append(messages[-1])
            await watcher.send(
                "permission_decision",
                runId="d1",
                permissionRequestId=prompts[-1]["requestId"],
                **decision,
            )
        messages += await watcher.until("strategy_completed", "strategy_error")
        return messages, prompts


async def test_its_permission_request_is_a_prompt_of_the_run(tmp_path: Path) -> None:
    messages, [prompt] = await decided(tmp_path, "run make all", {"decision": "allow"})
    assert (prompt["toolName"], prompt["operation"]) == ("execute", "fs.exec")
    assert prompt["resource"] == "make all"
    assert messages[-1]["result"] == "yes"
    [call] = streamed(messages, "tool-call")
    assert '"command":"make all"' in call["args"]
    assert streamed(messages, "tool-result")[0]["output"] == "ran: yes"


async def test_a_denial_is_its_rejection_and_the_reason_is_told(tmp_path: Path) -> None:
    denial = {"decision": "deny", "reason": "use ninja"}
    messages, _ = await decided(tmp_path, "run make all", denial)
    told = 'heard: The user denied "`make all`" and says: use ninja'
    assert messages[-1]["result"] == f"no\n\n{told}"


async def test_files_it_asks_for_pass_the_runs_policy(tmp_path: Path) -> None:
    (tmp_path / "a.txt").write_text("one\ntwo\nthree\n")
    assert (await run(tmp_path, f"read {tmp_path}/a.txt"))[-1]["result"] == "two"
    new = tmp_path / "new" / "b.txt"
    messages, [prompt] = await decided(tmp_path, f"write {new} text", {"decision": "allow"})
    assert (prompt["operation"], prompt["resource"]) == ("fs.write", str(new))
    assert messages[-1]["result"] == "written"
    assert new.read_text() == "text"
    (tmp_path / "other").mkdir()
    secret = await run(tmp_path / "other", f"read {tmp_path}/other/data/credentials.json")
    assert "denied" in secret[-1]["result"]


async def test_it_asks_only_so_much_at_once(tmp_path: Path) -> None:
    messages = await run(tmp_path, "flood 65")
    assert messages[-1]["result"] == "more than 64 requests at once"


async def test_its_end_ends_the_step_with_its_last_words(tmp_path: Path) -> None:
    messages = await run(tmp_path, "crash")
    assert messages[-1]["type"] == "strategy_error"
    assert "out of luck" in messages[-1]["error"]["message"]


async def test_a_stop_of_the_run_is_its_stop(tmp_path: Path) -> None:
    async with serving(tmp_path) as server:
        watcher: Watcher = await server.watcher()
        path = server.own(strategy(sequential("coder"), coder=coder()))
        await watcher.ask("prepare_run", runId="r1", strategyPath=str(path))
        await watcher.send("start_run", runId="r1", input=f"hang {tmp_path}/told")
        while (await watcher.receive()).get("event", {}).get("type") != "text":
            pass
        await watcher.send("stop_run", runId="r1")
        assert (await watcher.ended())["error"]["code"] == "CANCELLED"
    # The service has waited for what was under way.
    assert (tmp_path / "told").read_text() == "cancelled"


@pytest.mark.parametrize("loads", [True, False])
async def test_a_continued_run_takes_its_session_up_or_tells_what_was_said(
    tmp_path: Path, loads: bool
) -> None:
    agent = coder("--loads") if loads else coder()
    async with serving(tmp_path) as server:
        watcher = await server.watcher()
        path = server.own(strategy(sequential("coder"), coder=agent))
        await watcher.run(path, "first")
        await watcher.ask("prepare_run", runId="r1")
        await watcher.send("continue_run", runId="r1", input="second")
        result = (await watcher.ended())["result"]
    told = "Before, you were asked:\nfirst\n\nand answered:\nheard: first\n\n"
    assert result == ("heard: second" if loads else f"heard: {told}second")


async def test_a_program_that_is_not_there_is_named_with_what_to_do(tmp_path: Path) -> None:
    messages = await run(tmp_path, "x", {"type": "acp", "command": ["no-such-agent-program"]})
    text = messages[-1]["error"]["message"]
    assert "no-such-agent-program is not installed: install it" in text


async def test_one_that_wants_a_login_says_so(tmp_path: Path) -> None:
    messages = await run(tmp_path, "x", coder("--login"))
    assert "Log in to the agent first" in messages[-1]["error"]["message"]


@pytest.mark.parametrize(
    ("agent", "why"),
    [
        ({"type": "acp"}, "needs either agent (one of claude, codex, gemini, opencode) or command"),
        ({"type": "acp", "agent": "clod"}, "claude"),
        ({"type": "acp", "command": []}, "command"),
    ],
)
async def test_what_is_wrong_with_it_is_told_at_preparation(
    tmp_path: Path, agent: Json, why: str
) -> None:
    async with serving(tmp_path) as server:
        watcher = await server.watcher()
        path = server.own(strategy(sequential("coder"), coder=agent))
        refused = await watcher.ask("prepare_run", runId="r1", strategyPath=str(path))
    assert refused["type"] == "error"
    assert why in refused["message"]


async def test_a_strangers_strategy_starts_no_program(tmp_path: Path) -> None:
    async with serving(tmp_path) as server:
        watcher = await server.watcher()
        path = server.strategy(strategy(sequential("coder"), coder=coder()))
        refused = await watcher.ask("prepare_run", runId="r1", strategyPath=str(path))
        assert "is not trusted" in refused["message"]
        [line] = offer_of(path, server.trust_store).uses
        assert line == f"agent coder: {sys.executable} {AGENT}"
        server.trust(path)
        assert (await watcher.run(path, "hello", run_id="r2"))[-1]["result"] == "heard: hello"
