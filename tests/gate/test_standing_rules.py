"""Rules at a real gate: accepted by a key at its start, then deciding by themselves."""

import json
import os
import shutil
import subprocess
import sys
from collections.abc import Callable, Iterator
from hashlib import sha256
from pathlib import Path
from typing import Any

import pytest

from stringd.gate.acceptance import acceptance_pages, marked_lines
from stringd.gate.display import paint
from stringd.gate.question import Size
from stringd.gate.rule_places import RulesOnDisk
from tests.gate.support import (
    QUESTION,
    RunningGate,
    Terminal,
    answer,
    exchange,
    request,
    running_gate,
)
from tests.gate.test_grants import PERSON, deny
from tests.requirements import proves

RULES = """\
[[rule]]
effect = "allow"
argv = ["/usr/bin/echo", "hello", { name = true }]
limit = 600

[[rule]]
effect = "allow"
argv = ["/usr/bin/head", "-n", { int = [1, 9] }]

[[rule]]
effect = "allow"
argv = ["/usr/bin/printenv", "LANG"]
env = { LANG = "C" }

[[rule]]
effect = "allow"
argv = ["/usr/bin/cat", { path_under = "/etc" }]

[[rule]]
effect = "allow"
argv = ["/usr/bin/true"]
limit = 1

[[rule]]
effect = "deny"
argv = ["shutdown", { rest = true }]

[[rule]]
effect = "ask"
argv = ["echo", "hello", "boss", { rest = true }]
"""
ACCEPT = "Use these rules until this gate ends? [y/N]"


def pressing(key: str) -> Callable[[Terminal], None]:
    def press(terminal: Terminal) -> None:
        terminal.wait_for(ACCEPT)
        terminal.type(key)

    return press


def written(folder: Path, text: str = RULES) -> Path:
    (folder / "data").mkdir(exist_ok=True)
    path = folder / "data" / "gate-rules.toml"
    path.write_text(text)
    return path


@pytest.fixture(scope="module")
def ruled(tmp_path_factory: pytest.TempPathFactory) -> Iterator[RunningGate]:
    folder = tmp_path_factory.mktemp("g")
    written(folder)
    with running_gate(folder, program=PERSON, at_start=pressing("y"), size=(60, 100)) as running:
        yield running


def place(gate: RunningGate, line: int) -> str:
    return f"rule:{gate.data_dir / 'gate-rules.toml'}:{line}"


@proves("GATE-RULE-08")
def test_the_whole_file_was_shown_and_its_digest_is_on_record(ruled: RunningGate) -> None:
    for line in RULES.splitlines():
        assert line in ruled.terminal.screen
    record = next(each for each in ruled.audit() if each["event"] == "rules")
    assert record["sha256"] == sha256(RULES.encode()).hexdigest()
    assert (record["accepted_by"], record["rules"]) == ("terminal", 7)


@proves("GATE-RULE-01", "GATE-RULE-08")
def test_an_allowed_command_runs_and_says_by_which_line(ruled: RunningGate) -> None:
    reply = exchange(ruled.path, request(["echo", "hello", "bob"]))
    assert (reply["status"], reply["decided_by"]) == ("ok", place(ruled, 1))
    ruled.terminal.wait_for("gate-rules.toml:1  echo hello bob")
    events = [each for each in ruled.audit() if each.get("id") == reply["id"]]
    assert [each["event"] for each in events] == ["received", "decided", "finished"]
    assert events[1]["by"] == reply["decided_by"]
    both = exchange(ruled.path, request(["echo", "hello", "bob"], ["head", "-n", "3"]))
    assert both["decided_by"] == f"{place(ruled, 1)} {place(ruled, 6)}"


@proves("GATE-RULE-06")
def test_a_denied_command_is_denied_without_a_question(ruled: RunningGate) -> None:
    reply = exchange(ruled.path, request(["shutdown", "now"], privileged=False))
    assert (reply["status"], reply["decided_by"]) == ("denied", place(ruled, 24))
    assert "a rule of this machine denies it" in reply["decision_note"]


EITHER: list[dict[str, Any]] = [
    request(["echo", "hello", "x"]),
    request(["/usr/bin/echo", "hello", "x"]),
    request(["echo", "hello", "-n"]),
    request(["echo", "hello", "x", "y"]),
    request(["echo", "hello", "boss"]),
    request(["echo", "hello", "x"], env={"HOME": "/tmp"}),
    request(["echo", "hello", "x"], forward_agent=True),
    request(["echo", "hello", "x"], ["head", "-n", "10"]),
    request(["sh", "-c", "echo hello x"]),
    request(["env", "echo", "hello", "x"]),
    request(["printenv", "LANG"], env={"LANG": "C"}),
    request(["printenv", "LANG"]),
    request(["cat", "/etc/passwd"]),
    request(["cat", "/etc/../etc/passwd"]),
    request(["cat", "/etc/no-such-file"]),
    request(["cat", "/proc/self/environ"]),
    request(["no-such-program"]),
]


@proves("GATE-RULE-07")
@pytest.mark.parametrize("message", EITHER, ids=lambda each: str(each["pipeline"])[:60])
def test_the_gate_does_what_it_explained(ruled: RunningGate, message: dict[str, Any]) -> None:
    fresh = request() | {"pipeline": message["pipeline"]}
    message = message | {"id": fresh["id"], "time": fresh["time"]}
    about = message | {"id": f"about {message['id']}", "action": "explain"}
    explained = exchange(ruled.path, about)["decision"]
    if explained["decision"] == "allow":
        assert exchange(ruled.path, message)["decided_by"] == explained["decided_by"]
    else:
        assert explained["decision"] == "ask"
        deny(ruled, message)


@proves("GATE-RULE-05")
def test_beyond_its_limit_the_person_is_asked(ruled: RunningGate) -> None:
    assert exchange(ruled.path, request(["true"]))["decided_by"] == place(ruled, 19)
    deny(ruled, request(["true"]))


@proves("GATE-RULE-08")
def test_a_file_that_changes_under_a_running_gate_changes_nothing(ruled: RunningGate) -> None:
    path = ruled.data_dir / "gate-rules.toml"
    path.write_text(RULES.replace("hello", "goodbye"))
    try:
        assert exchange(ruled.path, request(["echo", "hello", "x"]))["status"] == "ok"
        deny(ruled, request(["echo", "goodbye", "x"]))
    finally:
        path.write_text(RULES)


def explain(data_dir: Path, *words: str) -> dict[str, Any]:
    env = os.environ | {"STRINGD_DATA_DIR": str(data_dir)}
    done = subprocess.run(
        [*PERSON, "gate", "explain", "--json", *words],
        capture_output=True,
        text=True,
        check=True,
        env=env,
    )
    found: dict[str, Any] = json.loads(done.stdout)
    return found


@proves("GATE-RULE-07")
def test_explain_asks_the_gate_that_runs_and_else_reads_the_files(ruled: RunningGate) -> None:
    words = ["--no-privilege", "--", "echo", "hello", "x"]
    for socket in (ruled.path, ruled.path.with_name("none.sock")):
        found = explain(ruled.data_dir, "--socket", str(socket), *words)
        assert (found["decision"], found["decided_by"]) == ("allow", place(ruled, 1))
        found = explain(ruled.data_dir, "--socket", str(socket), *words[:-1], "--", "-x")
        assert (found["decision"], found["word"]) == ("ask", 2)


@proves("GATE-RULE-08")
@pytest.mark.parametrize("key", ["n", "N", "\r", "\x1b"])
def test_rules_that_are_not_accepted_do_not_count(home: Path, key: str) -> None:
    written(home)
    with running_gate(home, program=PERSON, at_start=pressing(key)) as gate:
        assert "were not accepted" in gate.terminal.screen
        deny(gate, request(["echo", "hello", "x"]))
        assert not (gate.data_dir / "gate-rules.toml.accepted").exists()


@proves("GATE-RULE-08")
def test_a_long_file_counts_once_its_end_was_seen_and_changes_are_marked(home: Path) -> None:
    long = RULES + "".join(f"# line {number}\n" for number in range(60))
    written(home, long)

    def read_all(terminal: Terminal) -> None:
        terminal.wait_for("Page 1 of ")
        terminal.wait_for(ACCEPT)
        terminal.type("y")
        terminal.wait_for("Not yet")
        while "# line 59" not in terminal.screen:
            terminal.wait_for(ACCEPT)
            terminal.type(" ")
            terminal.wait_for("Page ")
        terminal.wait_for(ACCEPT)
        terminal.type("y")

    with running_gate(home, program=PERSON, at_start=read_all) as gate:
        assert exchange(gate.path, request(["echo", "hello", "x"]))["status"] == "ok"
        accepted = gate.data_dir / "gate-rules.toml.accepted"
        assert accepted.read_text() == long


def test_rules_without_a_terminal_are_not_accepted(home: Path) -> None:
    written(home)
    words = [*PERSON, "gate", "--socket", str(home / "gate.sock")]
    with subprocess.Popen(
        words,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.PIPE,
        text=True,
        start_new_session=True,
        env=os.environ | {"STRINGD_DATA_DIR": str(home / "data")},
    ) as process:
        assert process.stderr is not None
        assert "were not accepted" in process.stderr.readline()
        process.terminate()


def test_a_broken_file_is_named_by_line_and_everything_is_asked(home: Path) -> None:
    written(home, RULES + '[[rule]]\neffect = "allow"\nargv = ["git", "status"]\n')
    with running_gate(home, program=PERSON) as gate:
        shown = gate.terminal.screen.replace("\r\n", "")
        assert "gate-rules.toml:31: an allow names its program" in shown
        deny(gate, request(["echo", "hello", "x"]))


@proves("GATE-RULE-04")
@pytest.mark.skipif(os.getuid() != 0, reason="only root can write such a file")
def test_roots_rules_let_root_run_without_a_key(home: Path) -> None:
    path = home / "root-rules.toml"
    path.write_text('[[rule]]\neffect = "allow"\nroot = true\nargv = ["/usr/bin/id", "-u"]\n')
    path.chmod(0o644)
    with running_gate(home, "--root-rules", str(path)) as gate:
        for privileged in {False, shutil.which("sudo") is not None}:
            reply = exchange(gate.path, request(["id", "-u"], privileged=privileged))
            assert (reply["status"], reply["decided_by"]) == ("ok", f"rule:{path}:1")
        deny(gate, request(["id", "-un"]))
        with gate.ask(request(["id", "-un"])) as connection:
            gate.terminal.wait_for(QUESTION)
            gate.terminal.type("g")
            gate.terminal.wait_for("Nothing is granted to root")
            gate.terminal.wait_for(QUESTION)
            gate.terminal.type("N")
            assert answer(connection)["status"] == "denied"


@proves("GATE-RULE-04")
def test_root_needs_no_acceptance_but_a_file_others_can_write_does_not_count(home: Path) -> None:
    path = home / "root-rules.toml"
    path.write_text(RULES)
    path.chmod(0o666)
    with running_gate(home, "--root-rules", str(path), program=PERSON) as gate:
        assert "it does not count" in gate.terminal.screen.replace("\r\n", "")
        deny(gate, request(["echo", "hello", "x"]))


def test_what_changed_is_marked_and_everything_is_there() -> None:
    before, after = "a\nb\nc\n", "a\nB\nc\nd\n"
    assert list(marked_lines(after, None)) == [("+", each) for each in "aBcd"]
    assert list(marked_lines(after, after)) == [(" ", each) for each in "aBcd"]
    marked = list(marked_lines(after, before))
    assert [text for mark, text in marked if mark != "-"] == list("aBcd")
    assert ("-", "b") in marked
    assert ("+", "d") in marked


@pytest.mark.parametrize("separator", ["\u2028", "\u2029", "\x85", "\x0b", "\x1c"])
def test_a_comment_cannot_look_like_a_rule(separator: str) -> None:
    text = f"# old{separator}[[rule]]\neffect"
    assert [line for _, line in marked_lines(text, None)] == text.split("\n")
    assert [line for mark, line in marked_lines(text, "x") if mark == "+"] == text.split("\n")
    wrapped = "#" + "x" * 57 + "[[rule]]\n[[rule]]\n"
    pages = acceptance_pages(RulesOnDisk(Path("/r"), wrapped), wrapped, Size(60, 24))
    shown = paint([row for page in pages for row in page], colour=False).splitlines()
    assert [row for row in shown if "[[rule]]" in row] == ["┊ [[rule]]", "  [[rule]]"]


def test_the_file_cannot_forge_the_screen() -> None:
    text = "# \x1b[2J\x1b[H harmless\n#" + "x" * 300 + "\n"
    pages = acceptance_pages(RulesOnDisk(Path("/r"), text), None, Size(60, 24))
    shown = paint([row for page in pages for row in page], colour=False)
    assert "\x1b" not in shown
    assert "\\x1b[2J" in shown
    assert max(map(len, shown.splitlines())) <= 60


def test_rules_check_names_problems_and_lists_rules(home: Path) -> None:
    path = written(home)

    def check(*more: str) -> subprocess.CompletedProcess[str]:
        words = [sys.executable, "-m", "stringd", "gate", "rules", "check", *more]
        return subprocess.run(words, capture_output=True, text=True, check=False)

    good = check(str(path))
    assert (good.returncode, good.stderr) == (0, "")
    assert f"{path}:24: deny shutdown" in good.stdout
    path.write_text("[[rule]]\neffect = 'allow'\nargv = ['git']\n")
    bad = check(str(path))
    assert bad.returncode == 1
    assert f"{path}:1: an allow names its program by its full path" in bad.stderr
    found = json.loads(check("--json", str(path)).stdout)["files"][0]
    assert found["problems"][0]["line"] == 1
    assert check(str(home / "none")).returncode == 1
