"""Nothing outside the working directory is touched without a yes."""

import hashlib
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import pytest

from tests.requirements import proves
from tests.runs.support import Json, RunsServer, Watcher, scripted, sequential, strategy
from tests.runs.tools.support import Call, agent, finish, start, use

pytestmark = pytest.mark.anyio

OLD = "old text\n"
SHA = hashlib.sha256(OLD.encode()).hexdigest()


@dataclass
class Scene:
    """A workspace, a place outside it, and links that lead from one to the other."""

    work: Path
    outside: Path

    def reset(self) -> None:
        for folder in (self.work, self.outside):
            (folder / "file.txt").write_text(OLD, "utf-8")
        for link, target in (("link", self.outside), ("leaf", self.outside / "file.txt")):
            if not (self.work / link).is_symlink():
                (self.work / link).symlink_to(target)

    def state(self) -> dict[str, str]:
        """Everything outside, by name."""
        return {path.name: path.read_text("utf-8") for path in self.outside.iterdir()}


@pytest.fixture
def scene(tmp_path: Path) -> Scene:
    work, outside = tmp_path / "work", tmp_path / "outside"
    work.mkdir()
    outside.mkdir()
    made = Scene(work, outside)
    made.reset()
    return made


FILE_TOOLS: dict[str, Callable[[str], Json]] = {
    "read_file": lambda p: {"path": p},
    "write_file": lambda p: {"path": p, "content": "new", "expectedSha256": SHA},
    "edit_file": lambda p: {"path": p, "edits": [{"oldText": "old", "newText": "new"}]},
    "delete_file": lambda p: {"path": p},
    "move_file": lambda p: {"fromPath": p, "toPath": "moved.txt", "expectedSha256": SHA},
}
FOLDER_TOOLS: dict[str, Callable[[str], Json]] = {
    "list_directory": lambda p: {"path": p},
    "glob": lambda p: {"pattern": "*", "root": p},
    "search_files": lambda p: {"query": "old", "mode": "text", "root": p},
    "run_command": lambda p: {"command": "cat file.txt", "cwd": p},
    "create_file": lambda p: {"path": f"{p}/new.txt", "content": "new"},
}
WAYS_OUT = ["absolute", "dots", "link"]


def way(scene: Scene, kind: str, *, folder: bool) -> str:
    """A path that leads outside."""
    tail = "" if folder else "/file.txt"
    return {
        "absolute": str(scene.outside) + tail,
        "dots": "../outside" + tail,
        "link": "link" + tail if folder else "leaf",
    }[kind]


CASES = [(tool, False) for tool in FILE_TOOLS] + [(tool, True) for tool in FOLDER_TOOLS]


def call(tool: str, path: str) -> Call:
    return tool, {**FILE_TOOLS, **FOLDER_TOOLS}[tool](path)


@pytest.mark.parametrize(("tool", "folder"), CASES)
async def test_inside_nobody_is_asked(
    server: RunsServer, watcher: Watcher, scene: Scene, tool: str, folder: bool
) -> None:
    used = await use(server, watcher, scene.work, call(tool, "." if folder else "file.txt"))
    assert "Error" not in used.output
    assert used.of("request_permission") == []


@proves("RUN-33")
@pytest.mark.parametrize("kind", WAYS_OUT)
@pytest.mark.parametrize(("tool", "folder"), CASES)
async def test_outside_a_no_leaves_everything_as_it_was(
    server: RunsServer, watcher: Watcher, scene: Scene, tool: str, folder: bool, kind: str
) -> None:
    before = scene.state()
    asked = call(tool, way(scene, kind, folder=folder))
    used = await use(server, watcher, scene.work, asked, decisions=["deny"])
    request = used.of("request_permission")[0]
    assert request["resource"].startswith(str(scene.outside))
    assert request["reason"] == "policy-ask"
    assert (request["agentName"], request["toolName"]) == ("a", tool)
    assert used.output.startswith("Error (permission_denied): ")
    assert "old text" not in used.output
    assert scene.state() == before
    assert used.messages[-1]["type"] == "strategy_completed"
    assert used.of("policy_updated") == []


@pytest.mark.parametrize("kind", WAYS_OUT)
@pytest.mark.parametrize(("tool", "folder"), CASES)
async def test_outside_a_yes_counts_once(
    server: RunsServer, watcher: Watcher, scene: Scene, tool: str, folder: bool, kind: str
) -> None:
    asked = call(tool, way(scene, kind, folder=folder))
    used = await use(server, watcher, scene.work, asked, asked, decisions=["allow", "deny"])
    assert "Error" not in used.outputs[0]
    assert used.outputs[1].startswith("Error (permission_denied): ")
    assert used.of("policy_updated") == []


@pytest.mark.parametrize("decision", ["allow-session", "deny-session"])
@pytest.mark.parametrize(("tool", "folder"), CASES)
async def test_a_session_answer_is_remembered_and_shown(
    server: RunsServer, watcher: Watcher, scene: Scene, tool: str, folder: bool, decision: str
) -> None:
    asked = call(tool, way(scene, "absolute", folder=folder))
    used = await use(server, watcher, scene.work, asked, asked, decisions=[decision])
    updated = used.of("policy_updated")
    assert [each["tool"] for each in updated] == [tool]
    names = [policy["name"] for policy in updated[0]["policies"]]
    verdict = decision.partition("-")[0]
    assert names[0] == "forbidden-globs"
    session = next(name for name in names if name.startswith(f"session-{verdict}-"))
    assert names.index(session) < names.index("read-path-policy")
    assert ("permission_denied" in used.outputs[0]) == (verdict == "deny")
    assert ("permission_denied" in used.outputs[1]) == (verdict == "deny")


@pytest.mark.parametrize("default", ["allow", "deny"])
@pytest.mark.parametrize("mode", ["read", "write"])
async def test_a_changed_default_settles_one_direction(
    server: RunsServer, watcher: Watcher, scene: Scene, mode: str, default: str
) -> None:
    tools = {"read": "read_file", "write": "delete_file"}
    other = "write" if mode == "read" else "read"
    calls = [call(tools[each], str(scene.outside / "file.txt")) for each in (mode, other)]
    source = strategy(sequential("a"), a=agent(*calls))
    path = str(server.strategy(source, "policy.yaml"))
    await watcher.ask("prepare_run", runId="r", strategyPath=path, cwd=str(scene.work))
    await watcher.send("update_policy", runId="r", tool=tools[mode], mode=mode, default=default)
    updated = (await watcher.until("policy_updated"))[-1]
    assert updated["tool"] == tools[mode]
    await watcher.send("start_run", runId="r")
    used = await finish(watcher, ["deny"])
    assert ("permission_denied" in used.outputs[0]) == (default == "deny")
    assert "permission_denied" in used.outputs[1]


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
