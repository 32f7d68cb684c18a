import asyncio
import json
import socket
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from stringd import __version__
from stringd.client.gate import (
    AsyncGate,
    Gate,
    GateClientError,
    GateNotRunningError,
    NoAnswerError,
    build_request,
    default_socket,
    succeeded,
)
from stringd.gate.decide import Event, KeyAnswer
from stringd.wire.gate import Status, encode_request
from tests.gate.conftest import desk, home
from tests.gate.support import Desk, Human, serving
from tests.gate.test_turns import until
from tests.support.daemon import WAIT_SECONDS

__all__ = ["desk", "home"]


@contextmanager
def peer(path: Path, behave: Callable[[socket.socket], None]) -> Iterator[None]:
    """A gate that is not ours: one connection, handled as told."""
    with socket.socket(socket.AF_UNIX) as listening:
        listening.bind(str(path))
        listening.listen()

        def serve() -> None:
            connection, _ = listening.accept()
            with connection:
                behave(connection)

        thread = threading.Thread(target=serve)
        thread.start()
        yield
        thread.join(WAIT_SECONDS)


def test_a_pipeline_is_run_and_its_output_read(desk: Desk) -> None:
    response = Gate(str(desk.path)).run(
        [["echo", "hi"], ["cat"]], privileged=False, session="s", reason="r", env={"TZ": "UTC"}
    )
    assert succeeded(response)
    assert response.stdout is not None
    assert bytes(response.stdout) == b"hi\n"
    asked = desk.human.asked[0].request
    assert (asked.session, asked.reason, asked.version) == ("s", "r", __version__)
    assert dict(asked.env) == {"TZ": "UTC"}


def test_a_full_size_output_is_read(desk: Desk) -> None:
    pipeline = [["head", "-c", "16777217", "/dev/zero"]]
    response = Gate(str(desk.path)).run(pipeline, privileged=False)
    assert response.stdout_truncated
    assert response.stdout is not None
    assert bytes(response.stdout) == bytes(16 * 1024 * 1024)


def test_ping_and_stop_need_no_human(desk: Desk) -> None:
    gate = Gate(str(desk.path))
    assert gate.ping().message == "pong"
    assert gate.stop().status is Status.OK
    assert desk.human.asked == []


def test_a_denial_is_an_answer_and_no_success(home: Path) -> None:
    human = Human(decide=lambda _: KeyAnswer(Event.NO, note="not today"))
    with serving(home, human) as desk:
        response = Gate(str(desk.path)).run([["true"]], privileged=False)
    assert response.status is Status.DENIED
    assert response.decision_note == "not today"
    assert not succeeded(response)


@pytest.mark.anyio
async def test_the_async_client_does_the_same(desk: Desk) -> None:
    gate = AsyncGate(str(desk.path))
    response = await gate.run([["echo", "hi"]], privileged=False)
    assert response.stdout is not None
    assert bytes(response.stdout) == b"hi\n"
    assert (await gate.ping()).message == "pong"
    assert (await gate.stop()).status is Status.OK


@pytest.mark.anyio
async def test_cancelling_hangs_up_and_nothing_runs(home: Path) -> None:
    human = Human()
    with serving(home, human, at_liberty=False) as desk:
        gate = AsyncGate(str(desk.path))
        asking = asyncio.create_task(gate.run([["touch", str(home / "ran")]], privileged=False))
        await asyncio.to_thread(until, lambda: len(human.asked) == 1)
        asking.cancel()
        with pytest.raises(asyncio.CancelledError):
            await asking
        await asyncio.to_thread(until, lambda: desk.handler.places.taken == 0)
        human.at_liberty.set()
    assert not (home / "ran").exists()


def test_a_gate_that_is_not_there_is_told_at_once_with_the_way_on(home: Path) -> None:
    way_on = "Start it in a terminal of your own: stringd gate"
    with pytest.raises(GateNotRunningError, match=f"{way_on}$"):
        Gate(str(home / "stringd-gate.sock")).ping()
    with pytest.raises(GateNotRunningError, match=f"{way_on} --socket {home}/none.sock$"):
        Gate(str(home / "none.sock")).ping()


def test_the_way_on_holds_in_every_directory(home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(home)
    with pytest.raises(GateNotRunningError, match=f"stringd gate --socket {home}/none.sock$"):
        Gate("none.sock").ping()


def test_a_gate_that_may_listen_elsewhere_can_be_pointed_at(home: Path) -> None:
    with pytest.raises(GateNotRunningError, match="reached with --socket or STRINGD_GATE_SOCKET"):
        Gate(str(home / "gate.sock")).ping()


def test_a_gate_with_a_full_queue_is_waited_for(home: Path) -> None:
    with socket.socket(socket.AF_UNIX) as listening:
        listening.bind(str(home / "s"))
        listening.listen(0)
        with socket.socket(socket.AF_UNIX) as first:
            first.connect(str(home / "s"))

            def serve() -> None:
                for _ in range(2):
                    connection, _ = listening.accept()
                    with connection:
                        connection.sendall(b'{"status":"ok","message":"pong"}\n')

            # Nobody accepts until the second caller is on its way.
            late = threading.Timer(0.2, serve)
            late.start()
            assert Gate(str(home / "s")).ping().message == "pong"
            late.join(WAIT_SECONDS)


@pytest.mark.anyio
async def test_the_async_client_says_so_too(home: Path) -> None:
    with pytest.raises(GateNotRunningError):
        await AsyncGate(str(home / "none.sock")).ping()


def test_an_answer_given_before_the_request_was_read_counts(home: Path) -> None:
    def refuse(connection: socket.socket) -> None:
        connection.sendall(b'{"id":"","status":"error","message":"busy"}\n')

    request = build_request([["echo", "x" * 500_000]])
    with peer(home / "s", refuse):
        assert Gate(str(home / "s")).send(request).message == "busy"


def test_reading_stops_at_the_newline_whatever_follows(home: Path) -> None:
    def chatter(connection: socket.socket) -> None:
        connection.recv(65536)
        connection.sendall(b'{"id":"7","status":"ok","stages":[],"stdout":null}\n{"more":1}')

    with peer(home / "s", chatter):
        assert Gate(str(home / "s")).ping().status is Status.OK


@pytest.mark.parametrize(
    ("reply", "message"),
    [
        (b"", "server closed connection without response"),
        (b"hello\n", "could not be read"),
        (b'{"status":"ok"', "could not be read"),
    ],
)
def test_a_broken_answer_is_an_error_with_a_reason(home: Path, reply: bytes, message: str) -> None:
    def answer(connection: socket.socket) -> None:
        connection.recv(65536)
        connection.sendall(reply)

    with peer(home / "s", answer), pytest.raises(GateClientError, match=message):
        Gate(str(home / "s")).ping()


def test_silence_ends_after_the_timeout(home: Path) -> None:
    waited = threading.Event()

    def say_nothing(_: socket.socket) -> None:
        waited.wait(WAIT_SECONDS)

    with peer(home / "s", say_nothing):
        gate = Gate(str(home / "s"), timeout=0.1)
        with pytest.raises(NoAnswerError, match=r"no response from daemon after 0\.1s"):
            gate.run([["true"]])
        waited.set()


def test_each_request_has_its_own_id_and_the_members_in_order() -> None:
    first, second = build_request([["ls"]]), build_request([["ls"]])
    assert first.id != second.id
    members = json.loads(encode_request(first))
    expected = "id host session time pipeline env reason privileged forward_agent version"
    assert list(members) == expected.split()


def test_the_default_socket_follows_the_environment(tmp_path: Path) -> None:
    runtime = {"XDG_RUNTIME_DIR": str(tmp_path)}
    assert default_socket(runtime) == f"{tmp_path}/stringd-gate.sock"
    assert default_socket({"STRINGD_GATE_SOCKET": "/x"}) == "/x"


@pytest.mark.parametrize(
    ("options", "name"),
    [
        ({"pipeline": [["echo", "\udcff"]]}, "argument 1 of the command"),
        ({"pipeline": [["a"], ["b", "\udcff"]]}, r"\[1\]\[1\]"),
        ({"pipeline": [["a"]], "reason": "\udcff"}, "the reason"),
        ({"pipeline": [["a"]], "env": {"TZ": "\udcff"}}, "the variable 'TZ'"),
    ],
)
def test_what_is_not_text_is_refused_by_name_before_anything_is_sent(
    options: dict[str, Any], name: str
) -> None:
    with pytest.raises(GateClientError, match=f"{name} is not valid UTF-8"):
        build_request(**options)


def test_without_a_runtime_directory_the_socket_is_the_same_from_everywhere(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("stringd.client.gate.os.getuid", lambda: 3_999_999_999)
    for data_dir in ("", ".stringd"):
        found = default_socket({"HOME": str(tmp_path), "STRINGD_DATA_DIR": data_dir})
        assert found == f"{tmp_path}/.string/gate.sock"
    assert default_socket({"STRINGD_DATA_DIR": "/d"}) == "/d/gate.sock"
