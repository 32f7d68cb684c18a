"""The tools about runs, on the daemon's own runs."""

from pathlib import Path
from typing import Any

import pytest
import yaml

from tests.mcp.support import TRANSPORTS, text
from tests.requirements import proves
from tests.support.daemon import Daemon

pytestmark = pytest.mark.anyio

connect = TRANSPORTS["http"]


def write(folder: Path, *steps: str, **agents: Any) -> str:
    """A strategy file of these agents; its path."""
    flow = {"name": "F", "type": "sequential", "steps": [{"agent": step} for step in steps]}
    path = folder / "work.yaml"
    path.write_text(
        yaml.safe_dump({"name": "work", "version": "1.0", "agents": agents, "flow": flow})
    )
    return str(path)


def scripted(*script: Any, **more: Any) -> dict[str, Any]:
    return {
        "model": "demo/script",
        "providerOptions": {"demo": {"script": list(script)}},
        **more,
    }


def asks(question: str) -> dict[str, Any]:
    return {"tools": [{"name": "ask_question", "args": {"question": question}}]}


async def test_the_result_of_a_run_is_not_what_its_observer_said(
    daemon: Daemon, tmp_path: Path
) -> None:
    cycle = {"name": "C", "type": "cycle", "observer": "judge", "steps": [{"agent": "writer"}]}
    agents = {"writer": scripted("the text"), "judge": scripted("done")}
    path = tmp_path / "judged.yaml"
    path.write_text(
        yaml.safe_dump({"name": "judged", "version": "1.0", "agents": agents, "flow": cycle})
    )
    async with connect(daemon) as client:
        started = {"strategy": str(path), "input": "go"}
        ended = text(await client.call_tool("run_strategy", started))
        run_id = ended.split()[1]
        later = await client.call_tool("wait", {"handle": run_id})
    assert ended == f"Run {run_id} (judged) completed.\n---\nthe text"
    assert text(later) == ended


@proves("MCP-19")
async def test_a_run_is_started_by_name_and_its_result_returned(daemon: Daemon) -> None:
    heard: list[str] = []

    async def heard_of(progress: float, total: float | None, message: str | None) -> None:
        heard.append(message or "")

    async with connect(daemon) as client:
        started = {"strategy": "hello", "input": "world"}
        result = await client.call_tool("run_strategy", started, progress_callback=heard_of)
        run_id = text(result).split()[1]
        status = await client.call_tool("run_status", {"run_id": run_id})
        listed = await client.call_tool("run_status", {})
    assert text(result).startswith(f"Run {run_id} (hello) completed.\n---\nHello! You said: world")
    assert run_id.startswith("hello-")
    assert text(status) == text(result)
    assert f"{run_id}  completed  hello" in text(listed)
    assert any(message.startswith("hello: ") for message in heard)


async def test_a_name_nothing_has_is_answered_with_those_there_are(daemon: Daemon) -> None:
    async with connect(daemon) as client:
        refused = await client.call_tool("run_strategy", {"strategy": "helo"})
    assert refused.is_error
    error, at_hand = text(refused).split("\nStrategies at hand: ")
    assert error == "ERROR(PREPARE_FAILED): Strategy file not found: helo"
    assert "hello" in at_hand.split(", ")


async def test_input_a_run_waits_for_is_given_with_answer(daemon: Daemon, tmp_path: Path) -> None:
    path = write(tmp_path, "you", "echo", you={"type": "user"}, echo={"model": "demo/echo"})
    async with connect(daemon) as client:
        waiting = text(await client.call_tool("run_strategy", {"strategy": path}))
        run_id = waiting.split()[1]
        assert waiting.startswith(f"Run {run_id} (work) waits:\n- input:you: ")
        answered = await client.call_tool("answer", {"run_id": run_id, "text": "mine"})
        assert not answered.is_error
        result = await client.call_tool("wait", {"handle": run_id})
        late = await client.call_tool("answer", {"run_id": run_id, "text": "more"})
    assert text(result) == f"Run {run_id} (work) completed.\n---\nmine"
    assert late.is_error


async def test_a_question_is_answered_by_its_id(daemon: Daemon, tmp_path: Path) -> None:
    path = write(tmp_path, "a", a=scripted(asks("Why?"), "thanks", tools=["ask_question"]))
    async with connect(daemon) as client:
        started = {"strategy": path, "input": "go"}
        waiting = text(await client.call_tool("run_strategy", started))
        run_id = waiting.split()[1]
        question_id = waiting.splitlines()[1].removeprefix("- ").partition(": ")[0]
        assert "agent a asks: Why?" in waiting
        wrong = {"run_id": run_id, "text": "because", "id": "nothing"}
        assert (await client.call_tool("answer", wrong)).is_error
        right = {"run_id": run_id, "text": "because", "id": question_id}
        assert not (await client.call_tool("answer", right)).is_error
        result = await client.call_tool("wait", {"handle": run_id})
    assert text(result).endswith("---\nthanks")


async def test_a_long_run_goes_on_and_can_be_steered(hasty: Daemon, tmp_path: Path) -> None:
    path = write(
        tmp_path,
        "a",
        "you",
        "b",
        a=scripted("done"),
        you={"type": "user"},
        b={"model": "demo/echo"},
    )
    async with connect(hasty) as client:
        waiting = await client.call_tool("run_strategy", {"strategy": path, "input": "go"})
        run_id = text(waiting).split()[1]
        result = waiting
        while "(work) is " in text(result):
            result = await client.call_tool("wait", {"handle": run_id})
        assert text(result).endswith("---\ndone")
        over = await client.call_tool("steer", {"run_id": run_id, "text": "faster"})
    assert over.is_error
    assert "ERROR(RUN_NOT_STEERABLE)" in text(over)


async def test_steering_reaches_a_run_that_waits(daemon: Daemon, tmp_path: Path) -> None:
    path = write(tmp_path, "you", "echo", you={"type": "user"}, echo={"model": "demo/echo"})
    async with connect(daemon) as client:
        waiting = await client.call_tool("run_strategy", {"strategy": path})
        run_id = text(waiting).split()[1]
        steered = await client.call_tool("steer", {"run_id": run_id, "text": "be brief"})
        assert text(steered) == f"Queued for the next step of an agent of run {run_id}."
        await client.call_tool("answer", {"run_id": run_id, "text": "hello"})
        result = await client.call_tool("wait", {"handle": run_id})
    assert "be brief" in text(result)


async def test_a_run_that_fails_says_why(daemon: Daemon, tmp_path: Path) -> None:
    path = write(tmp_path, "a", a=scripted({"error": "no model today"}))
    async with connect(daemon) as client:
        result = await client.call_tool("run_strategy", {"strategy": path, "input": "go"})
        missing = await client.call_tool("run_strategy", {"strategy": "nowhere.yaml"})
        unknown = await client.call_tool("run_status", {"run_id": "nothing"})
    assert result.is_error
    assert "no model today" in text(result)
    assert text(missing).startswith("ERROR(PREPARE_FAILED)")
    assert unknown.is_error
    assert text(unknown).startswith("ERROR(RUN_NOT_FOUND)")


@proves("MCP-17")
async def test_a_permission_is_never_granted_through_mcp(hasty: Daemon, tmp_path: Path) -> None:
    """Neither the answer tool nor waiting decides what only the user may."""
    outside = tmp_path / "outside.txt"
    write_it = {"tools": [{"name": "create_file", "args": {"path": str(outside), "content": "x"}}]}
    path = write(tmp_path, "a", a=scripted(write_it, "done", tools=["create_file"]))
    async with connect(hasty, cwd=str(hasty.home)) as client:
        started = {"strategy": path, "input": "go"}
        waiting = text(await client.call_tool("run_strategy", started))
        run_id = waiting.split()[1]
        while "waits:" not in waiting:
            waiting = text(await client.call_tool("wait", {"handle": run_id}))
        assert "asks permission for fs.write" in waiting
        assert "only the user decides" in waiting
        permission = waiting.splitlines()[1].removeprefix("- ").partition(": ")[0]
        for arguments in ({}, {"id": permission}):
            tried = {"run_id": run_id, "text": "allow", **arguments}
            refused = await client.call_tool("answer", tried)
            assert refused.is_error
            assert "cannot be granted from here" in text(refused)
        for tool, name in (("run_status", "run_id"), ("wait", "handle")):
            status = text(await client.call_tool(tool, {name: run_id}))
            assert "asks permission for fs.write" in status
    assert not outside.exists()
