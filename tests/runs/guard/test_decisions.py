"""Answers with another command, and decisions that are listed and taken back."""

from pathlib import Path
from typing import Any

import pytest

from tests.runs.support import Json, Watcher, scripted, sequential, serving, strategy

pytestmark = pytest.mark.anyio


def runs(*commands: str) -> Json:
    calls = [{"tools": [{"name": "run_command", "args": {"command": each}}]} for each in commands]
    return {**scripted(*calls, "end"), "tools": ["run_command"]}


async def begun(watcher: Watcher, path: Path, cwd: Path) -> Json:
    await watcher.ask("prepare_run", runId="r", strategyPath=str(path), cwd=str(cwd))
    await watcher.send("start_run", runId="r", input="x")
    return (await watcher.until("request_permission"))[-1]


async def decide(watcher: Watcher, asked: Json, decision: str, **more: Any) -> None:
    await watcher.send(
        "permission_decision",
        runId="r",
        permissionRequestId=asked["requestId"],
        decision=decision,
        requestId="decide",
        **more,
    )


def outputs(seen: list[Json]) -> list[str]:
    events = [each["event"] for each in seen if each["type"] == "agent_streaming"]
    return [each["output"] for each in events if each["type"] == "tool-result"]


async def test_a_command_can_be_allowed_in_other_words(tmp_path: Path) -> None:
    async with serving(tmp_path, approve_commands=["."]) as server:
        watcher = await server.watcher()
        path = server.strategy(strategy(sequential("a"), a=runs("touch asked")))
        asked = await begun(watcher, path, tmp_path)
        assert asked["details"]["editable"] is True
        for decision in ("deny", "allow-session"):
            await decide(watcher, asked, decision, command="touch mine")
            refused = (await watcher.until("error"))[-1]
            assert refused["code"] == "INVALID_MESSAGE"
        await decide(watcher, asked, "allow", command="touch edited; echo\nsecond")
        seen = await watcher.until("strategy_completed")
        told = outputs(seen)[0]
        assert told.startswith("NOTE: The user ran this instead: touch edited; echo\nsecond\n")
        assert [name for name in ("edited", "asked", "mine") if (tmp_path / name).exists()] == [
            "edited"
        ]
        kept = [e for e in server.timeline("r") if e["type"] == "permission_decision"]
        assert kept[0]["command"] == "touch edited; echo\nsecond"


async def test_what_nobody_may_run_is_not_allowed_by_writing_it_into_the_answer(
    tmp_path: Path,
) -> None:
    async with serving(tmp_path, approve_commands=["."]) as server:
        watcher = await server.watcher()
        path = server.strategy(strategy(sequential("a"), a=runs("true")))
        asked = await begun(watcher, path, tmp_path)
        await decide(watcher, asked, "allow", command="mkfs.no-such-program /nowhere")
        seen = await watcher.until("strategy_completed")
        assert "is denied by" in outputs(seen)[0]


async def test_a_request_without_a_command_takes_none(tmp_path: Path) -> None:
    reading = {"tools": [{"name": "read_file", "args": {"path": "../out.txt"}}]}
    (tmp_path / "work").mkdir()
    async with serving(tmp_path) as server:
        watcher = await server.watcher()
        reader = {**scripted(reading, "end"), "tools": ["read_file"]}
        path = server.strategy(strategy(sequential("a"), a=reader))
        asked = await begun(watcher, path, tmp_path / "work")
        assert "editable" not in asked["details"]
        await decide(watcher, asked, "allow", command="touch mine")
        assert (await watcher.until("error"))[-1]["code"] == "INVALID_MESSAGE"
        await decide(watcher, asked, "deny")
        await watcher.until("strategy_completed")


async def test_session_answers_and_rules_are_listed_and_taken_back(tmp_path: Path) -> None:
    async with serving(tmp_path, approve_commands=["^true"]) as server:
        watcher = await server.watcher()
        path = server.strategy(
            strategy(sequential("a"), a=runs("true 1", "true 2", "true 1", "true 1"))
        )
        asked = await begun(watcher, path, tmp_path)
        assert (await watcher.ask("list_decisions", runId="r"))["decisions"] == []
        await decide(watcher, asked, "allow-session")
        second = (await watcher.until("request_permission"))[-1]
        await watcher.send(
            "update_policy", runId="r", tool="write_file", mode="write", deny=["*.lock"]
        )
        listed = (await watcher.ask("list_decisions", runId="r"))["decisions"]
        brief = [(e["kind"], e["toolName"], e["decision"], e["resource"]) for e in listed]
        assert brief == [
            ("session", "run_command", "allow", "true 1"),
            ("policy", "write_file", "deny", "*.lock"),
        ]
        gone = await watcher.ask("revoke_decision", runId="r", decisionId="none")
        assert gone["code"] == "NOT_FOUND"
        for each in listed:
            left = await watcher.ask("revoke_decision", runId="r", decisionId=each["decisionId"])
        assert left["decisions"] == []
        await decide(watcher, second, "deny-session")
        third = (await watcher.until("request_permission"))[-1]
        assert third["resource"] == "true 1"
        await decide(watcher, third, "deny-session")
        seen = await watcher.until("strategy_completed")
        assert "denied" in outputs(seen)[-1]
        over = await watcher.ask("list_decisions", runId="r")
        assert over["code"] == "RUN_NOT_FOUND"
