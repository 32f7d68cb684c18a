"""What a daemon started cannot decide what its owner must decide, by any wire."""

import json
import os
import shlex
import subprocess
import sys
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager
from pathlib import Path

import pytest
import yaml

from stringd.client import AsyncRuns
from stringd.system.lineage import started_by_a_daemon
from stringd.system.peers import kernel_can_say
from stringd.wire.runs.messages import RequestPermission
from tests.requirements import proves
from tests.runs.support import Json, Watcher, scripted, sequential, strategy, watching
from tests.support.daemon import WAIT_SECONDS, Daemon, free_port
from tests.support.http import User, request

pytestmark = [
    pytest.mark.anyio,
    pytest.mark.skipif(not kernel_can_say(), reason="this kernel has no sock_diag"),
]

CHILD = Path(__file__).with_name("speaking_child.py")
READING = {"tools": [{"name": "read_file", "args": {"path": "../secret.txt"}}]}
REFUSED = ["FORBIDDEN"] * 5
BECOME = (
    "import os, resource, sys; number = 2**61 + 2**35 + 2**29; "
    "resource.setrlimit(10, (number, number)); os.execvp(sys.argv[1], sys.argv[1:])"
)
AS_A_CHILD = (sys.executable, "-c", BECOME)
"""Becomes what it is given, with the mark of what one and the same daemon started."""


@pytest.fixture(scope="module")
def served(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[Daemon, int, User]]:
    """A daemon, the port of its runs, and a user with shells."""
    runs_port = free_port()
    with Daemon(tmp_path_factory.mktemp("served"), "--runs-port", str(runs_port)) as running:
        user = User(running.port, "u", tmp_path_factory.mktemp("home"))
        yield running, runs_port, user


def strategy_file(folder: Path, agent: Json) -> Json:
    """How to prepare a run of this agent."""
    (folder / "work").mkdir()
    (folder / "secret.txt").write_text("the secret", "utf-8")
    path = folder / "s.yaml"
    path.write_text(yaml.safe_dump(strategy(sequential("a"), a=agent)), "utf-8")
    return {"strategyPath": str(path), "cwd": str(folder / "work")}


@asynccontextmanager
async def asking(port: int, prepare: Json, run_id: str) -> AsyncIterator[tuple[Watcher, str]]:
    """A run that asks for a permission, its owner's client, and the id of what it asks."""
    async with watching(port) as owner:
        await owner.ask("prepare_run", runId=run_id, **prepare)
        await owner.send("start_run", runId=run_id)
        yield owner, (await owner.until("request_permission"))[-1]["requestId"]


def in_a_shell(user: User, *words: object) -> str:
    """What a child of the daemon printed."""
    command = shlex.join(map(str, (sys.executable, "-P", CHILD, *words)))
    head, content = user.exec(f"/exec {command}")
    assert head["ok"], content
    return content.partition("---\n")[2] or content


@proves("TRUST-12")
@pytest.mark.parametrize("detached", [False, True], ids=["a child", "detached"])
@pytest.mark.parametrize("wire", ["port", "runs port", "unix"])
async def test_a_child_of_the_daemon_decides_nothing(
    served: tuple[Daemon, int, User], tmp_path: Path, wire: str, detached: bool
) -> None:
    daemon, runs_port, user = served
    agent = {**scripted(READING, "fine"), "tools": ["read_file"]}
    run_id = f"run-{tmp_path.name}"
    places = {
        "port": ("ws", daemon.port),
        "runs port": ("ws", runs_port),
        "unix": ("unix", daemon.data_dir / "stringd.sock"),
    }
    how = ["detached"] if detached else []
    async with asking(daemon.port, strategy_file(tmp_path, agent), run_id) as (owner, asked):
        told = in_a_shell(user, *places[wire], run_id, asked, *how)
        assert json.loads(told) == [*REFUSED, "run_list"]
        assert await owner.quiet() == []
        await owner.send(
            "permission_decision", runId=run_id, permissionRequestId=asked, decision="deny"
        )
        assert (await owner.ended())["type"] == "strategy_completed"
    assert decided(daemon, run_id) == [("deny", "human", os.getpid())]


def decided(daemon: Daemon, run_id: str) -> list[tuple[str, str, int]]:
    """What the timeline says about decisions, by whom, and the process they came from."""
    lines = (daemon.data_dir / "runs" / f"{run_id}.jsonl").read_text("utf-8").splitlines()
    found = [each for each in map(json.loads, lines) if each["type"] == "permission_decision"]
    by = [each["decidedBy"] for each in found]
    assert all(each["program"] for each in by)
    return [(e["decision"], b["kind"], b["pid"]) for e, b in zip(found, by, strict=True)]


@proves("TRUST-12")
async def test_a_tool_of_a_run_decides_nothing(
    served: tuple[Daemon, int, User], tmp_path: Path
) -> None:
    """A run starts a program that tries to grant what another run asks for."""
    daemon, _, _ = served
    reading = {**scripted(READING, "fine"), "tools": ["read_file"]}
    asking_run, trying_run = f"asks-{tmp_path.name}", f"tries-{tmp_path.name}"
    async with asking(daemon.port, strategy_file(tmp_path, reading), asking_run) as (owner, asked):
        words = (sys.executable, "-P", CHILD, "ws", daemon.port, asking_run, asked)
        # Behind walls it would not even reach the daemon.
        args = {"command": shlex.join(map(str, words)), "sandbox": "open"}
        command = {"name": "run_command", "args": args}
        trying = {**scripted({"tools": [command]}, "tried"), "tools": ["run_command"]}
        path = tmp_path / "tries.yaml"
        path.write_text(yaml.safe_dump(strategy(sequential("a"), a=trying)), "utf-8")
        where = {"strategyPath": str(path), "cwd": str(tmp_path / "work")}
        await owner.ask("prepare_run", runId=trying_run, **where)
        await owner.send("start_run", runId=trying_run)
        heard = await owner.until("request_permission", "strategy_completed")
        if heard[-1]["type"] == "request_permission":
            allowed = {"permissionRequestId": heard[-1]["requestId"], "decision": "allow"}
            await owner.send("permission_decision", runId=trying_run, **allowed)
            heard = await owner.until("strategy_completed")
        assert heard[-1]["runId"] == trying_run
        assert "FORBIDDEN" in json.dumps(owner.seen)
        await owner.send(
            "permission_decision", runId=asking_run, permissionRequestId=asked, decision="deny"
        )
        assert (await owner.ended())["runId"] == asking_run
    assert decided(daemon, asking_run) == [("deny", "human", os.getpid())]


@proves("TRUST-12")
@pytest.mark.parametrize("wire", ["mcp", "bridge"])
async def test_a_child_answers_nothing_through_mcp(
    served: tuple[Daemon, int, User], tmp_path: Path, wire: str
) -> None:
    daemon, _, user = served
    run_id = f"run-{tmp_path.name}"
    async with watching(daemon.port) as owner:
        await owner.ask("prepare_run", runId=run_id, **strategy_file(tmp_path, {"type": "user"}))
        await owner.send("start_run", runId=run_id)
        await owner.until("request_input")
        assert "ERROR(FORBIDDEN): user_input is refused" in in_a_shell(
            user, wire, daemon.port, run_id, "-"
        )
        await owner.send("user_input", runId=run_id, agentName="a", text="mine")
        assert (await owner.ended())["result"] == "mine"
    lines = (daemon.data_dir / "runs" / f"{run_id}.jsonl").read_text("utf-8").splitlines()
    inputs = [each for each in map(json.loads, lines) if each["type"] == "user_input"]
    assert [(e["text"], e["source"], e["by"]["pid"]) for e in inputs] == [
        ("mine", "human", os.getpid())
    ]


@proves("TRUST-12")
async def test_what_a_script_decides_is_not_recorded_as_a_humans(
    served: tuple[Daemon, int, User], tmp_path: Path
) -> None:
    daemon, _, _ = served
    agent = {**scripted(READING, "fine"), "tools": ["read_file"]}
    where = strategy_file(tmp_path, agent)
    async with AsyncRuns(daemon.port) as runs:
        run = await runs.run(where["strategyPath"], cwd=where["cwd"])
        async for event in run:
            if isinstance(event, RequestPermission):
                await runs.decide(event, "deny")
    assert decided(daemon, run.run_id) == [("deny", "program", os.getpid())]


@proves("TRUST-12")
async def test_an_answer_by_a_programs_client_is_not_recorded_as_a_humans(
    served: tuple[Daemon, int, User], tmp_path: Path
) -> None:
    daemon, _, _ = served
    run_id = f"run-{tmp_path.name}"
    call = {"name": "answer", "arguments": {"run_id": run_id, "text": "mine"}}
    asked = {"jsonrpc": "2.0", "id": 7, "method": "tools/call", "params": call}
    accept = {"Accept": "application/json, text/event-stream"}
    async with watching(daemon.port) as owner:
        await owner.ask("prepare_run", runId=run_id, **strategy_file(tmp_path, {"type": "user"}))
        await owner.send("start_run", runId=run_id)
        await owner.until("request_input")
        assert request(daemon.port, "POST", "/mcp", asked, accept).status == 200
        await owner.ended()
    lines = (daemon.data_dir / "runs" / f"{run_id}.jsonl").read_text("utf-8").splitlines()
    (kept,) = [each for each in map(json.loads, lines) if each["type"] == "user_input"]
    assert (kept["source"], kept["by"]["kind"], kept["by"]["pid"]) == (
        "agent",
        "agent",
        os.getpid(),
    )


@proves("TRUST-12")
async def test_what_outlived_a_killed_daemon_decides_nothing_in_the_next(tmp_path: Path) -> None:
    daemon = Daemon(tmp_path)
    ready, start, result = (tmp_path / name for name in ("ready", "start", "result"))
    for pipe in (ready, start):
        os.mkfifo(pipe)
    agent = {**scripted(READING, "fine"), "tools": ["read_file"]}
    prepare = strategy_file(tmp_path, agent)
    child = shlex.join(map(str, (sys.executable, "-P", CHILD, "ws", daemon.port, "r")))
    later = f"echo > {ready}; read asked < {start}; {child} $asked > {result}.new 2>&1"
    daemon.start()
    user = User(daemon.port, "u", tmp_path / "home")
    user.exec(f"setsid -f bash -c {shlex.quote(f'{later}; mv {result}.new {result}')}", "bash:x")
    ready.read_bytes()
    daemon.kill()
    daemon.start()
    try:
        async with asking(daemon.port, prepare, "r") as (owner, asked):
            try:
                writing = os.open(start, os.O_WRONLY | os.O_NONBLOCK)
            except OSError:
                return  # It did not outlive the daemon at all.
            os.write(writing, f"{asked}\n".encode())
            os.close(writing)
            while not result.exists():
                await owner.ask("ping")
            assert json.loads(result.read_text("utf-8")) == [*REFUSED, "run_list"]
    finally:
        daemon.stop()


@proves("TRUST-12")
@pytest.mark.skipif(started_by_a_daemon(), reason="these tests run in a daemon's child themselves")
def test_a_child_that_starts_the_daemon_again_is_not_its_owner(tmp_path: Path) -> None:
    daemon = Daemon(tmp_path)
    with daemon:
        pass
    daemon.launcher = AS_A_CHILD
    with daemon:
        words = [*AS_A_CHILD, sys.executable, "-P", str(CHILD), "ws", str(daemon.port), "r", "-"]
        told = subprocess.run(words, capture_output=True, text=True, check=True).stdout
        assert json.loads(told) == [*REFUSED, "run_list"]


@proves("TRUST-12")
def test_a_daemon_of_a_childs_own_is_the_childs(tmp_path: Path) -> None:
    """An agent may develop with a daemon, in a data directory that it makes itself."""
    daemon = Daemon(tmp_path)
    daemon.launcher = AS_A_CHILD
    with daemon:
        words = [*AS_A_CHILD, sys.executable, "-P", str(CHILD), "ws", str(daemon.port), "r", "-"]
        told = subprocess.run(words, capture_output=True, text=True, check=True).stdout
        assert "FORBIDDEN" not in json.loads(told)


@proves("TRUST-12")
@pytest.mark.parametrize(
    "wanted", [{"allowed_paths": ["/etc"]}, {"home": "/"}, {"overwrite_guard": False}]
)
def test_a_child_does_not_widen_what_a_user_may_reach(
    served: tuple[Daemon, int, User], tmp_path: Path, wanted: Json
) -> None:
    daemon, _, user = served
    before = request(daemon.port, "GET", "/users").json
    body = {"id": user.id, "home": str(user.home), **wanted}
    script = tmp_path / "child.py"
    script.write_text(
        "import http.client\n"
        f"connection = http.client.HTTPConnection('127.0.0.1', {daemon.port})\n"
        f"connection.request('POST', '/users', {json.dumps(body)!r}, "
        "{'Content-Type': 'application/json'})\n"
        "print(connection.getresponse().read().decode())\n",
        encoding="utf-8",
    )
    _, told = user.exec(f"/exec {sys.executable} {script}")
    assert "is not changed by a program that this daemon started" in told
    assert request(daemon.port, "GET", "/users").json == before
    if "home" not in wanted:
        assert request(daemon.port, "POST", "/users", body).status == 200


def test_a_child_may_stop_the_daemon(tmp_path: Path) -> None:
    """The protocol page leaves that open to every program of the account."""
    with Daemon(tmp_path) as daemon:
        user = User(daemon.port, "u", tmp_path / "home")
        code = (
            f"import urllib.request as u; u.urlopen('http://127.0.0.1:{daemon.port}/shutdown', b'')"
        )
        user.post(cmd=f"/exec {shlex.join((sys.executable, '-c', code))}")
        assert daemon.process is not None
        assert daemon.process.wait(WAIT_SECONDS) == 0
