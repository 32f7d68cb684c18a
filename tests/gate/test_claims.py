"""The gate's security claims, one by one, each with what would happen if its guard were missing."""

import base64
import json
import os
import re
import secrets
import socket
import sys
import termios
import threading
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import stringd.gate
from stringd.gate import decide, display, replay
from stringd.gate.characters import is_clean, is_visible
from stringd.gate.decide import Answer, Event, Key, classify
from stringd.gate.display import paint, pipeline_text
from stringd.gate.errors import RefusalError
from stringd.gate.program import Program
from stringd.gate.question import Peer, Question, Size, compose, word_lines
from stringd.gate.terminal import Terminal
from stringd.gate.validate import MAX_AGE_SECONDS
from tests.gate.support import (
    QUESTION,
    Desk,
    Human,
    RunningGate,
    answer,
    connect,
    exchange,
    request,
    running_gate,
    send,
    serving,
)
from tests.gate.test_display import pipelines, words
from tests.gate.test_turns import until
from tests.gate.test_validate import valid, validated
from tests.requirements import proves

DUMP = "import sys; sys.stdout.write(chr(0).join(sys.argv[1:]))"


@proves("GATE-ASK-06")
def test_c1_what_runs_is_byte_identical_to_what_was_shown(desk: Desk) -> None:
    tricky = [
        "|",
        "a b",
        "",
        "$(id)",
        "`id`",
        "\\",
        "'",
        '"',
        "é",
        "\t",
        "-x",
        "*",
        "~",
        "a\u00a0b",
    ]
    reply = exchange(desk.path, request([sys.executable, "-c", DUMP, *tricky]))
    assert base64.b64decode(reply["stdout"]).decode().split("\0") == tricky
    shown = pipeline_text(desk.human.asked[0].request.pipeline)
    ran = desk.human.asked[0].request.pipeline[0]
    assert ran == (sys.executable, "-c", DUMP, *tricky)
    assert shown.endswith("$'\\x09' -x '*' '~' $'a\\xa0b'")


def collisions(show: object) -> set[str]:
    """Pictures shared by different pipelines, among a few that invite it."""
    assert callable(show)
    tempting = [[["a"], ["b"]], [["a", "|", "b"]], [["a | b"]], [["a", "b"]], [["a b"]], [["a\tb"]]]
    tempting += [[["a\\x09b"]], [["$'a\\x09b'"]], [["'a b'"]], [["a", ""]], [["a"]]]
    shown: dict[str, list[list[str]]] = {}
    return {
        picture
        for pipeline in tempting
        if shown.setdefault(picture := show(pipeline), pipeline) != pipeline
    }


def test_c1_mutation_without_quoting_pictures_collide(monkeypatch: pytest.MonkeyPatch) -> None:
    assert collisions(pipeline_text) == set()
    monkeypatch.setattr(display, "quote", display.render)
    assert collisions(pipeline_text)


def fake_sudo(home: Path) -> tuple[dict[str, str], Path]:
    """A sudo that leaves a mark whenever it is run at all."""
    mark, folder = home / "sudo-ran", home / "bin"
    folder.mkdir()
    (folder / "sudo").write_text(f"#!/bin/sh\ntouch {mark}\n")
    (folder / "sudo").chmod(0o755)
    return {"PATH": f"{folder}:{os.environ['PATH']}", "STRINGD_GATE_PROMPT_TIMEOUT": "1"}, mark


@proves("GATE-ASK-01")
def test_c2_nothing_privileged_runs_without_the_key(home: Path) -> None:
    env, mark = fake_sudo(home)
    with running_gate(home, env=env) as gate:
        for number, keys in enumerate(("x", "a", "\r", "\x1b", "yy", "", "\x04", "n\r")):
            with gate.ask(request(["id"], privileged=True, id=f"no {number}")) as connection:
                gate.terminal.wait_for(f"ID:      no {number}")
                gate.terminal.wait_for(QUESTION)
                gate.terminal.type(keys)
                assert answer(connection)["status"] in ("denied", "timeout"), keys
        assert not mark.exists()
        with gate.ask(request(["id"], privileged=True, id="yes")) as connection:
            gate.terminal.wait_for("ID:      yes")
            gate.terminal.wait_for(QUESTION)
            gate.terminal.type("y")
            assert answer(connection)["status"] == "ok"
    assert mark.exists()


def test_c2_mutation_a_second_key_for_yes_is_noticed(monkeypatch: pytest.MonkeyPatch) -> None:
    def yes_keys() -> set[int]:
        return {byte for byte in range(256) if classify(byte) is Key.YES}

    assert yes_keys() == {ord("y"), ord("Y")}
    monkeypatch.setitem(decide._KEYS, ord("a"), Key.YES)
    assert yes_keys() != {ord("y"), ord("Y")}


@proves("GATE-REPLAY-01")
def test_c3_an_approval_is_used_once_however_many_ask_with_its_id(home: Path) -> None:
    with serving(home, Human()) as desk:
        line = json.dumps(request(["sh", "-c", f"echo x >> {home / 'runs'}"])).encode() + b"\n"
        replies: list[dict[str, object]] = []
        barrier = threading.Barrier(8)

        def race() -> None:
            barrier.wait(10)
            replies.append(exchange(desk.path, line))

        threads = [threading.Thread(target=race) for _ in range(8)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join(20)
    assert sorted(str(reply["status"]) for reply in replies) == ["error"] * 7 + ["ok"]
    assert (home / "runs").read_text() == "x\n"
    assert len(desk.human.asked) == 1


def replays(memory: replay.ReplayMemory, max_future: int) -> bool:
    """Whether bytes stamped as far ahead as allowed can be used twice while fresh."""
    memory.admit("same", 0.0)
    try:
        memory.admit("same", float(MAX_AGE_SECONDS + max_future))
    except RefusalError:
        return False
    return True


def test_c3_mutation_a_memory_as_short_as_the_age_limit_lets_a_replay_through(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    assert not replays(replay.ReplayMemory(5), 5)
    short = replay.ReplayMemory(5)
    monkeypatch.setattr(short, "retention", MAX_AGE_SECONDS)
    assert replays(short, 5)


TEMPTATIONS = {
    "unattended_eligible": True,
    "granted": True,
    "policy": {"unattended_eligible": True, "confirm_unprivileged": False},
    "always": True,
    "approved": True,
    "decision": "approved",
    "decided_by": "terminal",
    "auto_approve": 1,
    "arming": 0,
}


def files(folder: Path) -> set[str]:
    return {str(path.relative_to(folder)) for path in folder.rglob("*")}


def test_c4_no_field_of_a_request_switches_asking_off(gate: RunningGate, home: Path) -> None:
    before = files(home)
    for name, value in TEMPTATIONS.items():
        with gate.ask(request(["touch", str(home / "ran")], **{name: value})) as connection:
            gate.terminal.wait_for(QUESTION)
            gate.terminal.type("x")
            assert answer(connection)["status"] == "denied"
    assert files(home) == before


@pytest.mark.parametrize("name", ["STRINGD_GATE_APPROVE", "STRINGD_GATE_AUTO", "CI", "YES"])
def test_c4_no_environment_variable_does_either(home: Path, name: str) -> None:
    with running_gate(home, env={name: "1"}) as gate, gate.ask(request(["true"])) as connection:
        gate.terminal.wait_for(QUESTION)
        gate.terminal.type("x")
        assert answer(connection)["status"] == "denied"


def test_c5_no_credential_is_read_or_stored(gate: RunningGate, home: Path) -> None:
    with gate.ask(request(["true"])) as connection:
        gate.terminal.wait_for(QUESTION)
        gate.terminal.type("y")
        assert answer(connection)["status"] == "ok"
    assert files(home) == {"gate.sock", "data", "data/gate-audit.jsonl"}
    source = Path(stringd.gate.__file__).parent
    text = "".join(path.read_text() for path in source.glob("*.py"))
    assert not re.search(r"getpass|askpass|sudo.*-S\b|keyring", text)


@settings(max_examples=150)
@given(pipelines, words, words, words, words, st.text(max_size=10), st.text(max_size=10))
def test_c6_no_displayed_field_can_lie(
    pipeline: list[list[str]],
    reason: str,
    session: str,
    host: str,
    version: str,
    path: str,
    exe: str,
) -> None:
    """Whatever was accepted, and whatever the disk and the kernel say, is visible text only."""
    stages = tuple(tuple(stage) for stage in pipeline)
    asked = Question(
        validated(
            valid(pipeline=stages, reason=reason, session=session, host=host, version=version)
        ),
        tuple(Program(stage[0], path or None, path) for stage in stages),
        Peer(1, 1, exe),
    )
    screen = compose(asked, Size(60, 24))
    lines = [*screen.opening, *(spans for page in screen.pages for spans in page)]
    shown = paint([*lines, *word_lines(asked, 60)], colour=False)
    assert all(is_visible(character) for character in shown.replace("\n", ""))


@pytest.mark.parametrize("field", ["reason", "session", "host", "version", "id", "time"])
def test_c6_an_escape_in_any_displayed_field_is_refused(desk: Desk, field: str) -> None:
    for mark in ("\x1b[8m", "\x9b8m", "\u202e", "\x7f", "\u2028", "\U000e0041"):
        assert not is_clean(mark)
        value = request()["time"] + mark if field == "time" else mark
        assert exchange(desk.path, request(["true"], **{field: value}))["status"] == "error"
    assert desk.human.asked == []


def test_c6_mutation_without_rendering_an_escape_gets_through(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    spans = [display.line("\x1b[2J")]
    assert "\x1b" not in paint(spans, colour=False)
    monkeypatch.setattr(display, "render", lambda text: text)
    assert "\x1b" in paint(spans, colour=False)


def test_c6_nothing_but_painted_text_is_written_to_the_terminal() -> None:
    """The type checker holds this; here we look that no other write has crept in."""
    source = Path(stringd.gate.__file__).parent
    writers = {
        path.name
        for path in source.glob("*.py")
        if re.search(r"\bprint\(|sys\.stdout|os\.write\(self\._screen", path.read_text())
    }
    assert writers == {"terminal.py"}


def test_c7_a_raw_socket_caller_is_gated_like_any_other(gate: RunningGate, home: Path) -> None:
    raw = json.dumps({"pipeline": [["touch", str(home / "ran")]], "time": request()["time"]})
    with connect(gate.path) as connection:
        connection.sendall(raw.encode() + b"\n")
        # It left out `privileged`, so it meets the stricter question.
        gate.terminal.wait_for("Execute as root?")
        gate.terminal.wait_for(QUESTION)
        gate.terminal.type("x")
        assert answer(connection)["status"] == "denied"
    assert not (home / "ran").exists()


def test_c8_unprivileged_commands_are_asked_about_every_time_and_after_a_restart(
    home: Path,
) -> None:
    for _ in range(2):
        with running_gate(home) as gate:
            for _ in range(2):
                with gate.ask(request(["true"])) as connection:
                    gate.terminal.wait_for(QUESTION)
                    gate.terminal.type("y")
                    assert answer(connection)["status"] == "ok"


@pytest.mark.parametrize(
    "host", ["localhost", "localhost.", "127.0.0.1", "127.1.2.3", "::1", socket.gethostname(), ""]
)
def test_c9_c10_no_name_for_this_machine_changes_how_it_is_asked(desk: Desk, host: str) -> None:
    exchange(desk.path, request(["true"], host=host))
    assert len(desk.human.asked) == 1


@proves("GATE-FRAME-04")
def test_r1_64_hostile_connections_do_not_keep_an_honest_one_from_being_served(desk: Desk) -> None:
    hostile = [connect(desk.path) for _ in range(64)]
    enough = threading.Event()

    def trickle() -> None:
        while not enough.wait(0.02):
            for connection in hostile[22:43]:
                connection.send(b" ")

    trickling = threading.Thread(target=trickle)
    trickling.start()
    try:
        for connection in hostile[43:]:
            connection.setblocking(False)
            connection.send(b"x" * 100_000)
        assert exchange(desk.path, request(["echo", "honest"]))["status"] == "ok"
        # They were all there while it was served: none has been answered or closed.
        for connection in hostile:
            connection.setblocking(False)
            with pytest.raises(BlockingIOError):
                connection.recv(1)
    finally:
        enough.set()
        trickling.join(10)
        for connection in hostile:
            connection.close()


def test_r1_large_lines_of_brackets_do_not_either(desk: Desk) -> None:
    heavy = b"[" + b"[]," * 340_000 + b"[]]"
    hostile = [connect(desk.path) for _ in range(4)]
    for connection in hostile:
        connection.sendall(heavy + b"\n")
    assert exchange(desk.path, request(["true"]))["status"] == "ok"
    for connection in hostile:
        assert answer(connection)["message"].startswith("invalid JSON: ")
        connection.close()


@proves("GATE-EXE-03")
@pytest.mark.parametrize("stream", ["stdout", "stderr"])
def test_r2_memory_is_bounded_whatever_a_command_prints(gate: RunningGate, stream: str) -> None:
    code = f"import sys; [sys.{stream}.buffer.write(bytes(1000000)) for _ in range(200)]"
    with gate.ask(request([sys.executable, "-c", code])) as connection:
        gate.terminal.wait_for(QUESTION)
        gate.terminal.type("y")
        reply = answer(connection)
    flags = {
        "stdout": reply.get("stdout_truncated"),
        "stderr": reply["stages"][0].get("stderr_truncated"),
    }
    assert flags[stream] is True
    status = Path(f"/proc/{gate.terminal.process.pid}/status").read_text()
    peak = re.search(r"VmHWM:\s+(\d+) kB", status)
    assert peak is not None
    assert int(peak[1]) < 120_000


def crash_while_raw(terminal: Terminal, before: list[Any]) -> None:
    with terminal.raw():
        assert termios.tcgetattr(terminal.keys) != before
        raise ZeroDivisionError


@proves("GATE-ASK-09")
def test_r6_the_terminal_is_restored_after_a_crash() -> None:
    master, slave = os.openpty()
    try:
        before = termios.tcgetattr(slave)
        terminal = Terminal(slave, slave, {})
        with pytest.raises(ZeroDivisionError):
            crash_while_raw(terminal, before)
        assert termios.tcgetattr(slave) == before
    finally:
        os.close(master)
        os.close(slave)


@proves("GATE-ASK-04")
def test_r6_what_was_typed_before_the_question_is_discarded(gate: RunningGate, home: Path) -> None:
    gate.terminal.type("y")
    with gate.ask(request(["touch", str(home / "ran")])) as connection:
        gate.terminal.wait_for(QUESTION)
        gate.terminal.type("x")
        assert answer(connection)["status"] == "denied"
    assert not (home / "ran").exists()


def test_a_crowd_of_one_process_leaves_room_for_others(home: Path) -> None:
    human = Human(decide=lambda _: Answer(Event.NO))
    with serving(home, human) as desk:
        crowd = [connect(desk.path) for _ in range(96)]
        until(lambda: desk.server._handshakes.total() == 96)
        with connect(desk.path) as late:
            assert answer(late)["message"] == "server busy: too many in-flight requests"
        crowd.pop().close()
        until(lambda: desk.server._handshakes.total() == 95)
        assert exchange(desk.path, request(["true"]))["status"] == "denied"
        for connection in crowd:
            connection.close()


def test_secrets_of_the_gate_do_not_reach_a_command(home: Path) -> None:
    secret = secrets.token_hex(8)
    with running_gate(home, env={"API_KEY": secret}) as gate, connect(gate.path) as connection:
        send(connection, request(["env"]))
        gate.terminal.wait_for(QUESTION)
        gate.terminal.type("y")
        reply = answer(connection)
    assert secret not in base64.b64decode(reply["stdout"]).decode()
