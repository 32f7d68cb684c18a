"""Questions, answers and policies of a run: shown, recorded, asked again, and over with it."""

import re
from dataclasses import dataclass
from pathlib import Path

import pytest

from tests.runs.support import RunsServer, Watcher, scripted, sequential, strategy
from tests.runs.tools.support import Call, agent, finish, start, use

pytestmark = pytest.mark.anyio

OLD = "old text\n"


@dataclass
class Scene:
    """A workspace and a place outside it."""

    work: Path
    outside: Path

    def state(self) -> dict[str, str]:
        """Everything outside, by name."""
        return {path.name: path.read_text("utf-8") for path in self.outside.iterdir()}


@pytest.fixture
def scene(tmp_path: Path) -> Scene:
    work, outside = tmp_path / "work", tmp_path / "outside"
    for folder in (work, outside):
        folder.mkdir()
        (folder / "file.txt").write_text(OLD, "utf-8")
    return Scene(work, outside)


def call(tool: str, path: str) -> Call:
    return tool, {"path": path}


async def test_a_session_answer_stands_before_the_path_policies(
    server: RunsServer, watcher: Watcher, scene: Scene
) -> None:
    asked = call("read_file", str(scene.outside / "file.txt"))
    used = await use(server, watcher, scene.work, asked, decisions=["allow-session"])
    updated = used.of("policy_updated")
    assert [each["tool"] for each in updated] == ["read_file"]
    names = [policy["name"] for policy in updated[0]["policies"]]
    plain = re.sub(r"[^A-Za-z0-9]", "-", str(scene.outside / "file.txt"))
    session = f"session-allow-read-{plain}"
    assert names == ["forbidden-globs", session, "read-path-policy", "write-path-policy"]


async def test_deny_globs_win_inside(server: RunsServer, watcher: Watcher, scene: Scene) -> None:
    (scene.work / "secret").mkdir()
    (scene.work / "secret" / "key").write_text("k", "utf-8")
    calls: list[Call] = [("read_file", {"path": "secret/key"})]
    calls.append(("read_file", {"path": "file.txt"}))
    calls.append(("list_directory", {"path": ".", "recursive": True}))
    path = str(server.strategy(strategy(sequential("a"), a=agent(*calls))))
    await watcher.ask("prepare_run", runId="r", strategyPath=path, cwd=str(scene.work))
    for tool in ("read_file", "list_directory"):
        await watcher.send("update_policy", runId="r", tool=tool, mode="read", deny=["secret/**"])
    await watcher.send("start_run", runId="r")
    used = await finish(watcher)
    assert used.outputs[0].startswith("Error (permission_denied): ")
    assert "old text" in used.outputs[1]
    assert "secret" not in used.outputs[2]


async def test_grants_end_with_the_segment(
    server: RunsServer, watcher: Watcher, scene: Scene
) -> None:
    name, args = call("read_file", str(scene.outside / "file.txt"))
    asks = {"tools": [{"name": name, "args": args}]}
    twice = {**scripted(asks, asks, "end", asks, "end"), "tools": [name]}
    path = str(server.strategy(strategy(sequential("a"), a=twice)))
    await watcher.ask("prepare_run", runId="r", strategyPath=path, cwd=str(scene.work))
    await watcher.send("start_run", runId="r")
    used = await finish(watcher, ["allow-session"])
    assert ["old text" in output for output in used.outputs] == [True, True]
    await watcher.ask("prepare_run", runId="r")
    await watcher.send("continue_run", runId="r", input="")
    used = await finish(watcher, ["deny"])
    assert "permission_denied" in used.output


async def test_a_grant_covers_what_is_below_and_nothing_beside(
    server: RunsServer, watcher: Watcher, scene: Scene
) -> None:
    beside = scene.outside.with_name("outside-too")
    beside.mkdir()
    calls: list[Call] = [("list_directory", {"path": str(scene.outside)})]
    calls.append(("list_directory", {"path": str(scene.outside / ".")}))
    calls.append(("list_directory", {"path": str(beside)}))
    used = await use(server, watcher, scene.work, *calls, decisions=["allow-session", "deny"])
    assert [r["resource"] for r in used.of("request_permission")] == [
        str(scene.outside),
        str(beside),
    ]


async def test_decisions_are_recorded_with_who_and_why(
    server: RunsServer, watcher: Watcher, scene: Scene
) -> None:
    outside = str(scene.outside / "file.txt")
    asked = call("read_file", outside)
    await use(server, watcher, scene.work, asked, asked, decisions=["deny-session"])
    events = [e for e in server.timeline("r") if e["type"] == "permission_decision"]
    assert [(e["decision"], e["decidedBy"]["kind"]) for e in events] == [
        ("deny-session", "human"),
        ("deny", "policy"),
    ]
    assert events[0]["decidedBy"]["via"].startswith("client ")
    assert events[1]["decidedBy"]["via"].startswith("session-deny-read-")
    assert {e["resource"] for e in events} == {outside}


async def test_a_reason_for_a_denial_is_recorded_and_reaches_the_model(
    server: RunsServer, watcher: Watcher, scene: Scene
) -> None:
    outside = str(scene.outside / "file.txt")
    await start(server, watcher, scene.work, call("read_file", outside))
    asked = (await watcher.until("request_permission"))[-1]
    await watcher.send(
        "permission_decision",
        runId="r",
        permissionRequestId=asked["requestId"],
        decision="deny",
        reason=" It is not ours.\nAsk the owner. ",
    )
    used = await finish(watcher)
    assert used.outputs[0].endswith("was denied by the user: It is not ours.\nAsk the owner.")
    events = [e for e in server.timeline("r") if e["type"] == "permission_decision"]
    assert [(e["decision"], e["reason"]) for e in events] == [
        ("deny", "It is not ours.\nAsk the owner.")
    ]


async def test_the_state_of_the_daemon_is_closed_to_tools(
    server: RunsServer, watcher: Watcher
) -> None:
    work = server.directory
    (work / "data").mkdir(exist_ok=True)
    (work / "data" / "credentials.json").write_text("{}", "utf-8")
    calls: list[Call] = [
        ("read_file", {"path": "data/credentials.json"}),
        ("list_directory", {"path": ".", "recursive": True, "includeHidden": True}),
    ]
    used = await use(server, watcher, work, *calls)
    assert used.outputs[0].startswith("Error (permission_denied): ")
    assert "forbidden-globs" in used.outputs[0]
    assert "credentials" not in used.outputs[1]


async def test_stopping_while_a_permission_waits_ends_the_run(
    server: RunsServer, watcher: Watcher, scene: Scene
) -> None:
    await start(server, watcher, scene.work, call("delete_file", str(scene.outside / "file.txt")))
    request = (await watcher.until("request_permission"))[-1]
    await watcher.send("stop_run", runId="r")
    assert (await watcher.ended())["error"]["code"] == "CANCELLED"
    answer = await watcher.ask(
        "permission_decision",
        runId="r",
        permissionRequestId=request["requestId"],
        decision="allow",
    )
    assert answer["code"] == "NO_PENDING_PERMISSION"
    assert scene.state() == {"file.txt": OLD}


async def test_a_late_subscriber_sees_the_open_request(
    server: RunsServer, watcher: Watcher, scene: Scene
) -> None:
    await start(server, watcher, scene.work, call("read_file", str(scene.outside / "file.txt")))
    request = (await watcher.until("request_permission"))[-1]
    late = await server.watcher()
    await late.send("subscribe", runId="r")
    assert await late.receive() == request
    await late.send(
        "permission_decision",
        runId="r",
        permissionRequestId=request["requestId"],
        decision="allow",
    )
    assert (await watcher.ended())["type"] == "strategy_completed"


async def test_a_request_cut_off_is_made_again_when_the_run_is_resumed(
    server: RunsServer, watcher: Watcher, scene: Scene
) -> None:
    target = str(scene.outside / "file.txt")
    await start(server, watcher, scene.work, call("delete_file", target))
    first = (await watcher.until("request_permission"))[-1]
    await watcher.send("stop_run", runId="r")
    await watcher.ended()
    await watcher.ask("prepare_run", runId="r")
    await watcher.send("continue_run", runId="r", input="", resume=True)
    used = await finish(watcher, ["allow"])
    again = used.of("request_permission")[0]
    assert again["requestId"] != first["requestId"]
    assert again["resource"] == target
    assert again["details"]["path"] == target
    assert used.output.startswith("Deleted ")
    assert scene.state() == {}
