"""`stringd runs` and `stringd runs show`: which runs there are, and what was done in one."""

import json
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.cli.runs.test_run import Terminal, stringd, tool_user, write
from tests.runs.support import scripted, sequential, strategy
from tests.support.daemon import Daemon


@pytest.fixture(scope="module")
def daemon(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Daemon]:
    with Daemon(tmp_path_factory.mktemp("show")) as running:
        yield running


def test_what_was_done_in_a_run_is_shown_with_what_was_said(daemon: Daemon) -> None:
    calls = [
        {"tools": [{"name": "create_file", "args": {"path": "new.txt", "content": "hello\n"}}]},
        {"tools": [{"name": "read_file", "args": {"path": "/etc/hostname"}}]},
        {"tools": [{"name": "ask_question", "args": {"question": "Which?"}}]},
    ]
    tools = ["create_file", "read_file", "ask_question"]
    source = strategy(sequential("a"), a={**scripted(*calls, "end"), "tools": tools})
    path = write(daemon, "busy.yaml", source)
    done = stringd(daemon, "run", path, "--run-id", "busy", "-i", "go", text="no, not it\nblue\n")
    assert done.returncode == 0, done.stderr
    shown = stringd(daemon, "runs", "show", "busy", "--tools").stdout
    for told in (
        "a used create_file content=hello path=new.txt",
        "create new.txt",
        "deny: fs.read /etc/hostname for a: not it",
        "you to a: blue",
        " in, ",
    ):
        assert told in shown, shown
    found = json.loads(stringd(daemon, "runs", "show", "busy", "--tools", "--json").stdout)
    kinds = {each["kind"] for each in found["activity"]}
    assert kinds == {"tool", "permission", "answer", "change"}
    tool = next(each for each in found["activity"] if each["kind"] == "tool")
    assert tool["at"] <= tool["endedAt"]
    assert "activity" not in json.loads(stringd(daemon, "runs", "show", "busy", "--json").stdout)


def test_runs_are_listed_by_state_strategy_directory_and_number(daemon: Daemon) -> None:
    for name, agent in (("good", scripted("x")), ("bad", scripted({"error": "no"}))):
        path = write(daemon, f"{name}.yaml", strategy(sequential("a"), a=agent))
        stringd(daemon, "run", path, "--run-id", name, "-i", "go")

    def listed(*options: str) -> list[str]:
        found = json.loads(stringd(daemon, "runs", "--json", *options).stdout)
        return [each["runId"] for each in found]

    assert listed("--state", "error") == ["bad"]
    assert listed("--strategy", "good") == ["good"]
    assert listed("--cwd", "/") == []
    assert listed("--limit", "1") == ["bad"]
    assert "no run is like that" in stringd(daemon, "runs", "--strategy", "none").stdout


def test_a_run_whose_daemon_ended_says_how_to_resume_it(tmp_path: Path) -> None:
    with Daemon(tmp_path) as mortal:
        path = write(
            mortal, "q.yaml", strategy(sequential("a"), a=tool_user("ask_question", question="?"))
        )
        view = Terminal(mortal, "run", path, "--run-id", "cut", "--plain", "-i", "go")
        view.until("a asks: ?")
        view.type("\x04")
        assert view.ended() == 4
        mortal.kill()
        mortal.start()
        listed = stringd(mortal, "runs", "--state", "interrupted").stdout
        assert "cut  interrupted" in listed
        assert "resume with: stringd runs resume cut" in listed
