"""`stringd run`, `runs` and `strategies` as a person or a script meets them."""

import json
import os
import pty
import select
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

import pytest
import yaml

from tests.runs.schema import problems
from tests.runs.support import Json, scripted, sequential, strategy
from tests.support.daemon import WAIT_SECONDS, Daemon

EXAMPLES = Path(__file__).parents[3] / "examples" / "strategies"


@pytest.fixture(scope="module")
def daemon(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Daemon]:
    with Daemon(tmp_path_factory.mktemp("cli")) as running:
        yield running


def stringd(daemon: Daemon, *args: str, text: str = "") -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-m", "stringd", *args],
        env=daemon.child_environment(),
        cwd=daemon.directory,
        input=text,
        capture_output=True,
        text=True,
        timeout=WAIT_SECONDS,
        check=False,
    )


def write(daemon: Daemon, name: str, source: dict[str, object]) -> str:
    path = daemon.directory / name
    path.write_text(yaml.safe_dump(source), "utf-8")
    return str(path)


@pytest.mark.parametrize(
    ("name", "args", "typed", "said"),
    [
        ("code-review.yaml", ["--input", "diff"], "", "Change requested"),
        ("research-with-critic.yaml", [], "heat pumps\n", "less in frost"),
        ("writer-with-human.yaml", [], "cats\nchildren\n", "no jargon"),
        ("parallel-brainstorm.jsonc", ["-i", "a wall"], "", "seven places"),
    ],
)
def test_every_example_runs_without_a_network(
    daemon: Daemon, name: str, args: list[str], typed: str, said: str
) -> None:
    done = stringd(daemon, "run", str(EXAMPLES / name), *args, text=typed)
    assert (done.returncode, done.stderr) == (0, "")
    assert said in done.stdout.splitlines()[-1]


def test_a_discovered_strategy_is_run_by_name(daemon: Daemon) -> None:
    done = stringd(daemon, "run", "hello", "-i", "moon")
    assert done.returncode == 0
    assert "You said: moon" in done.stdout


def test_json_prints_every_message_for_scripts(daemon: Daemon) -> None:
    done = stringd(daemon, "run", "hello", "-i", "x", "--json")
    messages = [json.loads(line) for line in done.stdout.splitlines()]
    assert [problem for message in messages for problem in problems(message)] == []
    assert messages[-1]["type"] == "strategy_completed"


def test_the_exit_code_tells_a_failure(daemon: Daemon) -> None:
    path = write(daemon, "bad.yaml", strategy(sequential("a"), a=scripted({"error": "no luck"})))
    done = stringd(daemon, "run", path)
    assert done.returncode == 1
    assert 'EXECUTION_ERROR: Step "a" failed: LLM call failed: no luck' in done.stdout


def test_a_run_that_asks_while_nobody_answers_is_stopped(daemon: Daemon) -> None:
    done = stringd(daemon, "run", "hello")
    assert done.returncode == 1
    assert "no more input" in done.stderr


def test_output_cannot_drive_the_terminal(daemon: Daemon) -> None:
    source = strategy(sequential("a"), a=scripted({"chunks": ["\x1b]0;owned\x07\x1b[2J"]}))
    done = stringd(daemon, "run", write(daemon, "esc.yaml", source))
    assert "\x1b" not in done.stdout
    assert "\\x1b]0;owned" in done.stdout


@pytest.mark.parametrize(
    ("args", "told"),
    [
        (["run", "nothing-here"], "no strategy file or discovered strategy is called"),
        (["run", "hello", "--port", "x"], "--port must be a port"),
        (["runs", "show", "nope"], "Run not found: nope"),
        (["runs", "resume", "nope"], "Run not found: nope"),
        (["runs", "stop", "nope"], "run nope is not running"),
    ],
)
def test_mistakes_are_told_in_one_line(daemon: Daemon, args: list[str], told: str) -> None:
    done = stringd(daemon, *args)
    assert done.returncode == 1
    assert done.stderr.startswith("stringd: ")
    assert told in done.stderr
    assert len(done.stderr.splitlines()) == 1


def test_the_name_of_an_earlier_run_is_not_taken_again(daemon: Daemon) -> None:
    assert stringd(daemon, "run", "hello", "--run-id", "taken", "-i", "x").returncode == 0
    again = stringd(daemon, "run", "hello", "--run-id", "taken", "-i", "x")
    assert again.returncode == 1
    told = "run taken already exists; use stringd runs resume or stringd runs continue"
    assert again.stderr == f"stringd: {told}\n"
    assert stringd(daemon, "runs", "stop", "taken").returncode == 1


def test_an_error_cannot_drive_the_terminal(daemon: Daemon) -> None:
    source = strategy(sequential("\x1b[2J"), a=scripted("x"))
    done = stringd(daemon, "run", write(daemon, "esc-name.yaml", source))
    assert "\x1b" not in done.stderr
    assert "\\x1b[2J" in done.stderr


def test_whoever_is_asked_sees_the_command_and_its_surroundings(daemon: Daemon) -> None:
    args = {"command": 'eval "$X"\n# ? a asks: ok', "cwd": "/", "env": {"X": "rm y"}}
    calls = {"tools": [{"name": "run_command", "args": args}]}
    source = strategy(sequential("a"), a={**scripted(calls, "end"), "tools": ["run_command"]})
    done = stringd(daemon, "run", write(daemon, "asks.yaml", source), text="yes\nno\n")
    asked = [line for line in done.stdout.splitlines() if line.startswith("? ")]
    command = 'eval "$X"\\n# ? a asks: ok'
    why = "[what eval … runs is not clear]"
    choices = "(yes, no <why>, always or never in this run"
    assert asked == [
        f"? a wants to change / to run {command} with X=rm y {choices})",
        f"? a wants to run {command} with X=rm y {why} {choices}, edit: <command>)",
    ]


def test_what_follows_a_typed_no_is_the_reason_of_the_denial(daemon: Daemon) -> None:
    calls = {"tools": [{"name": "read_file", "args": {"path": "/etc/hostname"}}]}
    source = strategy(sequential("a"), a={**scripted(calls, "end"), "tools": ["read_file"]})
    path = write(daemon, "denied.yaml", source)
    done = stringd(daemon, "run", path, "--run-id", "denied", text="no, read the copy\n")
    assert done.returncode == 0, done.stderr
    timeline = (daemon.directory / "data" / "runs" / "denied.jsonl").read_text("utf-8")
    events = [json.loads(line) for line in timeline.splitlines()]
    (denied,) = [each for each in events if each["type"] == "permission_decision"]
    assert (denied["decision"], denied["reason"]) == ("deny", "read the copy")


def test_a_server_the_agents_must_do_without_is_told(daemon: Daemon) -> None:
    place = daemon.directory / ".stringd" / "mcp.json"
    place.parent.mkdir(exist_ok=True)
    off = {"transport": "stdio", "command": "/nowhere/server"}
    servers = {"off": off, "gone": {**off, "enabledByDefault": True}}
    place.write_text(json.dumps({"mcpServers": servers}), "utf-8")
    assert stringd(daemon, "trust", str(daemon.directory)).returncode == 0
    agent = {"model": "demo/echo", "mcpServers": ["off", "gone"]}
    path = write(daemon, "does-without.yaml", strategy(sequential("a"), a=agent))
    done = stringd(daemon, "run", path, "-i", "go")
    assert done.returncode == 0
    assert "MCP server off is off; enabledByDefault in its mcp.json" in done.stderr
    assert "MCP server gone could not be used: " in done.stderr


def test_a_finished_run_is_continued_with_what_its_agents_remember(daemon: Daemon) -> None:
    path = write(daemon, "two-answers.yaml", strategy(sequential("a"), a=scripted("one", "two")))
    assert stringd(daemon, "run", path, "--run-id", "talk", "-i", "go").returncode == 0
    more = stringd(daemon, "runs", "continue", "talk", "and?")
    assert (more.returncode, more.stdout.splitlines()[-1]) == (0, "two")
    shown = stringd(daemon, "runs", "show", "talk").stdout
    assert "you:\n  go\n\na:\n  one\n\nyou:\n  and?\n\na:\n  two" in shown


def test_a_run_that_works_is_followed_not_continued(daemon: Daemon) -> None:
    terminal = Terminal(daemon, "run", "hello", "--run-id", "at-work")
    terminal.until("you needs input")
    refused = stringd(daemon, "runs", "continue", "at-work", "-i", "more")
    assert (refused.returncode, "see it with stringd runs resume" in refused.stderr) == (1, True)
    terminal.type("me\r")
    assert terminal.ended() == 0


def test_a_result_that_was_not_said_last_is_shown(daemon: Daemon) -> None:
    path = str(EXAMPLES / "research-with-critic.yaml")
    assert stringd(daemon, "run", path, "--run-id", "judged", "-i", "x").returncode == 0
    shown = stringd(daemon, "runs", "show", "judged").stdout
    assert "critic:\n  ==OK==\n  Print it.\n\nresult:\n  Heat pumps move" in shown


def test_runs_are_listed_shown_and_resumed(daemon: Daemon) -> None:
    source = strategy(sequential("a", "b"), a=scripted("one"), b=scripted({"error": "later"}))
    path = write(daemon, "two.yaml", source)
    assert stringd(daemon, "run", path, "--run-id", "mine", "-i", "go").returncode == 1
    listed = json.loads(stringd(daemon, "runs", "--json").stdout)
    assert {"runId": "mine", "status": "error"}.items() <= next(
        run for run in listed if run["runId"] == "mine"
    ).items()
    assert "mine" in stringd(daemon, "runs").stdout
    shown = stringd(daemon, "runs", "show", "mine").stdout
    assert "you:\n  go" in shown
    assert "a:\n  one" in shown
    write(daemon, "two.yaml", {**source, "agents": {"a": scripted("x"), "b": scripted("two")}})
    resumed = stringd(daemon, "runs", "resume", "mine")
    assert resumed.returncode == 0
    assert "> b" in resumed.stdout
    assert "> a" not in resumed.stdout


def test_a_run_is_forked_after_a_step_and_followed(daemon: Daemon) -> None:
    path = write(
        daemon, "fork.yaml", strategy(sequential("a", "b"), a=scripted("A"), b=scripted("B"))
    )
    assert stringd(daemon, "run", path, "--run-id", "base", "-i", "go").returncode == 0
    forked = stringd(daemon, "runs", "fork", "base", "--at", "a", "--run-id", "branch")
    assert forked.returncode == 0
    assert "forked branch from base after step a" in forked.stderr
    assert "> b" in forked.stdout
    assert "> a" not in forked.stdout
    refused = stringd(daemon, "runs", "fork", "base", "--at", "z")
    assert refused.returncode == 1
    assert "has not completed a step 'z'. Completed: 0 (a), 1 (b)" in refused.stderr


def test_a_completed_run_has_nothing_to_resume_and_is_left_as_it_was(daemon: Daemon) -> None:
    path = write(daemon, "done.yaml", strategy(sequential("a"), a=scripted("one")))
    assert stringd(daemon, "run", path, "--run-id", "done", "-i", "go").returncode == 0
    for _ in range(2):
        resumed = stringd(daemon, "runs", "resume", "done")
        assert resumed.returncode == 1
        assert resumed.stderr == "stringd: Run has nothing left to resume: done\n"
    assert "run done is not running" in stringd(daemon, "runs", "stop", "done").stderr


def test_a_run_is_deleted(daemon: Daemon) -> None:
    path = write(daemon, "gone.yaml", strategy(sequential("a"), a=scripted("one")))
    assert stringd(daemon, "run", path, "--run-id", "gone", "-i", "go").returncode == 0
    deleted = stringd(daemon, "runs", "delete", "gone", "--json")
    assert (deleted.returncode, json.loads(deleted.stdout)) == (0, {"deleted": "gone"})
    again = stringd(daemon, "runs", "delete", "gone")
    assert (again.returncode, again.stderr) == (
        1,
        "stringd: Run not found: gone; stringd runs lists those there are\n",
    )


def test_strategies_lists_and_checks(daemon: Daemon) -> None:
    folder = daemon.directory / ".stringd" / "strategies"
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "broken.yaml").write_text("name: [", "utf-8")
    listed = stringd(daemon, "strategies")
    assert "hello" in listed.stdout
    assert "broken.yaml: Parse error" in listed.stdout
    good = stringd(daemon, "strategies", "check", *map(str, EXAMPLES.glob("*-*.yaml")))
    assert (good.returncode, good.stdout.count(": ok")) == (0, 3)
    bad = stringd(daemon, "strategies", "check", str(folder / "broken.yaml"), "--json")
    assert bad.returncode == 1
    assert json.loads(bad.stdout)[0]["ok"] is False


def tool_user(name: str, **args: str) -> Json:
    """An agent that uses one tool."""
    return {**scripted({"tools": [{"name": name, "args": args}]}, "end"), "tools": [name]}


class Terminal:
    """`stringd` on a real terminal, read until a text appears."""

    def __init__(self, daemon: Daemon, *args: str) -> None:
        self._master, slave = pty.openpty()
        self.child = subprocess.Popen(
            [sys.executable, "-m", "stringd", *args],
            env={**daemon.child_environment(), "TERM": "xterm", "COLUMNS": "90"},
            cwd=daemon.directory,
            stdin=slave,
            stdout=slave,
            stderr=slave,
            start_new_session=True,
        )
        os.close(slave)
        self.shown = ""

    def until(self, text: str) -> None:
        while text not in self.shown:
            ready, _, _ = select.select([self._master], [], [], WAIT_SECONDS)
            assert ready, f"never shown: {text!r} in {self.shown!r}"
            self.shown += os.read(self._master, 65536).decode("utf-8", "replace")
        self.shown = self.shown[self.shown.index(text) + len(text) :]

    def type(self, keys: str) -> None:
        os.write(self._master, keys.encode())

    def ended(self) -> int:
        with suppress(OSError):
            while os.read(self._master, 65536):
                pass
        os.close(self._master)
        return self.child.wait(WAIT_SECONDS)


def test_the_live_view_asks_inline_and_shows_the_flow(daemon: Daemon) -> None:
    terminal = Terminal(daemon, "run", "hello")
    terminal.until("you needs input")
    terminal.type("moom\x7fn\r")
    terminal.until("You said: moon")
    assert terminal.ended() == 0


def test_typing_while_it_runs_steers_it(daemon: Daemon) -> None:
    held = daemon.directory / "held-until-seen"
    os.mkfifo(held)
    agent = tool_user("run_command", command=f"cat {held.name}")
    path = write(daemon, "steer.yaml", strategy(sequential("a"), a=agent))
    terminal = Terminal(daemon, "run", path, "-i", "go", "--run-id", "steered")
    terminal.until("steer")
    terminal.type("be brief\r")
    terminal.until("↪ be brief")
    held.write_text("let go\n", "utf-8")
    assert terminal.ended() == 0
    kept = [file.read_text("utf-8") for file in (daemon.data_dir / "runs").glob("steered*")]
    assert any("<user_steering>\\nbe brief\\n</user_steering>" in each for each in kept), kept


def test_a_line_begun_before_a_permission_is_asked_for_does_not_give_it(daemon: Daemon) -> None:
    """Whoever types `yes` to something else must not find that an agent had asked just then."""
    held = daemon.directory / "held-until-typed"
    os.mkfifo(held)
    (daemon.directory.parent / "outside.txt").write_text("OUTSIDE", "utf-8")
    calls = [
        {"tools": [{"name": "run_command", "args": {"command": f"cat {held.name}"}}]},
        {"tools": [{"name": "read_file", "args": {"path": "../outside.txt"}}]},
    ]
    agent = {**scripted(*calls, "end"), "tools": ["run_command", "read_file"]}
    path = write(daemon, "ahead.yaml", strategy(sequential("a"), a=agent))
    terminal = Terminal(daemon, "run", path, "-i", "go", "--run-id", "ahead")
    terminal.until("steer")
    terminal.type("ye")
    terminal.until("ye")
    held.write_text("let go\n", "utf-8")
    terminal.until("wants to read")
    terminal.type("s\r")
    terminal.until("begun before the question could be read")
    terminal.type("no\r")
    assert terminal.ended() == 0
    kept = [file.read_text("utf-8") for file in (daemon.data_dir / "runs").glob("ahead*")]
    assert kept
    assert not any("OUTSIDE" in each for each in kept)


@pytest.mark.parametrize("view", [[], ["--plain"]])
def test_ctrl_d_leaves_a_run_that_goes_on(daemon: Daemon, view: list[str]) -> None:
    run_id = f"left{len(view)}"
    terminal = Terminal(daemon, "run", "hello", "--run-id", run_id, *view)
    terminal.until("you needs input")
    terminal.type("\x04")
    terminal.until(
        f"Run {run_id} continues in the background. Reattach: stringd runs resume {run_id}"
    )
    assert terminal.ended() == 4
    again = Terminal(daemon, "runs", "resume", run_id, *view)
    again.until("you needs input")
    again.type("me\r")
    again.until("You said: me")
    assert again.ended() == 0


def test_ctrl_c_stops_the_run_and_says_so(daemon: Daemon) -> None:
    terminal = Terminal(daemon, "run", "hello", "--run-id", "interrupted")
    terminal.until("you needs input")
    terminal.child.send_signal(signal.SIGINT)
    terminal.until("CANCELLED")
    assert terminal.ended() == 130
    listed = json.loads(stringd(daemon, "runs", "--json").stdout)
    assert next(r for r in listed if r["runId"] == "interrupted")["status"] == "cancelled"


@pytest.mark.parametrize(
    ("agent", "told"),
    [
        ({"type": "user"}, "a needs input"),
        (tool_user("ask_question", question="Which?"), "a asks: Which?"),
        (tool_user("read_file", path="/etc/hosts"), "a wants to read /etc/hosts"),
    ],
)
def test_what_a_run_waits_for_is_shown_with_it(daemon: Daemon, agent: Json, told: str) -> None:
    path = write(daemon, "waits.yaml", strategy(sequential("a"), a=agent))
    run_id = f"waits-{told.split()[1]}"
    terminal = Terminal(daemon, "run", path, "--run-id", run_id, "--plain")
    terminal.until(told)
    assert f"\n? {told}\n" in stringd(daemon, "runs", "show", run_id).stdout
    way_on = f"  ? {told}; answer with: stringd runs resume {run_id}\n"
    assert way_on in stringd(daemon, "runs").stdout
    terminal.child.send_signal(signal.SIGINT)
    assert terminal.ended() == 130
    assert told not in stringd(daemon, "runs", "show", run_id).stdout


def test_when_the_daemon_dies_the_way_on_is_told(tmp_path: Path) -> None:
    with Daemon(tmp_path) as mortal:
        source = strategy(sequential("a"), a=scripted({"chunks": ["x"], "delayMs": 60_000}))
        path = write(mortal, "slow.yaml", source)
        terminal = Terminal(mortal, "run", path, "--run-id", "cut", "--plain")
        terminal.until("> a")
        mortal.kill()
        terminal.until("waiting 60 s for the daemon to come back")
        terminal.child.send_signal(signal.SIGINT)
        terminal.until("Go on with: stringd runs resume cut")
        assert terminal.ended() == 1


def test_when_the_daemon_comes_back_the_run_continues_in_the_same_view(tmp_path: Path) -> None:
    with Daemon(tmp_path) as mortal:
        source = strategy(sequential("a", "you"), a=scripted("one"), you={"type": "user"})
        source["agents"]["you"]["config"] = {"requireInput": True}
        source["flow"]["steps"] = [{"agent": "a"}, {"approve": "Good?", "name": "check"}]
        path = write(mortal, "back.yaml", source)
        terminal = Terminal(mortal, "run", path, "--run-id", "back", "--plain")
        terminal.until("check asks: Good?")
        mortal.kill()
        terminal.until("waiting 60 s for the daemon to come back")
        mortal.start()
        terminal.until("the daemon is back")
        terminal.until("check asks: Good?")
        terminal.type("yes\n")
        assert terminal.ended() == 0


def test_a_stopped_daemon_says_how_to_go_on_with_its_runs(tmp_path: Path) -> None:
    with Daemon(tmp_path) as mortal:
        source = strategy(sequential("a"), a={"type": "user"})
        path = write(mortal, "asks.yaml", source)
        terminal = Terminal(mortal, "run", path, "--run-id", "stopped", "--plain")
        terminal.until("a needs input")
        mortal.stop()
        terminal.until("CANCELLED: Run cancelled by client")
        terminal.until("stringd runs resume stopped")
        assert terminal.ended() == 3


def test_several_permissions_are_answered_at_once_from_elsewhere(daemon: Daemon) -> None:
    calls = [{"name": "read_file", "args": {"path": f"/etc/{n}"}} for n in ("hosts", "hostname")]
    source = strategy(
        sequential("a"), a={**scripted({"tools": calls}, "end"), "tools": ["read_file"]}
    )
    path = write(daemon, "two.yaml", source)
    terminal = Terminal(daemon, "run", path, "--run-id", "two", "--plain")
    terminal.until("wants to read /etc/hosts")
    terminal.until("wants to read /etc/hostname")
    unclear = stringd(daemon, "runs", "answer", "two", "maybe")
    assert (unclear.returncode, "Answer yes, no and why" in unclear.stderr) == (1, True)
    done = stringd(daemon, "runs", "answer", "two", "--all", "--json", "never", "not", "today")
    assert done.returncode == 0, done.stderr
    assert len(json.loads(done.stdout)["answered"]) == 2
    assert terminal.ended() == 0
    nothing = stringd(daemon, "runs", "answer", "two", "yes")
    assert nothing.returncode == 1


def test_a_typed_line_can_answer_all_and_an_unclear_one_answers_none(daemon: Daemon) -> None:
    calls = [{"name": "read_file", "args": {"path": f"/etc/{n}"}} for n in ("hosts", "hostname")]
    agent = {**scripted({"tools": calls}, {"tools": calls}, "end"), "tools": ["read_file"]}
    path = write(daemon, "typed.yaml", strategy(sequential("a"), a=agent))
    terminal = Terminal(daemon, "run", path, "--run-id", "typed", "--plain")
    terminal.until("wants to read /etc/hosts")
    terminal.until("wants to read /etc/hostname")
    terminal.type("perhaps\n")
    terminal.until("That was not an answer.")
    terminal.type("never all\n")
    terminal.until("a: end")
    assert terminal.ended() == 0
    kept = (daemon.data_dir / "runs" / "typed.jsonl").read_text("utf-8")
    assert kept.count('"decision":"deny-session"') == 2
