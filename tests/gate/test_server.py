"""The wire, byte by byte, against a running server."""

import base64
import itertools
import json
import os
import socket
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest

from stringd import __version__
from stringd.gate import server
from stringd.gate.audit import verify
from stringd.gate.callers import MAX_IN_FLIGHT, CallerId
from stringd.gate.decide import Event, KeyAnswer
from stringd.gate.program import ShownProgram
from stringd.wire.gate import MAX_REQUEST_BYTES, Response
from tests.gate.support import (
    PATIENCE,
    Desk,
    Human,
    answer,
    connect,
    exchange,
    no_more_threads,
    read_line,
    request,
    send,
    serving,
)
from tests.gate.test_turns import until
from tests.requirements import proves


def padded(size: int) -> bytes:
    """A request line of exactly this size, newline included."""
    message = request(reason="")
    bare = len(json.dumps(message)) + 1
    return json.dumps(message | {"reason": "x" * (size - bare)}).encode() + b"\n"


@proves("GATE-FRAME-01")
def test_one_request_one_answer_then_close(desk: Desk) -> None:
    with connect(desk.path) as connection:
        message = request(["echo", "hi"])
        connection.sendall(json.dumps(message).encode() + b"\n" + b"anything after is ignored\n")
        line = read_line(connection)
        assert json.loads(line)["stdout"] == "aGkK"
        assert connection.recv(1) == b""


@proves("GATE-FRAME-03")
@pytest.mark.parametrize("size", [1, 100, MAX_REQUEST_BYTES])
def test_a_missing_newline_is_named(desk: Desk, size: int) -> None:
    with connect(desk.path) as connection:
        connection.sendall(b"x" * size)
        connection.shutdown(socket.SHUT_WR)
        assert answer(connection) == {
            "id": "",
            "status": "error",
            "message": "read error: request missing trailing newline",
            "version": __version__,
        }


@proves("GATE-FRAME-02")
def test_a_full_size_line_is_accepted(desk: Desk) -> None:
    assert exchange(desk.path, padded(MAX_REQUEST_BYTES))["status"] == "ok"


@proves("GATE-FRAME-02")
def test_a_line_beyond_the_limit_is_refused_and_the_answer_arrives(desk: Desk) -> None:
    with connect(desk.path) as connection:
        try:
            connection.sendall(b"x" * (3 * MAX_REQUEST_BYTES))
        except OSError:
            pytest.fail("the peer was reset while it wrote")
        assert answer(connection)["message"] == "read error: request exceeds maximum size"


@proves("GATE-FRAME-06")
@pytest.mark.parametrize("data", [b"", b"\n"])
def test_nothing_is_answered_to_nothing(desk: Desk, data: bytes) -> None:
    with connect(desk.path) as connection:
        connection.sendall(data)
        connection.shutdown(socket.SHUT_WR)
        assert connection.recv(1) == b""


@pytest.mark.parametrize("line", [b"hello\n", b"[]\n", b"{\n", b'{"pipeline":null}\n', b"\xff\n"])
@proves("GATE-REQ-04")
def test_what_is_no_request_is_invalid_json_without_an_id(desk: Desk, line: bytes) -> None:
    reply = exchange(desk.path, line)
    assert reply["id"] == ""
    assert reply["message"].startswith("invalid JSON: ")


@proves("GATE-VAL-01", "GATE-VAL-04")
def test_a_refused_request_may_be_sent_again_with_the_same_id(desk: Desk) -> None:
    message = request(["true"])
    refused = exchange(desk.path, message | {"env": {"PATH": "/x"}})
    assert refused["id"] == message["id"]
    assert refused["message"] == "environment variable not allowed: PATH"
    assert exchange(desk.path, message)["status"] == "ok"


@proves("GATE-REPLAY-01")
@pytest.mark.parametrize("event", [Event.YES, Event.NO, Event.SILENCE])
def test_an_asked_request_uses_up_its_id_whatever_the_outcome(home: Path, event: Event) -> None:
    with serving(home, Human(decide=lambda _: KeyAnswer(event))) as desk:
        message = request(["true"])
        assert "message" not in exchange(desk.path, message)
        again = exchange(desk.path, message)
    assert again["message"] == f"duplicate request id: {message['id']}"


@proves("GATE-REQ-01")
def test_a_missing_pipeline_and_an_absent_id_are_answered_under_a_new_id(desk: Desk) -> None:
    reply = exchange(desk.path, {"time": request()["time"]})
    assert reply["message"] == "pipeline must not be empty"
    assert len(reply["id"]) == 36


@proves("GATE-RES-02")
@pytest.mark.parametrize(("event", "status"), [(Event.NO, "denied"), (Event.SILENCE, "timeout")])
def test_a_refusal_carries_no_output_and_no_message(home: Path, event: Event, status: str) -> None:
    with serving(home, Human(decide=lambda _: KeyAnswer(event))) as desk:
        reply = exchange(desk.path, request(["true"]))
    assert reply["status"] == status
    assert not reply.keys() & {"stages", "stdout", "message"}


@proves("GATE-RES-01", "GATE-RES-03")
def test_ok_has_one_entry_per_stage_and_no_flag_that_is_false(desk: Desk) -> None:
    reply = exchange(desk.path, request(["echo", "hi"], ["wc", "-c"]))
    assert reply["stages"] == [{"exit_code": 0, "stderr": ""}, {"exit_code": 0, "stderr": ""}]
    assert reply["stdout"] == "Mwo="
    assert list(reply)[:5] == ["id", "status", "stages", "stdout", "version"]


@proves("GATE-FRAME-05")
def test_a_machine_out_of_threads_is_busy_and_the_gate_lives_on(
    desk: Desk, monkeypatch: pytest.MonkeyPatch
) -> None:
    with monkeypatch.context() as machine:
        machine.setattr(threading.Thread, "start", no_more_threads)
        reply = exchange(desk.path, request(["true"]))
    assert (reply["id"], reply["message"]) == ("", "server busy: too many in-flight requests")
    assert exchange(desk.path, request(["true"]))["status"] == "ok"
    assert desk.log[0] == "can't start new thread"


@proves("GATE-FRAME-05")
def test_over_the_cap_the_answer_is_busy_without_the_request_being_read(home: Path) -> None:
    human = Human(decide=lambda _: KeyAnswer(Event.NO))
    many = itertools.count()
    everybody = lambda *_: CallerId(next(many), 0)  # noqa: E731
    with serving(home, human, at_liberty=False, identify=everybody) as desk:
        waiting = [connect(desk.path) for _ in range(MAX_IN_FLIGHT)]
        for connection in waiting:
            send(connection, request(["true"]))
        until(lambda: desk.handler.places.are_full)
        with connect(desk.path) as late:
            reply = answer(late)
        assert (reply["id"], reply["message"]) == ("", "server busy: too many in-flight requests")
        human.at_liberty.set()
        assert [answer(connection)["status"] for connection in waiting] == [
            "denied"
        ] * MAX_IN_FLIGHT
        until(lambda: desk.handler.places.taken == 0)
        assert exchange(desk.path, request(["true"]))["status"] == "denied"
        for connection in waiting:
            connection.close()


@proves("GATE-ASK-02")
def test_questions_are_asked_one_at_a_time_in_order(home: Path) -> None:
    human = Human()
    with serving(home, human, at_liberty=False) as desk:
        connections = []
        for number in range(4):
            connections.append(connect(desk.path))
            send(connections[-1], request(["true"], id=str(number)))
            until(lambda number=number: human.waiting + len(human.asked) == number + 1)  # type: ignore[misc]
        assert [question.request.id for question in human.asked] == ["0"]
        human.at_liberty.set()
        for connection in connections:
            answer(connection)
            connection.close()
    assert [question.request.id for question in human.asked] == ["0", "1", "2", "3"]


@proves("GATE-ASK-03")
def test_a_caller_that_hangs_up_while_asked_is_not_served(home: Path) -> None:
    ran = home / "ran"
    human = Human()
    with serving(home, human, at_liberty=False) as desk:
        with connect(desk.path) as connection:
            send(connection, request(["touch", str(ran)]))
            until(lambda: len(human.asked) == 1)
        until(lambda: desk.handler.places.taken == 0)
        assert "abandoned" in desk.audit.read_text()
    assert not ran.exists()


@proves("GATE-ASK-03")
def test_a_caller_that_hangs_up_between_yes_and_start_is_not_served(home: Path) -> None:
    ran = home / "ran"
    gone = threading.Event()

    def decide(_: object) -> KeyAnswer:
        connection.close()
        gone.set()
        return KeyAnswer(Event.YES)

    with serving(home, Human(decide=decide)) as desk:
        connection = connect(desk.path)
        send(connection, request(["touch", str(ran)]))
        assert gone.wait(PATIENCE)
        until(lambda: desk.handler.places.taken == 0)
        assert "abandoned" in desk.audit.read_text()
        (spans,) = desk.human.told
        assert spans[0].text.startswith("→ caller went away, nothing was run")
    assert not ran.exists()


@proves("GATE-ASK-03")
def test_a_half_closed_caller_is_served(desk: Desk) -> None:
    with connect(desk.path) as connection:
        send(connection, request(["echo", "hi"]))
        connection.shutdown(socket.SHUT_WR)
        assert answer(connection)["status"] == "ok"


@proves("GATE-CTL-01")
def test_ping_answers_without_a_question(desk: Desk) -> None:
    reply = exchange(desk.path, request(action="ping", pipeline=[]))
    assert (reply["status"], reply["message"], reply["version"]) == ("ok", "pong", __version__)
    assert desk.human.asked == []


def test_a_stale_ping_is_refused_and_an_old_id_too(desk: Desk) -> None:
    stale = exchange(desk.path, request(action="ping", pipeline=[], time="2020-01-01T00:00:00Z"))
    assert stale["message"].startswith("request too old: ")
    message = request(action="ping", pipeline=[])
    exchange(desk.path, message)
    assert exchange(desk.path, message)["message"].startswith("duplicate request id: ")


@proves("GATE-CTL-02")
def test_stop_is_refused_while_a_question_is_open(home: Path) -> None:
    human = Human(decide=lambda _: KeyAnswer(Event.NO))
    with serving(home, human, at_liberty=False) as desk, connect(desk.path) as connection:
        send(connection, request(["true"]))
        until(lambda: len(human.asked) == 1)
        reply = exchange(desk.path, request(action="stop", pipeline=[]))
        assert reply["message"] == "busy: 1 request(s) in progress"
        human.at_liberty.set()
        assert answer(connection)["status"] == "denied"


def test_a_crash_in_one_request_is_an_error_for_it_alone(home: Path) -> None:
    def decide(_: object) -> KeyAnswer:
        raise ZeroDivisionError("a bug")

    human = Human(decide=decide)
    with serving(home, human) as desk:
        assert exchange(desk.path, request(["true"]))["message"] == "internal error"
        assert any("a bug" in line for line in desk.log)
        human.decide = lambda _: KeyAnswer(Event.YES)
        assert exchange(desk.path, request(["true"]))["status"] == "ok"
        assert desk.handler.places.taken == 0


def test_a_crash_in_the_middle_of_an_answer_is_not_followed_by_another(
    desk: Desk, monkeypatch: pytest.MonkeyPatch
) -> None:
    def crash(_: Response) -> Iterator[bytes]:
        yield b'{"id":"'
        raise ZeroDivisionError("a bug")

    monkeypatch.setattr(server, "encode_response", crash)
    with connect(desk.path) as connection:
        send(connection, request(["true"]))
        assert read_line(connection) == b""
    assert any("a bug" in line for line in desk.log)


@proves("GATE-AUD-01")
def test_receipt_decision_and_completion_are_on_record(desk: Desk) -> None:
    message = request(["echo", "hi"], session="s", host="h", reason="r")
    exchange(desk.path, message)
    until(lambda: desk.audit.read_text().count("\n") == 3)
    received, decided, finished = map(json.loads, desk.audit.read_text().splitlines())
    assert received["event"] == "received"
    assert received["pipeline"] == [["echo", "hi"]]
    assert received["peer"]["pid"] > 0
    assert (received["session"], received["host"], received["reason"]) == ("s", "h", "r")
    assert (decided["event"], decided["decision"], decided["by"]) == ("decided", "approved", "test")
    assert (finished["event"], finished["exit_codes"]) == ("finished", [0])
    assert finished["stdout_bytes"] == 3
    assert {received["id"], decided["id"], finished["id"]} == {message["id"]}


@proves("GATE-AUD-01")
def test_a_large_request_is_small_on_record_until_it_is_approved(home: Path) -> None:
    message = request(
        ["true", *["x" * 50_000] * 4],
        id="i" * 300_000,
        reason="r" * 300_000,
        env={"TZ": "z" * 100_000},
    )
    with serving(home, Human(decide=lambda _: KeyAnswer(Event.NO))) as desk:
        assert exchange(desk.path, message)["status"] == "denied"
        assert desk.audit.stat().st_size < 8192
        received = json.loads(desk.audit.read_text().splitlines()[0])
        assert received["pipeline_start"].startswith('[["true","xxx')
        assert received["pipeline_bytes"] == len('[["true"]]') + 4 * 50_003
        desk.human.decide = lambda _: KeyAnswer(Event.YES)
        assert exchange(desk.path, message | {"id": "short"})["status"] == "ok"
        decided = json.loads(desk.audit.read_text().splitlines()[3])
        assert decided["decision"] == "approved"
        assert (decided["pipeline"], decided["env"]) == (message["pipeline"], message["env"])
        assert verify(desk.audit).broken is None


@pytest.mark.parametrize(
    ("line", "request_id", "message"),
    [
        (b"hello", "", "invalid JSON: "),
        (b'{"id":"seven","pipeline":[]}', "seven", "pipeline must not be empty"),
        (
            b'{"id":"' + b"7" * 5000 + b'","pipeline":[["a"]]}',
            "7" * 128 + "… sha256 c636cf9e9280d161",
            "missing time field",
        ),
    ],
)
@proves("GATE-AUD-03")
def test_a_refused_request_is_on_record(
    desk: Desk, line: bytes, request_id: str, message: str
) -> None:
    exchange(desk.path, line + b"\n")
    (record,) = map(json.loads, desk.audit.read_text().splitlines())
    assert (record["event"], record["id"]) == ("refused", request_id)
    assert record["message"].startswith(message)
    assert record["peer"]["pid"] == os.getpid()
    assert verify(desk.audit).broken is None


@proves("GATE-AUD-03")
def test_a_request_that_was_asked_about_is_not_refused_as_well(desk: Desk) -> None:
    message = request(["nosuch"])
    assert exchange(desk.path, message)["message"].startswith("failed to execute command: ")
    assert exchange(desk.path, message)["message"].startswith("duplicate request id: ")
    events = [json.loads(line)["event"] for line in desk.audit.read_text().splitlines()]
    assert events == ["received", "decided", "failed", "refused"]


def test_a_caller_slow_to_read_a_privileged_answer_does_not_hold_the_terminal(
    home: Path,
) -> None:
    sudo = home / "sudo"
    sudo.write_text('#!/bin/sh\nshift\nexec "$@"\n')
    sudo.chmod(0o755)
    by = ShownProgram("sudo", str(sudo))
    with serving(home, Human(), sudo=by) as desk, connect(desk.path) as slow:
        send(slow, request(["head", "-c", "4000000", "/dev/zero"], privileged=True))
        until(lambda: bool(desk.human.told))
        assert exchange(desk.path, request(["true"], privileged=True))["status"] == "ok"
        assert answer(slow)["status"] == "ok"


@proves("GATE-AUD-02")
def test_without_the_record_nothing_privileged_runs_and_nobody_is_asked(home: Path) -> None:
    human = Human()
    with serving(home, human) as desk:
        desk.audit.mkdir()
        reply = exchange(desk.path, request(["true"], privileged=True))
        assert reply["message"].startswith("audit log cannot be written: ")
        assert human.asked == []
        assert exchange(desk.path, request(["true"]))["status"] == "ok"
        assert any("audit log cannot be written" in spans[0].text for spans in human.told)


@proves("GATE-AUD-02")
def test_the_decision_is_on_disk_before_the_command_starts(home: Path) -> None:
    with serving(home, Human()) as desk:
        reply = exchange(desk.path, request(["cat", str(desk.audit)]))
    seen = base64.b64decode(reply["stdout"]).decode()
    assert '"decision":"approved"' in seen
