"""The hook of coding agents: what they say, what they read, and the setting that connects them."""

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from stringd.gate.decide import Event, KeyAnswer
from stringd.gate.hook import NotAQuestionError, answer, read_question
from stringd.gate.hook_settings import HookError, install, record, remove, write
from stringd.gate.hook_text import tool_text
from stringd.wire.gate import Response, Status
from tests.gate.support import Desk, Human, serving

COMMAND = "/usr/bin/stringd gate hook --agent claude"


def event(tool: str = "Bash", **given: object) -> dict[str, Any]:
    """What Claude Code writes for a permission."""
    return {
        "session_id": "abc",
        "transcript_path": "/home/a/.claude/x.jsonl",
        "cwd": "/home/a/shop",
        "permission_mode": "default",
        "hook_event_name": "PermissionRequest",
        "tool_name": tool,
        "tool_input": given or {"command": "ls"},
        "permission_suggestions": [],
    }


def hook(said: object, path: Path | None = None) -> "subprocess.CompletedProcess[str]":
    env = {**os.environ, "STRINGD_GATE_SOCKET": str(path or "/nowhere/gate.sock")}
    return subprocess.run(
        [sys.executable, "-m", "stringd", "gate", "hook", "--agent", "claude"],
        input=said if isinstance(said, str) else json.dumps(said),
        env=env,
        capture_output=True,
        text=True,
        check=False,
    )


def decision(done: "subprocess.CompletedProcess[str]") -> dict[str, Any]:
    said = json.loads(done.stdout)["hookSpecificOutput"]
    assert said["hookEventName"] == "PermissionRequest"
    found: dict[str, Any] = said["decision"]
    return found


def test_a_yes_at_the_gate_lets_the_agent_continue(desk: Desk) -> None:
    done = hook(event(command="make clean", description="start over"), desk.path)
    assert done.returncode == 0
    assert decision(done) == {"behavior": "allow"}
    [question] = desk.human.asked
    assert question.request.text == "make clean\n# start over"
    assert question.request.client == "Claude Code"
    assert question.request.directory == "/home/a/shop"


def test_the_time_a_command_may_take_is_shown() -> None:
    assert tool_text("Bash", {"command": "make", "timeout": 5000}) == "make\n(for up to 5000 ms)"


@pytest.mark.parametrize("tool", ["Write", "Edit", "WebFetch"])
def test_a_name_of_two_lines_does_not_look_like_a_name_and_a_text(tool: str) -> None:
    name = "/srv/notes\n+harmless"
    given = {"file_path": name, "content": "x", "url": name}
    needed = {"Write": ("file_path", "content"), "WebFetch": ("url",)}
    texts = {"file_path": name, "old_string": "a", "new_string": "b"}
    wanted = {each: given[each] for each in needed[tool]} if tool in needed else texts
    shown = tool_text(tool, wanted)
    assert "/srv/notes\\n+harmless" in shown
    assert "+harmless" not in shown.split("\n")


def test_a_no_reaches_the_agent_with_its_note(home: Path) -> None:
    human = Human(lambda _: KeyAnswer(Event.NO, by="test", note="use make dist"))
    with serving(home, human) as desk:
        found = decision(hook(event(), desk.path))
    assert found["behavior"] == "deny"
    assert found["message"].endswith("They said: use make dist")


def test_silence_leaves_the_agent_to_its_own_prompt(home: Path) -> None:
    with serving(home, Human(lambda _: KeyAnswer(Event.SILENCE, by="test"))) as desk:
        done = hook(event(), desk.path)
    assert (done.returncode, done.stdout) == (0, "")


@pytest.mark.parametrize("said", [event(), "", "{", [], {"hook_event_name": "Stop"}])
def test_without_a_gate_or_a_question_there_is_no_decision(said: object) -> None:
    done = hook(said)
    assert (done.returncode, done.stdout) == (0, "")
    assert "no decision" in done.stderr


@pytest.mark.parametrize("status", list(Status))
def test_only_a_yes_allows(status: Status) -> None:
    assert ('"allow"' in answer(Response("1", status))) == (status is Status.OK)


@pytest.mark.parametrize("tool", ["AskUserQuestion", "ExitPlanMode", "EnterPlanMode"])
def test_the_agents_own_questions_stay_with_it(tool: str) -> None:
    with pytest.raises(NotAQuestionError):
        read_question(json.dumps(event(tool)).encode())


def test_an_edit_reads_as_its_difference() -> None:
    given = {"file_path": "/a.py", "old_string": "x = 1\ny = 2", "new_string": "x = 1\ny = 3"}
    assert tool_text("Edit", given).split("\n")[0] == "/a.py"
    assert "-y = 2\n+y = 3" in tool_text("Edit", given)
    assert "everywhere" in tool_text("Edit", given | {"replace_all": True})


@pytest.mark.parametrize(
    ("tool", "given"),
    [
        ("mcp__db__drop", {"table": "users"}),
        ("Bash", {"command": "ls", "new_option": "rm"}),
        ("Bash", {"command": ["ls"]}),
        ("Write", {"file_path": "/a"}),
    ],
)
def test_what_is_not_known_is_shown_whole(tool: str, given: dict[str, object]) -> None:
    assert json.loads(tool_text(tool, given)) == given


def test_characters_that_cannot_be_seen_are_written_by_number() -> None:
    assert tool_text("Bash", {"command": "a\u202eb\x1b[8m\nc\td"}) == "a\\u{202e}b\\x1b[8m\nc\td"


def put_in(path: Path) -> bytes:
    change = install(path, COMMAND)
    write(change)
    return record(change)


@pytest.mark.parametrize(
    "before",
    [
        None,
        b"",
        b"{}",
        b'{"model":"opus",\n\n "hooks": {"Stop": []}}',
        b'{"hooks":{"PermissionRequest":[{"matcher":"Bash","hooks":[]}]}}\n\n',
    ],
)
def test_the_setting_is_put_in_and_taken_out_without_a_trace(
    tmp_path: Path, before: bytes | None
) -> None:
    path = tmp_path / "new" / "settings.json"
    if before is not None:
        path.parent.mkdir()
        path.write_bytes(before)
    kept = put_in(path)
    groups = json.loads(path.read_bytes())["hooks"]["PermissionRequest"]
    assert groups[-1]["hooks"][0]["command"] == COMMAND
    # A second time changes nothing, wherever we are installed by then.
    again = install(path, COMMAND)
    assert again.before == again.after
    write(remove(path, COMMAND, kept))
    assert (path.read_bytes() if path.exists() else None) == before


def test_what_was_changed_since_stays(tmp_path: Path) -> None:
    path = tmp_path / "settings.json"
    path.write_text('{"model": "opus"}')
    kept = put_in(path)
    settings = json.loads(path.read_text())
    path.write_text(json.dumps(settings | {"theme": "dark"}))
    write(remove(path, "/elsewhere/stringd gate hook --agent claude", kept))
    assert json.loads(path.read_text()) == {"model": "opus", "theme": "dark"}


@pytest.mark.parametrize("text", ["{", "[]", '{"hooks": 1}', '{"hooks": {"PermissionRequest": 1}}'])
def test_settings_that_cannot_be_read_are_not_touched(tmp_path: Path, text: str) -> None:
    path = tmp_path / "settings.json"
    path.write_text(text)
    with pytest.raises(HookError):
        install(path, COMMAND)


@pytest.mark.parametrize(
    ("agent", "file"), [("claude", ".claude/settings.json"), ("codex", ".codex/hooks.json")]
)
def test_the_command_shows_the_difference_and_undoes_it(
    tmp_path: Path, agent: str, file: str
) -> None:
    env = {**os.environ, "HOME": str(tmp_path), "STRINGD_DATA_DIR": str(tmp_path / "data")}
    for name in ("CLAUDE_CONFIG_DIR", "CODEX_HOME"):
        env.pop(name, None)

    def run(*words: str) -> "subprocess.CompletedProcess[str]":
        program = [sys.executable, "-m", "stringd", "gate", "hook", "install", agent, *words]
        return subprocess.run(
            program, env=env, capture_output=True, text=True, check=False, stdin=subprocess.DEVNULL
        )

    shown = run()
    assert shown.returncode == 1
    assert '"timeout": 600' in shown.stdout
    assert not (tmp_path / file).exists()
    assert run("--yes").returncode == 0
    assert f"gate hook --agent {agent}" in (tmp_path / file).read_text()
    assert run("--undo", "--yes").returncode == 0
    assert not (tmp_path / file).exists()
