"""`stringd top` and `stringd ui` against a real daemon, on a real terminal."""

import json
import sys
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest
import yaml

from stringd.client.feed import overview
from tests.runs.support import scripted, sequential, strategy, watching
from tests.support.commands import Terminal, environment, run
from tests.support.daemon import WAIT_SECONDS, Daemon, free_port
from tests.support.http import User

pytestmark = pytest.mark.anyio
ASKS = strategy(sequential("you"), you={"type": "user"})


@pytest.fixture(scope="module")
def daemon(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Daemon]:
    with Daemon(tmp_path_factory.mktemp("top")) as running:
        yield running


@pytest.fixture(scope="module")
def env(daemon: Daemon) -> dict[str, str]:
    return environment(daemon, TERM="xterm", COLUMNS="120", LINES="40")


@pytest.fixture(scope="module")
def user(daemon: Daemon) -> User:
    return User(daemon.port, "watched", daemon.home)


async def asking(daemon: Daemon, run_id: str) -> None:
    """A run that waits for its human."""
    path = daemon.directory / "asks.yaml"
    path.write_text(yaml.safe_dump(ASKS), "utf-8")
    async with watching(daemon.port) as watcher:
        await watcher.ask("prepare_run", strategyPath=str(path), runId=run_id)
        await watcher.send("start_run", runId=run_id)
        await watcher.until("request_input")


async def test_without_a_terminal_it_prints_everything_once(
    daemon: Daemon, env: dict[str, str], user: User
) -> None:
    user.exec("/nonsense", "file:broken")
    await asking(daemon, "first")
    done = run("stringd", "top", env=env)
    assert done.code == 0, done.err
    lines = [" ".join(line.split()) for line in done.out.splitlines()]
    assert lines[0].startswith("stringd ")
    assert any(line.startswith("input you in Test: your next words ") for line in lines)
    assert any(line.startswith("waits Test first ") for line in lines)
    assert any("failed file:broken /nonsense COMMAND_UNSUPPORTED" in line for line in lines)
    told = json.loads(run("stringd", "top", "--json", env=env).out)
    assert [each["runId"] for each in told["waiting"]] == ["first"]


async def test_it_shows_what_starts_to_wait_and_stops_the_chosen_run(
    daemon: Daemon, env: dict[str, str]
) -> None:
    with Terminal("top", env=env, program="stringd") as terminal:
        terminal.until("q quit")
        await asking(daemon, "second")
        terminal.until("second")
        # The newest run is the first among the runs, below the prompts.
        waiting = overview(daemon.port)["waiting"]
        terminal.type("j" * waiting.index(next(w for w in waiting if w["runId"] == "second")))
        terminal.type("s")
        terminal.until("Stop this run?")
        terminal.type("n")
        terminal.until("q quit")
        terminal.type("s")
        terminal.until("Stop this run?")
        terminal.type("y")
        terminal.until("Told run second to stop.")
        terminal.until("stopped ")
        terminal.type("q")
        assert terminal.end() == 0
    assert [w["runId"] for w in overview(daemon.port)["waiting"] if w["runId"] == "second"] == []


async def test_a_prompt_is_shown_whole_and_answered_in_place(
    daemon: Daemon, env: dict[str, str]
) -> None:
    command = f"make {'long-target ' * 20}published"
    call = {"name": "run_command", "args": {"command": command, "network": True}}
    agent = {**scripted({"tools": [call]}, "ended"), "tools": ["run_command"]}
    path = daemon.directory / "permits.yaml"
    path.write_text(yaml.safe_dump(strategy(sequential("coder"), coder=agent)), "utf-8")
    await asking(daemon, "typed")
    async with watching(daemon.port) as watcher:
        await watcher.ask("prepare_run", strategyPath=str(path), runId="permits")
        await watcher.send("start_run", runId="permits")
        await watcher.until("request_permission")
        with Terminal("top", env=env, program="stringd") as terminal:
            terminal.until("q quit")
            runs = [each["runId"] for each in overview(daemon.port)["waiting"]]
            terminal.type("j" * runs.index("permits"))
            terminal.type("a")
            terminal.until("published")
            terminal.until("n deny")
            terminal.type("n")
            terminal.until("coder: deny.")
            assert (await watcher.ended())["result"] == "ended"
            terminal.type("k" * len(runs))
            terminal.type("j" * runs.index("typed"))
            terminal.type("a")
            terminal.until("needs your next words")
            terminal.type("helo\x7flo\r")
            terminal.until("you: answered.")
            terminal.type("q")
            assert terminal.end() == 0
    kept = (Path(daemon.data_dir) / "runs" / "typed.jsonl").read_text("utf-8")
    assert '"text":"hello"' in kept


def test_it_kills_what_runs_in_a_shell(daemon: Daemon, env: dict[str, str], user: User) -> None:
    endless = "while :; do read -t 1 _ <> <(:); done"
    busy = threading.Thread(target=user.exec, args=(endless, "bash:busy"))
    with Terminal("top", env=env, program="stringd") as terminal:
        terminal.until("q quit")
        busy.start()
        terminal.until("bash:busy  while")
        waiting = overview(daemon.port)
        ended = [each for each in waiting["runs"] if each["status"] not in ("running", "pending")]
        before = len(waiting["waiting"]) + len(waiting["runs"]) - max(0, len(ended) - 5)
        terminal.type("j" * before)
        terminal.type("x")
        terminal.until("Kill what runs there?")
        terminal.type("y")
        terminal.until("bash:busy: ")
        busy.join(WAIT_SECONDS)
        assert not busy.is_alive()
        terminal.type("q")
        assert terminal.end() == 0


def test_without_a_daemon_it_says_so(env: dict[str, str]) -> None:
    done = run("stringd", "top", "--port", str(free_port()), env=env)
    assert (done.code, done.out) == (1, "")
    assert done.err.startswith("stringd: ")


def test_the_page_is_opened_in_the_chosen_browser(
    daemon: Daemon, env: dict[str, str], tmp_path: Path
) -> None:
    opened = tmp_path / "opened"
    browser = tmp_path / "browser"
    browser.write_text(
        f"#!{sys.executable}\nimport sys\nopen({str(opened)!r}, 'w').write(sys.argv[1])\n", "utf-8"
    )
    browser.chmod(0o700)
    done = run("stringd", "ui", env={**env, "BROWSER": f"{browser} %s"})
    address = f"http://127.0.0.1:{daemon.port}/ui/"
    assert (done.code, done.out, done.err) == (0, f"{address}\n", "")
    assert opened.read_text("utf-8") == address


def test_without_a_desktop_the_address_is_enough(daemon: Daemon, env: dict[str, str]) -> None:
    bare = {k: v for k, v in env.items() if k not in ("DISPLAY", "WAYLAND_DISPLAY", "BROWSER")}
    done = run("stringd", "ui", env=bare)
    assert done.out == f"http://127.0.0.1:{daemon.port}/ui/\n"
    assert "visit that address" in done.err
