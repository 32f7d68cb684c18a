"""Nothing that a daemon started outlives it, however the daemon ends."""

import json
import os
import select
import shlex
import signal
import subprocess
from collections.abc import AsyncIterator
from contextlib import ExitStack, asynccontextmanager, suppress
from pathlib import Path
from typing import Any

import pytest
import yaml

from stringd.system.keeper import RECORDS
from stringd.system.processes.table import children, find
from tests.requirements import proves
from tests.runs.support import Json, Watcher, scripted, sequential, strategy, watching
from tests.support.daemon import WAIT_SECONDS, Daemon
from tests.support.http import Wire
from tests.support.person import Person

pytestmark = pytest.mark.anyio

# One left its session and would not hear a hang-up, one waits in front.
STAY = (
    "setsid nohup sh -c 'echo up; exec sleep 1000' >held 2>/dev/null </dev/null & "
    "sh -c 'echo up; exec sleep 1000' >held"
)
LEAVE = "setsid nohup sh -c 'echo up; exec sleep 1000' >held 2>/dev/null </dev/null & sleep 0.1"


class Held:
    """A folder with a pipe that programs write to: it ends when the last of them has ended."""

    def __init__(self, folder: Path, programs: int = 2) -> None:
        self.folder = folder
        self._programs = programs
        folder.mkdir(parents=True)
        os.mkfifo(folder / "held")
        self._reading = os.open(folder / "held", os.O_RDONLY | os.O_NONBLOCK)

    def wait_for_start(self) -> None:
        heard = b""
        while heard != b"up\n" * self._programs:
            assert select.select([self._reading], [], [], WAIT_SECONDS)[0], self.folder.name
            heard += os.read(self._reading, 100)

    def wait_for_end(self) -> None:
        assert select.select([self._reading], [], [], WAIT_SECONDS)[0], self.folder.name
        assert os.read(self._reading, 100) == b""

    def close(self) -> None:
        os.close(self._reading)


class Scene:
    """A daemon with something running of each kind."""

    def __init__(self, daemon: Daemon, base: Path, stack: ExitStack) -> None:
        self.daemon = daemon
        self._stack = stack
        self.person = Person(daemon.port, "u", base / "user")
        self.held: list[Held] = []

    def begin(self, topic: str, form: str, stays: str = STAY) -> None:
        """Send a command that stays, and do not wait for its answer."""
        held = self.new(topic.replace(":", "-"), 2 if stays == STAY else 1)
        line = f"cd {shlex.quote(str(held.folder))}; {stays}"
        command = form.format(line=line, quoted=shlex.quote(line), folder=held.folder)
        self._stack.enter_context(Wire(self.daemon.port)).send(self.person.message(command, topic))
        held.wait_for_start()

    def new(self, name: str, programs: int = 2) -> Held:
        held = Held(self.person.home / name, programs)
        self._stack.callback(held.close)
        self.held.append(held)
        return held

    def wait_for_end(self) -> None:
        for held in self.held:
            held.wait_for_end()


async def run_tools(scene: Scene, watcher: Watcher, level: str) -> None:
    """A run whose agent starts a command, behind walls or in the open."""
    held = scene.new(f"run-{level}")
    args = {"command": STAY, "sandbox": level, "timeout_ms": 600_000}
    agent = {**scripted({"tools": [{"name": "run_command", "args": args}]}, "x")}
    await start_run(watcher, held, {**agent, "tools": ["run_command"]}, level)
    held.wait_for_start()


async def run_server(scene: Scene, watcher: Watcher) -> None:
    """A run with an MCP server that never answers."""
    held = scene.new("run-mcp")
    server = {"transport": "stdio", "command": "/bin/sh", "args": ["-c", STAY]}
    options = {"enabledByDefault": True, "cwd": str(held.folder), "sandbox": "open"}
    (scene.daemon.data_dir / "mcp.json").write_text(
        json.dumps({"mcpServers": {"stays": server | options}}), "utf-8"
    )
    fields = run_of(held, {**scripted("x"), "mcpServers": ["stays"]}, "mcp")
    await watcher.send("prepare_run", **fields)
    held.wait_for_start()


def run_of(held: Held, agent: Json, name: str) -> Json:
    path = held.folder / "s.yaml"
    path.write_text(yaml.safe_dump(strategy(sequential("a"), a=agent)), "utf-8")
    return {"runId": name, "strategyPath": str(path), "cwd": str(held.folder)}


async def start_run(watcher: Watcher, held: Held, agent: Json, name: str) -> None:
    fields = run_of(held, agent, name)
    assert (await watcher.ask("prepare_run", **fields))["type"] == "run_prepared"
    await watcher.send("start_run", runId=name)
    if name == "open":
        asked = (await watcher.until("request_permission"))[-1]["requestId"]
        allow: dict[str, Any] = {"permissionRequestId": asked, "decision": "allow"}
        await watcher.send("permission_decision", runId=name, **allow)


def act(scene: Scene, name: str, stays: str) -> None:
    """Run an action of a page."""
    topic = f"file:{name}"
    work = scene.person.home / topic.replace(":", "-")
    scene.person.put(f"{name}.md", f"```act.go\nCLI cd {work}; {stays}\n```\n")
    scene.person.gets(f"/open {name}.md", topic)
    scene.begin(topic, "/act.go", stays)


@asynccontextmanager
async def everything(daemon: Daemon, base: Path) -> AsyncIterator[Scene]:
    """Something of each kind runs."""
    with ExitStack() as stack:
        scene = Scene(daemon, base, stack)
        scene.begin("bash:job", "( {line} ) &")
        scene.begin("bash:front", "{line}")
        scene.begin("file:exec", "/exec {line}")
        act(scene, "stays", STAY)
        act(scene, "leaves", LEAVE)
        scene.begin("file:mount", "/install --mcp stays -- /bin/sh -c {quoted} sh {folder}")
        async with watching(daemon.port) as watcher:
            await run_tools(scene, watcher, "workspace")
            await run_tools(scene, watcher, "open")
            await run_server(scene, watcher)
            yield scene


def no_records(daemon: Daemon) -> bool:
    return list((daemon.data_dir / RECORDS).iterdir()) == []


@proves("TRUST-16")
async def test_nothing_outlives_a_daemon_that_is_killed(tmp_path: Path) -> None:
    with Daemon(tmp_path) as daemon:
        async with everything(daemon, tmp_path) as scene:
            keeper = keeper_of(daemon)
            daemon.kill()
            scene.wait_for_end()
            wait_for(keeper)
    assert no_records(daemon)


@proves("TRUST-16")
def test_nothing_outlives_a_daemon_that_is_stopped(tmp_path: Path) -> None:
    with Daemon(tmp_path) as daemon, ExitStack() as stack:
        scene = Scene(daemon, tmp_path, stack)
        scene.begin("bash:job", "( {line} ) &")
        act(scene, "leaves", LEAVE)
        daemon.stop()
        scene.wait_for_end()
        assert no_records(daemon)


def keeper_of(daemon: Daemon) -> int:
    """A handle on the process that keeps what the daemon started."""
    assert daemon.process is not None
    (found,) = [pid for pid in children(daemon.process.pid) if b"stringd-keeper" in command(pid)]
    return os.pidfd_open(found)


def command(pid: int) -> bytes:
    with suppress(FileNotFoundError, ProcessLookupError):
        return Path(f"/proc/{pid}/cmdline").read_bytes()
    return b""


def wait_for(handle: int) -> None:
    assert select.select([handle], [], [], WAIT_SECONDS)[0]
    os.close(handle)


@proves("TRUST-16")
async def test_the_next_daemon_ends_what_a_killed_keeper_could_not(tmp_path: Path) -> None:
    with Daemon(tmp_path) as daemon, ExitStack() as stack:
        scene = Scene(daemon, tmp_path, stack)
        scene.begin("bash:job", "( {line} ) &")
        keeper = keeper_of(daemon)
        assert daemon.process is not None
        # Else it would replace the keeper at once.
        daemon.process.send_signal(signal.SIGSTOP)
        signal.pidfd_send_signal(keeper, signal.SIGKILL)
        daemon.kill()
        os.close(keeper)
        assert not no_records(daemon)
        daemon.start()
        scene.wait_for_end()
        assert "of a daemon that was killed\n" in "".join(daemon.output)
    assert no_records(daemon)


@proves("TRUST-16")
def test_a_keeper_that_was_killed_is_replaced(tmp_path: Path) -> None:
    with Daemon(tmp_path) as daemon:
        first = keeper_of(daemon)
        signal.pidfd_send_signal(first, signal.SIGKILL)
        wait_for(first)
        assert daemon.process is not None
        while not any(b"stringd-keeper" in command(pid) for pid in children(daemon.process.pid)):
            assert find(daemon.process.pid) is not None


@proves("TRUST-16")
def test_a_neighbour_and_another_daemon_are_left_alone(tmp_path: Path) -> None:
    neighbour = subprocess.Popen(["sleep", "1000"])
    with ExitStack() as stack, Daemon(tmp_path / "one") as one, Daemon(tmp_path / "two") as two:
        stack.callback(neighbour.wait)
        stack.callback(neighbour.kill)
        dies, stays = Scene(one, tmp_path / "a", stack), Scene(two, tmp_path / "b", stack)
        for scene in (dies, stays):
            scene.begin("bash:job", "( {line} ) &")
        keeper = keeper_of(one)
        one.kill()
        dies.wait_for_end()
        wait_for(keeper)
        assert neighbour.poll() is None
        assert stays.person.gets("jobs -r | wc -l", "bash:job").endswith("\n1")
