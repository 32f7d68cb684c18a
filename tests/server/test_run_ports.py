"""Agents use topics of the daemon they run in, and hear it when no gate is there."""

from pathlib import Path

import pytest
import yaml
from websockets.asyncio.client import connect

from tests.runs.support import Json, Watcher, sequential, strategy
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
            messages = await watcher.until("strategy_completed", "strategy_error")
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
