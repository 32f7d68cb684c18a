"""`stringd request` as a program."""

import json
import os
import socket
import subprocess
import sys
from pathlib import Path

import pytest

from stringd import __version__
from stringd.cli.request import RequestUsageError, parse, split_stages
from stringd.gate.decide import Event, KeyAnswer
from tests.client.test_gate import peer
from tests.gate.conftest import desk, home
from tests.gate.support import PATIENCE, Desk, Human, serving
from tests.requirements import proves

__all__ = ["desk", "home"]


def run(path: Path, *words: str, **env: str) -> "subprocess.CompletedProcess[bytes]":
    return subprocess.run(
        [sys.executable, "-m", "stringd", "request", "--socket", str(path), *words],
        capture_output=True,
        timeout=PATIENCE,
        env=os.environ | env,
        check=False,
    )


@proves("GATE-CLI-01")
def test_output_and_exit_code_are_passed_on(desk: Desk) -> None:
    script = (
        "import sys; sys.stdout.buffer.write(b'\\xff\\n'); print('e', file=sys.stderr); exit(7)"
    )
    done = run(desk.path, "--no-privilege", sys.executable, "-c", script)
    assert (done.returncode, done.stdout) == (7, b"\xff\n")
    assert done.stderr == b"e\n(exit code: 7)\n"
    assert desk.human.asked[0].request.session == "stringd-request"


@proves("GATE-CLI-01")
def test_a_lone_bar_joins_commands_and_options_end_at_the_command(desk: Desk) -> None:
    done = run(desk.path, "--no-privilege", "--reason", "why", "echo", "--json", "|", "cat", "-A")
    assert (done.returncode, done.stdout) == (0, b"--json$\n")
    assert desk.human.asked[0].request.reason == "why"


def test_a_signal_death_is_255(desk: Desk) -> None:
    done = run(desk.path, "--no-privilege", "--", "sh", "-c", "kill -9 $$")
    assert done.returncode == 255
    assert done.stderr == b"(exit code: -1)\n"


@proves("GATE-CLI-01")
@pytest.mark.parametrize(
    ("event", "note", "message"),
    [
        (Event.NO, "", b"Request denied.\n"),
        (Event.NO, "use apt", b"Request denied.\nNote: use apt\n"),
        (Event.SILENCE, "", b"Request timed out.\n"),
    ],
)
def test_a_refusal_is_said_and_exits_1(home: Path, event: Event, note: str, message: bytes) -> None:
    with serving(home, Human(decide=lambda _: KeyAnswer(event, note=note))) as desk:
        done = run(desk.path, "--no-privilege", "true")
    assert (done.returncode, done.stdout, done.stderr) == (1, b"", message)


def test_an_error_is_said_without_its_escapes(desk: Desk) -> None:
    done = run(desk.path, "--env", "A\x1b[2J=x", "true")
    assert done.returncode == 1
    assert done.stderr == b"Error: env key 'A\\x1b[2J' contains forbidden characters\n"


def test_json_prints_the_response_object(desk: Desk) -> None:
    done = run(desk.path, "--json", "--no-privilege", "echo", "hi")
    reply = json.loads(done.stdout)
    assert (reply["status"], reply["stdout"], done.returncode) == ("ok", "aGkK", 0)


def test_json_holds_when_nobody_answers(home: Path) -> None:
    done = run(home / "none.sock", "--json", "true")
    assert done.returncode == 1
    assert json.loads(done.stdout)["message"].startswith("could not connect to ")


def test_a_gate_that_is_not_running_is_named_with_the_way_on(home: Path) -> None:
    done = run(home / "none.sock", "true")
    assert done.returncode == 1
    assert done.stderr.startswith(
        b"error: could not connect to %s: stringd gate is not running. " % bytes(home / "none.sock")
    )


def test_print_summarises_and_exits_0(desk: Desk) -> None:
    done = run(desk.path, "--print", "--no-privilege", "sh", "-c", "printf 'a\\033b\\n'; exit 3")
    assert done.returncode == 0
    expected = b"status: ok\nstage 0: exit 3\n(exit code: 3)\nstdout:\n  a\\x1bb\n"
    assert done.stdout == expected


def test_ping_and_stop(desk: Desk) -> None:
    assert run(desk.path, "--ping").stdout == b"pong\n"
    assert run(desk.path, "--stop").stdout == b"stopping\n"


@pytest.mark.parametrize(
    ("option", "code", "told"),
    [
        ("--ping", 0, b"running (1.0.0, predates ping)\n"),
        ("--stop", 1, b"error: this gate (1.0.0) predates stop: end it in its terminal\n"),
    ],
)
@proves("GATE-CLI-01")
def test_a_gate_older_than_control_actions_is_named_as_one(
    home: Path, option: str, code: int, told: bytes
) -> None:
    def answer(connection: socket.socket) -> None:
        connection.recv(65536)
        connection.sendall(
            b'{"id":"","status":"error","message":"pipeline must not be empty","version":"1.0.0"}\n'
        )

    with peer(home / "s", answer):
        done = run(home / "s", option)
    assert (done.returncode, done.stdout + done.stderr) == (code, told)


def test_an_answer_that_does_not_come_is_an_error(home: Path) -> None:
    with serving(home, Human(), at_liberty=False) as desk:
        done = run(desk.path, "--no-privilege", "true", STRINGD_REQUEST_TIMEOUT="1")
    assert done.returncode == 1
    assert done.stderr == b"error: no response from daemon after 1s\n"


@pytest.mark.parametrize(
    ("words", "message"),
    [
        ([], "no command specified"),
        (["--"], "no command specified"),
        (["|"], "no command specified"),
        (["--socket"], "--socket requires a value"),
        (["--socket", "", "ls"], "--socket requires a value"),
        (["--env", "LANG", "ls"], "--env requires NAME=VALUE, not LANG"),
        (["-x", "ls"], "unknown option: -x"),
        (["--bogus", "ls"], "unknown option: --bogus"),
        (["--json=1", "ls"], "unknown option: --json=1"),
        (["--forward-agent", "ls"], "--forward-agent is only allowed with --no-privilege"),
    ],
)
def test_misuse_is_named(words: list[str], message: str) -> None:
    with pytest.raises(RequestUsageError) as wrong:
        parse(words)
    assert str(wrong.value).startswith(message)


def test_misuse_exits_1(home: Path) -> None:
    done = run(home / "none.sock", "--bogus", "ls")
    assert (done.returncode, done.stderr) == (1, b"error: unknown option: --bogus\n")


def test_empty_stages_are_dropped() -> None:
    assert split_stages(["|", "a", "b", "|", "|", "c", "|"]) == [["a", "b"], ["c"]]


def test_values_may_follow_an_equals_sign() -> None:
    options = parse(["--reason=a=b", "--session=s", "--env=TZ=UTC", "ls"])
    assert (options.reason, options.session, options.env) == ("a=b", "s", {"TZ": "UTC"})


@pytest.mark.parametrize("word", ["-V", "--version"])
def test_the_version_is_printed(home: Path, word: str) -> None:
    assert run(home, word).stdout.decode() == f"stringd {__version__}\n"


@pytest.mark.parametrize("word", ["-h", "--help"])
def test_help_helps(home: Path, word: str) -> None:
    done = run(home, word)
    assert done.returncode == 0
    assert b"--no-privilege" in done.stdout


def test_a_word_that_is_not_utf_8_is_named(home: Path) -> None:
    words: list[str | bytes] = [sys.executable, "-m", "stringd", "request", "--socket"]
    done = subprocess.run(
        [*words, str(home / "s"), "echo", b"\xff"], capture_output=True, check=False
    )
    assert done.returncode == 1
    assert b"error: argument 1 of the command is not valid UTF-8" in done.stderr
