"""Agents use topics of the daemon they run in, and the gate beside it."""

import asyncio
from pathlib import Path

import pytest
import yaml
from websockets.asyncio.client import connect

from tests.gate.support import QUESTION, running_gate
from tests.runs.support import TERMINAL, Json, Watcher, sequential, strategy
from tests.runs.tools.support import Call, agent
from tests.support.daemon import Daemon

pytestmark = pytest.mark.anyio


async def outputs(tmp_path: Path, *calls: Call, **environment: str) -> list[str]:
    path = tmp_path / "s.yaml"
    path.write_text(yaml.safe_dump(strategy(sequential("a"), a=agent(*calls))), "utf-8")
    work = tmp_path / "work"
    work.mkdir()
    (work / "note.md").write_text("# A note\n\nIn the workspace.\n", "utf-8")
    home = str(tmp_path / "user-home")
    with Daemon(tmp_path, STRINGD_HOME=home, **environment) as daemon:
        url = f"ws://127.0.0.1:{daemon.port}/ws"
        async with connect(url, max_queue=None, proxy=None) as socket:
            watcher = Watcher(socket)
            fields: Json = {"runId": "r", "strategyPath": str(path), "cwd": str(work)}
            await watcher.ask("prepare_run", **fields)
            await watcher.send("start_run", runId="r")
            messages = await watcher.until("request_permission", *TERMINAL)
            while messages[-1]["type"] == "request_permission":
                # A shell of the user's is outside the sandbox.
                assert messages[-1]["resource"] == "echo from-the-shell"
                allowed = {"permissionRequestId": messages[-1]["requestId"], "decision": "allow"}
                await watcher.send("permission_decision", runId="r", **allowed)
                messages += await watcher.until("request_permission", *TERMINAL)
    events = [m["event"] for m in messages if m["type"] == "agent_streaming"]
    return [e["output"] for e in events if e["type"] == "tool-result"]


async def test_an_agent_opens_a_document_and_uses_a_shell(tmp_path: Path) -> None:
    found = await outputs(
        tmp_path,
        ("string", {"command": "/open ./note.md"}),
        ("string", {"command": "echo from-the-shell", "topic": "bash:t"}),
        ("string", {"command": "/open /etc/hostname"}),
    )
    assert "In the workspace." in found[0]
    assert "from-the-shell" in found[1]
    assert found[2].startswith("ERROR(")


async def test_without_a_gate_a_privileged_request_says_so(tmp_path: Path) -> None:
    call: Call = ("request_privileged", {"pipeline": [["id"]], "reason": "to see"})
    socket = str(tmp_path / "nobody.sock")
    found = await outputs(tmp_path, call, STRINGD_GATE_SOCKET=socket)
    assert "stringd gate is not running" in found[0]


async def test_documents_outside_home_and_workspace_stay_closed(tmp_path: Path) -> None:
    outside = tmp_path / "outside"
    outside.mkdir()
    (outside / "file.md").write_text("secret", "utf-8")
    forms = [str(outside / "file.md"), "../outside/file.md", "./../outside/file.md"]
    opened: list[Call] = [("string", {"command": f"/open {form}"}) for form in forms]
    written: list[Call] = [
        ("string", {"command": f"/write {form}\nnew", "topic": "other"}) for form in forms
    ]
    found = await outputs(tmp_path, *opened, *written)
    assert [each.partition(":")[0] for each in found] == ["ERROR(FILE_NOT_ALLOWED)"] * 6
    assert [(path.name, path.read_text("utf-8")) for path in outside.iterdir()] == [
        ("file.md", "secret")
    ]


@pytest.mark.parametrize(("key", "made"), [("n", False), ("y", True)])
async def test_the_gate_does_nothing_without_the_human(
    tmp_path: Path, tmp_path_factory: pytest.TempPathFactory, key: str, made: bool
) -> None:
    target = tmp_path / "made"
    args: Json = {"pipeline": [["touch", str(target)]], "reason": "to try", "privileged": False}
    with running_gate(tmp_path_factory.mktemp("g")) as gate:
        call: Call = ("request_privileged", args)
        asking = asyncio.create_task(outputs(tmp_path, call, STRINGD_GATE_SOCKET=str(gate.path)))
        screen = await asyncio.to_thread(gate.terminal.wait_for, QUESTION)
        before = target.exists()
        gate.terminal.type(key)
        (found,) = await asking
    assert str(target) in "".join(screen.split())
    assert (before, target.exists()) == (False, made)
    assert ("exit" in found.lower()) == made
