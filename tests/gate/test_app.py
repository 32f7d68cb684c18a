"""The real program on a real terminal, as the person in front of it meets it."""

import base64
import os
import re
import signal
import socket
import stat
import subprocess
import sys
import termios
from pathlib import Path

import pytest

from stringd.gate.audit import FILE_NAME, verify
from tests.gate.support import (
    PATIENCE,
    QUESTION,
    RunningGate,
    Terminal,
    answer,
    connect,
    exchange,
    request,
    running_gate,
    send,
)
from tests.requirements import proves

KEYS = {signal.SIGINT: "\x03", signal.SIGQUIT: "\x1c"}


@proves("GATE-ASK-01")
def test_y_runs_the_command_and_its_result_is_echoed(gate: RunningGate) -> None:
    with gate.ask(request(["echo", "hello"], session="alpha", reason="to greet")) as connection:
        shown = gate.terminal.wait_for(QUESTION)
        assert "From:    alpha @ local" in shown
        assert "Reason:  to greet" in shown
        assert "Command: echo hello" in shown
        assert "Resolves: /usr/bin/echo" in shown
        gate.terminal.type("y")
        reply = answer(connection)
    assert base64.b64decode(reply["stdout"]) == b"hello\n"
    assert reply["decided_by"] == "terminal"
    shown = gate.terminal.wait_for("│ hello")
    assert "→ Approved" in shown
    assert "exit 0" in shown


@pytest.mark.parametrize("key", ["a", "q", "N", "V", "\r", "\x1b", "é", "\x13"])
@proves("GATE-ASK-01")
def test_any_other_key_denies_at_once(gate: RunningGate, key: str, home: Path) -> None:
    with gate.ask(request(["touch", str(home / "ran")])) as connection:
        gate.terminal.wait_for(QUESTION)
        gate.terminal.type(key)
        reply = answer(connection)
    assert reply["status"] == "denied"
    gate.terminal.wait_for("→ Denied")
    assert "Why?" not in gate.terminal.screen
    assert not (home / "ran").exists()


@pytest.mark.parametrize("key", [" ", "\x1b[A", "\x1b[B", "\x1b[C", "\x1b[5~", "\x1b[6~", "\x1bOP"])
def test_keys_that_move_deny_nothing(gate: RunningGate, key: str) -> None:
    with gate.ask(request(["true"])) as connection:
        gate.terminal.wait_for(QUESTION)
        gate.terminal.type(key)
        # The key after it is answered, so it was not.
        gate.terminal.type("?")
        gate.terminal.wait_for("Details 1 of 1")
        gate.terminal.wait_for(QUESTION)
        gate.terminal.type("y")
        assert answer(connection)["status"] == "ok"


@proves("GATE-ASK-07")
def test_n_takes_a_note_for_the_caller(gate: RunningGate) -> None:
    with gate.ask(request(["true"])) as connection:
        gate.terminal.wait_for(QUESTION)
        gate.terminal.type("n")
        gate.terminal.wait_for("Why?")
        gate.terminal.type("usx\x7fe apt-get\r")
        reply = answer(connection)
    assert (reply["status"], reply["decision_note"]) == ("denied", "use apt-get")
    gate.terminal.wait_for("→ Denied, with the note: use apt-get")


@proves("GATE-ASK-07")
@pytest.mark.parametrize("rest", ["", "\r", "\x1b"])
def test_n_alone_is_a_plain_no(gate: RunningGate, rest: str) -> None:
    with gate.ask(request(["true"])) as connection:
        gate.terminal.wait_for(QUESTION)
        gate.terminal.type("n")
        if rest:
            gate.terminal.wait_for("Why?")
            gate.terminal.type(rest)
        reply = answer(connection)
    assert reply["status"] == "denied"
    assert "decision_note" not in reply


def test_no_key_is_a_timeout(home: Path) -> None:
    with (
        running_gate(home, env={"STRINGD_GATE_PROMPT_TIMEOUT": "1"}) as gate,
        gate.ask(request(["true"])) as connection,
    ):
        gate.terminal.wait_for("[y/N] (1s timeout, default=N)")
        assert answer(connection)["status"] == "timeout"
        gate.terminal.wait_for("→ Timeout")


@proves("GATE-ASK-04")
def test_a_key_pressed_as_the_question_appears_decides_nothing(home: Path) -> None:
    with (
        running_gate(home, arming=10_000, env={"STRINGD_GATE_PROMPT_TIMEOUT": "1"}) as gate,
        gate.ask(request(["touch", str(home / "ran")])) as connection,
    ):
        gate.terminal.type("y")
        gate.terminal.wait_for(QUESTION)
        gate.terminal.type("y")
        assert answer(connection)["status"] == "timeout"
    assert not (home / "ran").exists()


@proves("GATE-ASK-04")
def test_a_pasted_burst_decides_nothing(gate: RunningGate) -> None:
    with gate.ask(request(["true"])) as connection:
        gate.terminal.wait_for(QUESTION)
        gate.terminal.type("yyyy")
        gate.terminal.wait_for("Several keys at once are ignored.")
        gate.terminal.wait_for(QUESTION)
        gate.terminal.type("x")
        assert answer(connection)["status"] == "denied"


@proves("GATE-ASK-05")
def test_a_long_command_can_be_approved_only_after_its_end_was_shown(gate: RunningGate) -> None:
    message = request(["echo", *map(str, range(1500)), "the-end"])
    with gate.ask(message) as connection:
        shown = gate.terminal.wait_for(QUESTION)
        assert "the-end" not in shown
        assert "characters, sha256 " in shown
        gate.terminal.type("y")
        gate.terminal.wait_for("Not yet")
        gate.terminal.wait_for(QUESTION)
        gate.terminal.type("v")
        while "the end of the command" not in gate.terminal.wait_for(QUESTION):
            gate.terminal.type("v")
        gate.terminal.type("y")
        assert base64.b64decode(answer(connection)["stdout"]).endswith(b" the-end\n")


def test_a_note_longer_than_the_line_shows_its_end(home: Path) -> None:
    with (
        running_gate(home, size=(24, 60)) as gate,
        gate.ask(request(["true"])) as connection,
    ):
        gate.terminal.wait_for(QUESTION)
        gate.terminal.type("n")
        gate.terminal.wait_for("Why?")
        gate.terminal.type("x" * 80 + "end")
        gate.terminal.wait_for("xend")
        row = next(row for row in gate.terminal.seen().lines if "Why?" in row)
        assert row.endswith("xend")
        assert len(row) < 60
        gate.terminal.type("\r")
        assert answer(connection)["decision_note"] == "x" * 80 + "end"


def test_on_a_dumb_terminal_no_escape_sequence_is_written_at_all(home: Path) -> None:
    with running_gate(home, env={"TERM": "dumb"}) as gate:
        show_everything(gate)
        assert "\x1b" not in gate.terminal.screen


def test_without_colour_none_is_used(gate: RunningGate) -> None:
    show_everything(gate)
    assert set(re.findall(r"\x1b\[\d+m", gate.terminal.screen)) <= {"\x1b[0m"}


def show_everything(gate: RunningGate) -> None:
    with gate.ask(request(["echo", *map(str, range(1500))], id="first")) as connection:
        for key in ("v", "?", "y", "zz"):
            gate.terminal.wait_for(QUESTION)
            gate.terminal.type(key)
        gate.terminal.wait_for("Several keys")
        gate.terminal.wait_for(QUESTION)
        with gate.ask(request(["true"], id="second")):
            gate.terminal.type("x")
            answer(connection)
            gate.terminal.wait_for("ID:      second")
    gate.terminal.wait_for("caller went away")


def test_every_word_is_listed_on_demand(gate: RunningGate) -> None:
    with gate.ask(request(["echo", "|", "шrm"])) as connection:
        gate.terminal.wait_for("[non-ASCII]")
        gate.terminal.wait_for(QUESTION)
        gate.terminal.type("?")
        shown = gate.terminal.wait_for(QUESTION)
        assert "[0][1] '|'" in shown
        assert "CYRILLIC SMALL LETTER SHA" in shown
        gate.terminal.type("y")
        assert answer(connection)["status"] == "ok"


@proves("GATE-ASK-02")
def test_the_next_question_waits_and_is_counted(gate: RunningGate) -> None:
    with gate.ask(request(["true"], id="first")) as first:
        gate.terminal.wait_for("ID:      first")
        gate.terminal.wait_for(QUESTION)
        with gate.ask(request(["true"], id="second")) as second:
            gate.terminal.wait_for("1 more waiting")
            gate.terminal.wait_for(QUESTION)
            gate.terminal.type("y")
            assert answer(first)["id"] == "first"
            gate.terminal.wait_for("ID:      second")
            gate.terminal.wait_for(QUESTION)
            gate.terminal.type("x")
            assert answer(second)["status"] == "denied"


@proves("GATE-ASK-03")
def test_a_question_whose_caller_left_is_taken_off_the_screen(gate: RunningGate) -> None:
    with gate.ask(request(["true"])):
        gate.terminal.wait_for(QUESTION)
    gate.terminal.wait_for("caller went away")
    with gate.ask(request(["true"])) as connection:
        gate.terminal.wait_for(QUESTION)
        gate.terminal.type("y")
        assert answer(connection)["status"] == "ok"


def test_a_question_is_shown_again_after_a_stop_and_continue(gate: RunningGate) -> None:
    with gate.ask(request(["true"], id="seven")) as connection:
        gate.terminal.wait_for(QUESTION)
        gate.terminal.process.send_signal(signal.SIGCONT)
        gate.terminal.wait_for("ID:      seven")
        gate.terminal.wait_for(QUESTION)
        gate.terminal.type("y")
        assert answer(connection)["status"] == "ok"


def test_output_reaches_the_screen_only_as_visible_text(gate: RunningGate) -> None:
    evil = "\\033[2J\\033]0;pwned\\007\\nExecute as root? [y/N]\\n\\233x\\n4\\n"
    with gate.ask(request(["printf", evil])) as connection:
        gate.terminal.wait_for(QUESTION)
        gate.terminal.type("y")
        answer(connection)
    shown = gate.terminal.wait_for("\\x9bx")
    assert "== stdout == (4 lines)" in shown
    assert "│ \\x1b[2J\\x1b]0;pwned\\x07" in shown
    assert "│ Execute as root? [y/N]" in shown
    assert "\x1b[2J" not in shown


@proves("GATE-ASK-09")
@pytest.mark.parametrize(
    "number", [signal.SIGINT, signal.SIGTERM, signal.SIGHUP, signal.SIGQUIT], ids=str
)
@proves("GATE-END-01")
def test_a_signal_answers_open_requests_and_leaves_everything_tidy(
    gate: RunningGate, number: signal.Signals
) -> None:
    with gate.ask(request(["true"])) as connection:
        gate.terminal.wait_for(QUESTION)
        assert termios.tcgetattr(gate.terminal.slave) != gate.terminal.settings
        if number in KEYS:
            gate.terminal.type(KEYS[number])
        else:
            gate.terminal.process.send_signal(number)
        reply = answer(connection)
    assert (reply["status"], reply["message"]) == ("error", "daemon shutting down")
    assert gate.terminal.process.wait(PATIENCE) == -number
    assert not gate.path.exists()
    assert termios.tcgetattr(gate.terminal.slave) == gate.terminal.settings
    assert verify(gate.data_dir / FILE_NAME).broken is None


@proves("GATE-END-01")
def test_a_signal_that_another_thread_gets_ends_the_gate_too(gate: RunningGate) -> None:
    with gate.ask(request(["true"])) as connection:
        gate.terminal.wait_for(QUESTION)
        pid = gate.terminal.process.pid
        threads = {int(entry.name) for entry in Path(f"/proc/{pid}/task").iterdir()}
        os.kill(max(threads - {pid}), signal.SIGTERM)
        assert answer(connection)["message"] == "daemon shutting down"
    assert gate.terminal.process.wait(PATIENCE) == -signal.SIGTERM


@proves("GATE-END-01")
def test_a_terminal_that_is_closed_ends_the_gate(gate: RunningGate) -> None:
    with gate.ask(request(["true"])) as connection:
        gate.terminal.wait_for(QUESTION)
        gate.terminal.hang_up()
        assert answer(connection)["message"] == "daemon shutting down"
    assert gate.terminal.process.wait(PATIENCE) == -signal.SIGHUP
    assert not gate.path.exists()


@proves("GATE-END-01")
def test_a_signal_ends_a_running_command(gate: RunningGate, home: Path) -> None:
    ready = home / "ready"
    code = f"import pathlib, time; pathlib.Path({str(ready)!r}).touch(); time.sleep(600)"
    with gate.ask(request([sys.executable, "-c", code])) as connection:
        gate.terminal.wait_for(QUESTION)
        gate.terminal.type("y")
        gate.terminal.wait_for("→ Approved, running")
        gate.terminal.process.terminate()
        assert answer(connection)["message"] == "daemon shutting down"


@proves("GATE-CTL-02")
def test_stop_ends_the_gate_with_zero(gate: RunningGate) -> None:
    assert exchange(gate.path, request(action="stop", pipeline=[]))["status"] == "ok"
    gate.terminal.wait_for("a client asked for it")
    assert gate.terminal.process.wait(PATIENCE) == 0
    assert not gate.path.exists()
    assert gate.audit()[-1]["how"] == "stop"


def test_stop_may_be_allowed_while_busy(home: Path) -> None:
    with (
        running_gate(home, "--allow-stop-busy") as gate,
        gate.ask(request(["true"])) as connection,
    ):
        gate.terminal.wait_for(QUESTION)
        assert exchange(gate.path, request(action="stop", pipeline=[]))["status"] == "ok"
        assert answer(connection)["message"] == "daemon shutting down"
        assert gate.terminal.process.wait(PATIENCE) == 0


@proves("GATE-SOCK-01")
def test_a_second_gate_on_one_socket_refuses_to_start(gate: RunningGate) -> None:
    assert stat.S_IMODE(gate.path.stat().st_mode) == 0o600
    done = subprocess.run(
        [sys.executable, "-m", "stringd", "gate", "--socket", str(gate.path)],
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        timeout=PATIENCE,
    )
    assert done.returncode == 1
    assert f"stringd gate is already running on {gate.path}" in done.stderr
    assert exchange(gate.path, request(action="ping", pipeline=[]))["message"] == "pong"


@proves("GATE-SOCK-01")
def test_a_gate_killed_outright_leaves_a_socket_the_next_one_takes(home: Path) -> None:
    with running_gate(home) as gate:
        gate.terminal.process.kill()
        gate.terminal.process.wait()
        assert gate.path.exists()
    with running_gate(home) as gate:
        assert exchange(gate.path, request(action="ping", pipeline=[]))["message"] == "pong"


def test_a_gate_whose_input_is_elsewhere_asks_on_its_own_terminal(home: Path) -> None:
    elsewhere = ["sh", "-c", f'exec {sys.executable} -m stringd "$@" < /dev/null', "sh"]
    with (
        running_gate(home, program=elsewhere) as gate,
        gate.ask(request(["true"])) as connection,
    ):
        gate.terminal.wait_for(QUESTION)
        gate.terminal.type("y")
        assert answer(connection)["status"] == "ok"


def test_a_gate_in_the_background_leaves_the_terminal_alone(home: Path) -> None:
    behind = ["bash", "-c", f'set -m; {sys.executable} -m stringd "$@" & wait', "bash"]
    with running_gate(home, program=behind) as gate:
        reply = exchange(gate.path, request(["true"]))
        assert reply["message"] == "prompt error: Input/output error (os error 5)"
        assert termios.tcgetattr(gate.terminal.slave) == gate.terminal.settings
        assert exchange(gate.path, request(action="stop", pipeline=[]))["status"] == "ok"
        assert gate.terminal.process.wait(PATIENCE) == 0


def test_a_terminal_that_is_not_the_sessions_own_will_do(home: Path) -> None:
    strange = ["setsid", "--wait", sys.executable, "-m", "stringd"]
    with running_gate(home, program=strange) as gate, gate.ask(request(["true"])) as connection:
        gate.terminal.wait_for(QUESTION)
        gate.terminal.type("y")
        assert answer(connection)["status"] == "ok"
        assert exchange(gate.path, request(action="stop", pipeline=[]))["status"] == "ok"


def test_without_a_terminal_a_question_is_an_error_at_once(home: Path) -> None:
    path = home / "gate.sock"
    process = subprocess.Popen(
        [sys.executable, "-m", "stringd", "gate", "--socket", str(path)],
        stdin=subprocess.DEVNULL,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.PIPE,
        start_new_session=True,
        env={**os.environ, "STRINGD_DATA_DIR": str(home)},
        text=True,
    )
    try:
        assert process.stderr is not None
        assert "no terminal here" in process.stderr.readline()
        reply = exchange(path, request(["true"]))
        assert reply["message"] == "prompt error: No such device or address (os error 6)"
    finally:
        process.terminate()
        process.communicate()


def test_the_hook_is_told_who_asks_and_never_what(home: Path) -> None:
    told = home / "told"
    os.mkfifo(told)
    hook = home / "hook"
    hook.write_text(f'#!/bin/sh\nprintf "%s\\n" "$@" > {told}\n')
    hook.chmod(0o755)
    message = request(["secret-command"], session="<b>alpha", reason="secret")
    with (
        running_gate(home, "--notify", f"{hook} --urgent") as gate,
        gate.ask(message) as waiting,
    ):
        lines = told.read_text().splitlines()
        gate.terminal.wait_for(QUESTION)
        gate.terminal.type("x")
        answer(waiting)
    sentence = "A question from ?b?alpha is waiting for you."
    assert lines == ["--urgent", "stringd gate", sentence]


def test_bold_and_the_bell_are_used_unless_switched_off(home: Path) -> None:
    argv = [sys.executable, "-m", "stringd", "gate", "--socket", str(home / "gate.sock")]
    env = {**os.environ, "TERM": "xterm", "STRINGD_DATA_DIR": str(home)}
    env.pop("NO_COLOR", None)
    terminal = Terminal(argv, env, (24, 80))
    try:
        terminal.wait_for("Questions appear here")
        with connect(home / "gate.sock") as connection:
            send(connection, request(["true"], reason="why not"))
            shown = terminal.wait_for(QUESTION)
            connection.shutdown(socket.SHUT_RDWR)
        assert "\a" in shown
        assert "\x1b[1m━━━ Command request ━━━" in shown
        assert "\x1b[1mReason:  why not\x1b[0m" in shown
        assert "\x1b[1mCommand: true\x1b[0m" in shown
        assert set(re.findall(r"\x1b\[\d*m", shown)) == {"\x1b[1m", "\x1b[2m", "\x1b[0m"}
    finally:
        terminal.close()


def test_a_command_that_overruns_is_reported_to_both(home: Path) -> None:
    with (
        running_gate(home, env={"STRINGD_GATE_EXEC_TIMEOUT": "1"}) as gate,
        gate.ask(request(["sleep", "600"])) as connection,
    ):
        gate.terminal.wait_for(QUESTION)
        gate.terminal.type("y")
        assert answer(connection)["message"] == "command timed out after 1s"
        gate.terminal.wait_for("error: command timed out after 1s")


def test_requests_are_logged_when_asked_for(home: Path) -> None:
    with running_gate(home, "-v", env={"DISPLAY": ":0"}) as gate:
        message = request(["echo", "a b"], id="seven", version="9")
        with gate.ask(message) as connection:
            gate.terminal.wait_for("[seven] [unprivileged] [client 9] echo 'a b'")
            gate.terminal.wait_for(QUESTION)
            gate.terminal.type("x")
            answer(connection)
    assert f"stringd gate listening on {gate.path}" in gate.terminal.screen
    assert "mode: local" in gate.terminal.screen


def test_the_log_does_not_write_into_a_question(home: Path) -> None:
    with running_gate(home, "-v") as gate, gate.ask(request(["true"], id="first")) as first:
        gate.terminal.wait_for(QUESTION)
        with gate.ask(request(["true"], id="second")) as second:
            shown = gate.terminal.wait_for("1 more waiting")
            gate.terminal.wait_for(QUESTION)
            gate.terminal.type("x")
            answer(first)
            shown += gate.terminal.wait_for("→ Denied")
            assert "[second]" not in shown
            gate.terminal.wait_for("[second] [unprivileged]")
            gate.terminal.wait_for(QUESTION)
            gate.terminal.type("x")
            answer(second)
