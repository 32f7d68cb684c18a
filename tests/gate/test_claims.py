"""The gate's security claims C1 to C10, one by one; `test_mutations` shows that each can fail."""

import base64
import json
import os
import re
import secrets
import socket
import sys
import threading
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import stringd.gate
from stringd.gate import server as server_module
from stringd.gate.characters import is_clean, is_visible
from stringd.gate.decide import Approval, Event, IllegalStepError, KeyAnswer
from stringd.gate.display import line, paint, pipeline_text
from stringd.gate.errors import RefusalError
from stringd.gate.keys import Key, classify
from stringd.gate.program import ShownProgram
from stringd.gate.question import AskingPeer, Question, Size, compose, word_lines
from stringd.gate.replay import ReplayMemory
from stringd.gate.validate import MAX_AGE_SECONDS
from tests.gate.support import (
    PATIENCE,
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


@proves("GATE-ASK-06")
def test_c1_different_pipelines_never_look_the_same() -> None:
    tempting = [[["a"], ["b"]], [["a", "|", "b"]], [["a | b"]], [["a", "b"]], [["a b"]], [["a\tb"]]]
    tempting += [[["a\\x09b"]], [["$'a\\x09b'"]], [["'a b'"]], [["a", ""]], [["a"]], [["A=b", "c"]]]
    tempting += [[["a;", "b"]], [["a", ";", "b"]], [["$a"]], [["'$a'"]], [["a'b"]], [["a\\'b"]]]
    pictures = {pipeline_text(pipeline) for pipeline in tempting}
    assert len(pictures) == len(tempting)
    for picture in pictures:
        bare = re.sub(r"\$?'(?:[^'\\]|\\.)*'|\\'", "", picture)
        assert not re.search(r"[;$&*`~<>()#\\]", bare), picture


@proves("GATE-EXE-06")
def test_c1_a_file_swapped_after_approval_is_not_run(home: Path) -> None:
    tool, ran = home / "tool", home / "ran"
    tool.write_text("#!/bin/sh\n")
    tool.chmod(0o755)

    def swap(_: Question) -> KeyAnswer:
        tool.write_text(f"#!/bin/sh\ntouch {ran}\n")
        return KeyAnswer(Event.YES)

    with serving(home, Human(decide=swap)) as desk:
        reply = exchange(desk.path, request([str(tool)]))
    assert reply["message"] == "command changed after approval"
    assert not ran.exists()


@dataclass(frozen=True)
class NotingSudo(ShownProgram):
    """A sudo that only takes notes."""

    def calls(self) -> list[list[str]]:
        """What it was called with."""
        notes = Path(f"{self.path}-calls").read_text()
        return [json.loads(each) for each in notes.splitlines()]


@pytest.fixture
def sudo(home: Path) -> NotingSudo:
    path, notes = home / "sudo", home / "sudo-calls"
    code = f"import json, sys; print(json.dumps(sys.argv[1:]), file=open({str(notes)!r}, 'a'))"
    path.write_text(f"#!{sys.executable}\n{code}\n")
    path.chmod(0o755)
    notes.touch()
    return NotingSudo("sudo", str(path))


@proves("GATE-VAL-05")
def test_c1_sudo_reads_no_word_of_a_command_as_its_own(sudo: NotingSudo, home: Path) -> None:
    with serving(home, Human(), sudo=sudo) as desk:
        for name in ("-u", "-", "A=b", "LD_PRELOAD=/x"):
            reply = exchange(desk.path, request(["true"], [name, "id"], privileged=True))
            assert reply["message"] == "pipeline[1][0] is not a command name"
        assert desk.human.asked == []
        asked = request(["id", "-u", "A=b"], privileged=True, env={"TZ": "UTC"})
        assert exchange(desk.path, asked)["status"] == "ok"
    assert sudo.calls() == [["TZ=UTC", "--", "/usr/bin/id", "-u", "A=b"]]


def with_marking_sudo(home: Path) -> tuple[list[str], Path]:
    """A gate whose sudo leaves a mark whenever it is run at all, and that mark."""
    mark, sudo = home / "sudo-ran", home / "sudo"
    sudo.write_text(f"#!/bin/sh\ntouch {mark}\n")
    sudo.chmod(0o755)
    return [sys.executable, "-m", "tests.gate.with_sudo", str(sudo)], mark


@proves("GATE-ASK-01")
def test_c2_nothing_privileged_runs_without_the_key(home: Path) -> None:
    program, mark = with_marking_sudo(home)
    patience = {"STRINGD_GATE_PROMPT_TIMEOUT": "1"}
    with running_gate(home, program=program, env=patience) as gate:
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


def test_c2_of_all_keys_and_none_only_y_is_a_yes() -> None:
    yes = {byte for byte in range(256) if classify(bytes([byte])) is Key.YES}
    assert yes == {ord("y"), ord("Y")}
    assert classify(None) is Key.SILENCE


@pytest.mark.parametrize(
    ("event", "status"), [(Event.NO, "denied"), (Event.SILENCE, "timeout")], ids=["no", "silence"]
)
def test_c2_neither_a_no_nor_silence_runs_anything(
    sudo: NotingSudo, home: Path, event: Event, status: str
) -> None:
    with serving(home, Human(decide=lambda _: KeyAnswer(event)), sudo=sudo) as desk:
        for privileged in (True, False):
            asked = request(["touch", str(home / "ran")], privileged=privileged)
            assert exchange(desk.path, asked)["status"] == status
    assert sudo.calls() == []
    assert not (home / "ran").exists()


@proves("GATE-REPLAY-01")
def test_c3_an_approval_is_used_once_however_many_ask_with_its_id(home: Path) -> None:
    with serving(home, Human()) as desk:
        asked = json.dumps(request(["sh", "-c", f"echo x >> {home / 'runs'}"])).encode() + b"\n"
        replies: list[dict[str, object]] = []
        barrier = threading.Barrier(8)

        def race() -> None:
            barrier.wait(PATIENCE)
            replies.append(exchange(desk.path, asked))

        threads = [threading.Thread(target=race) for _ in range(8)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join(PATIENCE)
    assert sorted(str(reply["status"]) for reply in replies) == ["error"] * 7 + ["ok"]
    assert (home / "runs").read_text() == "x\n"
    assert len(desk.human.asked) == 1


class Hesitant(dict[bytes, float]):
    """A memory whose first answer waits until a second one asks, or has to wait for its turn."""

    def __init__(self) -> None:
        self.looked = False
        self.second_came = threading.Event()

    def __contains__(self, key: object) -> bool:
        known = super().__contains__(key)
        if self.looked:
            self.second_came.set()
        self.looked = True
        assert self.second_came.wait(PATIENCE)
        return known


class TellingLock:
    """A lock that says when somebody finds it taken."""

    def __init__(self, taken: threading.Event) -> None:
        self._lock = threading.Lock()
        self._taken = taken

    def __enter__(self) -> None:
        if not self._lock.acquire(blocking=False):
            self._taken.set()
            self._lock.acquire()

    def __exit__(self, *_: object) -> None:
        self._lock.release()


@proves("GATE-REPLAY-01")
def test_c3_looking_an_id_up_and_remembering_it_are_one_step() -> None:
    memory = ReplayMemory(5)
    memory._seen = seen = Hesitant()
    memory.__dict__["_lock"] = TellingLock(seen.second_came)
    refused: list[RefusalError] = []

    def admit() -> None:
        try:
            memory.admit("same", 0.0)
        except RefusalError as error:
            refused.append(error)

    threads = [threading.Thread(target=admit) for _ in range(2)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(PATIENCE)
    assert len(refused) == 1


@proves("GATE-REPLAY-01")
def test_c3_no_bytes_are_fresh_again_after_their_id_is_forgotten() -> None:
    """The latest stamp that passes, seen again at the last moment at which it still does."""
    future = 5
    memory = ReplayMemory(future)
    memory.admit("same", 0.0)
    with pytest.raises(RefusalError, match="duplicate"):
        memory.admit("same", float(MAX_AGE_SECONDS + future))


@proves("GATE-TIME-02")
def test_c3_a_stamp_from_the_future_is_refused(desk: Desk) -> None:
    reply = exchange(desk.path, request(["true"], time="3000-01-01T00:00:00Z"))
    assert reply["message"].startswith("request time is in the future: ")
    assert desk.human.asked == []


def test_c3_a_permit_is_handed_out_once_and_only_after_a_yes() -> None:
    approval = Approval(validated(valid()), ())
    for event in (None, Event.TURN):
        if event is not None:
            approval.advance(event)
        with pytest.raises(IllegalStepError):
            approval.spend()
    approval.advance(Event.YES)
    approval.spend()
    with pytest.raises(IllegalStepError):
        approval.spend()


WISHES: list[tuple[str, object]] = [
    ("unattended_eligible", True),
    ("granted", True),
    ("policy", {"unattended_eligible": True, "confirm_unprivileged": False}),
    ("always", True),
    ("approved", True),
    ("decision", "approved"),
    ("decided_by", "terminal"),
    ("auto_approve", 1),
    ("arming", 0),
    *[(name, "always") for name in ("host", "session", "reason", "version", "id")],
    *[("env", {name: "always"}) for name in ("LANG", "TZ", "HOME", "TERM", "LC_ALL")],
    ("forward_agent", True),
]


def files(folder: Path) -> set[str]:
    return {str(path.relative_to(folder)) for path in folder.rglob("*")}


def test_c4_no_field_of_a_request_switches_asking_off(home: Path) -> None:
    with serving(home, Human(decide=lambda _: KeyAnswer(Event.NO))) as desk:
        assert exchange(desk.path, request(["true"]))["status"] == "denied"
        before = files(home)
        for number, (name, value) in enumerate(WISHES, start=2):
            asked = request(["touch", str(home / "ran")], **{name: value})
            assert exchange(desk.path, asked)["status"] == "denied"
            assert len(desk.human.asked) == number, name
        assert files(home) == before


@pytest.mark.parametrize("name", ["STRINGD_GATE_APPROVE", "CI"])
def test_c4_no_environment_variable_does_either(home: Path, name: str) -> None:
    with running_gate(home, env={name: "1"}) as gate, gate.ask(request(["true"])) as connection:
        gate.terminal.wait_for(QUESTION)
        gate.terminal.type("x")
        assert answer(connection)["status"] == "denied"


def test_c5_nothing_is_stored_but_the_audit_log(gate: RunningGate, home: Path) -> None:
    with gate.ask(request(["true"])) as connection:
        gate.terminal.wait_for(QUESTION)
        gate.terminal.type("y")
        assert answer(connection)["status"] == "ok"
    assert files(home) == {
        "gate.sock",
        "data",
        "data/gate-audit.jsonl",
        "data/gate-audit.jsonl.head",
    }


def test_c5_no_password_is_read() -> None:
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
        tuple(ShownProgram(stage[0], path or None, path) for stage in stages),
        AskingPeer(1, 1, exe),
    )
    lines = [spans for page in compose(asked, Size(60, 24)) for spans in page]
    shown = paint([*lines, *word_lines(asked, 60)], colour=False)
    assert all(is_visible(character) for character in shown.replace("\n", ""))


FIELDS = "{} contains forbidden control/bidi characters"
CARRIERS: dict[str, tuple[Callable[[str], dict[str, Any]], str]] = {
    "reason": (lambda mark: {"reason": mark}, FIELDS.format("reason")),
    "session": (lambda mark: {"session": mark}, FIELDS.format("session")),
    "host": (lambda mark: {"host": mark}, FIELDS.format("host")),
    "version": (lambda mark: {"version": mark}, FIELDS.format("version")),
    "id": (lambda mark: {"id": mark}, FIELDS.format("id")),
    "client": (lambda mark: {"client": mark}, FIELDS.format("client")),
    "directory": (lambda mark: {"directory": mark}, FIELDS.format("directory")),
    "tool": (
        lambda mark: {"action": "decide", "pipeline": [], "tool": mark, "text": "x"},
        FIELDS.format("tool"),
    ),
    "text": (
        lambda mark: {"action": "decide", "pipeline": [], "tool": "Bash", "text": f"a\n{mark}"},
        FIELDS.format("text"),
    ),
    "word": (lambda mark: {"pipeline": [["a", mark]]}, FIELDS.format("pipeline[0][1]")),
    "env key": (lambda mark: {"env": {f"LC_{mark}": "x"}}, "env key 'LC_"),
    "env value": (lambda mark: {"env": {"TZ": mark}}, "env value contains forbidden characters"),
    "time": (lambda mark: {"time": f"{request()['time']}{mark}"}, "malformed time field"),
}


@pytest.mark.parametrize("carrier", CARRIERS)
@proves("GATE-VAL-02")
def test_c6_an_escape_in_any_displayed_field_is_refused(desk: Desk, carrier: str) -> None:
    fields, message = CARRIERS[carrier]
    for mark in ("\x1b[8m", "\x9b8m", "\u202e", "\x7f", "\u2028", "\U000e0041"):
        reply = exchange(desk.path, request(["true"], **fields(mark)))
        assert reply["status"] == "error"
        assert reply["message"].startswith(message)
    assert desk.human.asked == []


# The protocol's list, written a second time on purpose.
FORBIDDEN = (
    [*range(9), *range(0x0A, 0x20), 0x7F, *range(0x80, 0xA0), 0xAD, 0x61C, 0x180E, 0xFEFF]
    + [*range(0x200B, 0x2010), *range(0x2028, 0x202F), *range(0x2060, 0x2070)]
    + [*range(0xFFF9, 0xFFFC), *range(0xE0000, 0xE1000), *range(0xFDD0, 0xFDF0)]
    + [plane * 0x10000 + end for plane in range(17) for end in (0xFFFE, 0xFFFF)]
)


@proves("GATE-VAL-02")
def test_c6_every_forbidden_character_is_found_and_no_other() -> None:
    found = {code for code in range(0x110000) if not is_clean(chr(code))}
    assert found ^ set(FORBIDDEN) == set()


def test_c6_nothing_is_painted_that_a_reader_cannot_see() -> None:
    every = "".join(map(chr, [*range(0x3000), *range(0xFE00, 0x10000)]))
    assert all(map(is_visible, paint([line(every)], colour=False).removesuffix("\n")))


def test_c6_nothing_but_painted_text_is_written_to_the_terminal() -> None:
    """The type checker holds this; here we look that no other write has crept in."""
    source = Path(stringd.gate.__file__).parent
    writers = {
        path.name
        for path in source.glob("*.py")
        if re.search(r"\bprint\(|sys\.stdout|os\.write\(self\._screen", path.read_text())
    }
    assert writers == {"terminal.py"}


def test_c7_a_raw_socket_caller_is_gated_like_any_other(home: Path) -> None:
    human = Human(decide=lambda _: KeyAnswer(Event.NO))
    raw = json.dumps({"pipeline": [["touch", str(home / "ran")]], "time": request()["time"]})
    with serving(home, human) as desk:
        assert exchange(desk.path, raw.encode() + b"\n")["status"] == "denied"
    # It left out `privileged`, so it meets the stricter question.
    assert human.asked[0].request.privileged
    assert not (home / "ran").exists()


def test_c7_what_a_client_would_never_send_is_refused_all_the_same(desk: Desk) -> None:
    odd: Sequence[dict[str, Any]] = [
        {"pipeline": []},
        {"env": {"LD_PRELOAD": "/x"}},
        {"time": "2020-01-01T00:00:00Z"},
        {"forward_agent": True, "privileged": True},
    ]
    for fields in odd:
        assert exchange(desk.path, request(**fields))["status"] == "error"
    assert desk.human.asked == []


def test_c7_another_user_is_hung_up_on(home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with serving(home, Human()) as desk:
        monkeypatch.setattr(server_module.os, "getuid", lambda: 4242)  # type: ignore[attr-defined]
        with connect(desk.path) as connection:
            assert connection.recv(1) == b""
        assert desk.log == [f"rejecting connection from uid {os.geteuid()} (expected 4242)"]


@pytest.mark.parametrize("privileged", [False, True])
def test_c8_every_command_is_asked_about_however_often_it_was_approved(
    home: Path, sudo: NotingSudo, privileged: bool
) -> None:
    for _ in range(2):
        # A new gate each time, where the last one left its files.
        with serving(home, Human(), sudo=sudo) as desk:
            for number in (1, 2, 3):
                asked = request(["true"], session="s", privileged=privileged)
                assert exchange(desk.path, asked)["status"] == "ok"
                assert len(desk.human.asked) == number


NAMES_FOR_HERE = ["localhost", "localhost.", "127.0.0.1", "127.1.2.3", "::1", socket.gethostname()]


@pytest.mark.parametrize("host", ["", *NAMES_FOR_HERE])
def test_c9_no_name_for_this_machine_changes_how_it_is_asked(desk: Desk, host: str) -> None:
    exchange(desk.path, request(["true"], host=host))
    assert len(desk.human.asked) == 1


def test_c10_an_alias_nobody_detects_reaches_a_gate_that_asks_for_itself(home: Path) -> None:
    """Two gates: what one human approved says nothing at the other."""
    (home / "a").mkdir()
    (home / "b").mkdir()
    no = Human(decide=lambda _: KeyAnswer(Event.NO))
    with serving(home / "a", Human()) as ours, serving(home / "b", no) as theirs:
        for host in ("", "box.lan", "user@10.0.0.7"):
            assert exchange(ours.path, request(["true"], host=host))["status"] == "ok"
            assert exchange(theirs.path, request(["true"], host=host))["status"] == "denied"
        assert (len(ours.human.asked), len(no.asked)) == (3, 3)


def test_secrets_of_the_gate_do_not_reach_a_command(home: Path) -> None:
    secret = secrets.token_hex(8)
    with running_gate(home, env={"API_KEY": secret}) as gate, connect(gate.path) as connection:
        send(connection, request(["env"]))
        gate.terminal.wait_for(QUESTION)
        gate.terminal.type("y")
        reply = answer(connection)
    assert secret not in base64.b64decode(reply["stdout"]).decode()
