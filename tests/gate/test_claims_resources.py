"""The gate's claims R1 to R6, one by one; `test_mutations` shows that each can fail."""

import base64
import os
import re
import select
import stat
import sys
import termios
import threading
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from stringd.gate import server as server_module
from stringd.gate.decide import Event, KeyAnswer
from stringd.gate.errors import BusyError, TroubleError
from stringd.gate.instants import SECOND, age_seconds, lead_seconds, parse_instant
from stringd.gate.listener import Listener
from stringd.gate.replay import ReplayMemory
from stringd.gate.requests import MAX_LARGE_IN_FLIGHT
from stringd.gate.server import MAX_HANDSHAKES
from stringd.gate.terminal import Terminal
from stringd.wire.gate import MAX_OUTPUT_BYTES, MAX_REQUEST_BYTES
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
    send,
    serving,
)
from tests.gate.test_execute import processes_with
from tests.gate.test_turns import until
from tests.requirements import proves


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
        trickling.join(PATIENCE)
        for connection in hostile:
            connection.close()


@proves("GATE-FRAME-04")
@pytest.mark.parametrize("sent", [b"", b'{"pipeline"'], ids=["silent", "half a line"])
def test_r1_a_handshake_that_does_not_end_is_ended(
    home: Path, monkeypatch: pytest.MonkeyPatch, sent: bytes
) -> None:
    monkeypatch.setattr(server_module, "HANDSHAKE_SECONDS", 0.2)
    with serving(home, Human()) as desk, connect(desk.path) as connection:
        connection.sendall(sent)
        assert answer(connection)["message"] == "handshake deadline exceeded"


def test_r1_large_lines_of_brackets_do_not_hold_up_an_honest_request(desk: Desk) -> None:
    heavy = b"[" + b"[]," * 340_000 + b"[]]"
    hostile = [connect(desk.path) for _ in range(2)]
    for connection in hostile:
        connection.sendall(heavy + b"\n")
    assert exchange(desk.path, request(["true"]))["status"] == "ok"
    for connection in hostile:
        assert answer(connection)["message"].startswith("invalid JSON: ")
        connection.close()


def test_r1_a_crowd_makes_room_for_whoever_comes(home: Path) -> None:
    human = Human(decide=lambda _: KeyAnswer(Event.NO))
    with serving(home, human) as desk:
        crowd = [connect(desk.path) for _ in range(MAX_HANDSHAKES)]
        until(lambda: desk.server.handshakes == MAX_HANDSHAKES)
        (oldest, *_), *_ = desk.server._handshakes.values()
        assert exchange(desk.path, request(["true"]))["status"] == "denied"
        # Its oldest had to go, and no other.
        assert answer(crowd[0])["message"] == "server busy: too many in-flight requests"
        assert desk.server.handshakes == MAX_HANDSHAKES - 1
        oldest.ready()
        for connection in crowd:
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


@proves("GATE-EXE-03")
def test_r2_a_stream_is_kept_up_to_16_mib(desk: Desk) -> None:
    reply = exchange(desk.path, request(["head", "-c", str(MAX_OUTPUT_BYTES + 9), "/dev/zero"]))
    assert len(base64.b64decode(reply["stdout"])) == MAX_OUTPUT_BYTES
    assert reply["stdout_truncated"] is True


@proves("GATE-FRAME-02")
def test_r2_a_line_is_read_up_to_1_mib(desk: Desk) -> None:
    with connect(desk.path) as connection:
        connection.sendall(b"x" * (MAX_REQUEST_BYTES + 1))
        assert answer(connection)["message"] == "read error: request exceeds maximum size"


def test_r2_few_large_requests_are_held_at_a_time(home: Path) -> None:
    human = Human(decide=lambda _: KeyAnswer(Event.NO))
    large = [["true", *["x"] * 20_000]]
    with serving(home, human, at_liberty=False) as desk:
        waiting = [connect(desk.path) for _ in range(MAX_LARGE_IN_FLIGHT)]
        for connection in waiting:
            send(connection, request(pipeline=large))
        until(lambda: desk.handler.places.taken == MAX_LARGE_IN_FLIGHT)
        reply = exchange(desk.path, request(pipeline=large))
        assert reply["message"] == "server busy: too many in-flight requests"
        # A small one still finds its place.
        with connect(desk.path) as connection:
            send(connection, request(["true"]))
            human.at_liberty.set()
            for each in (*waiting, connection):
                assert answer(each)["status"] == "denied"
                each.close()
        assert exchange(desk.path, request(pipeline=large))["status"] == "denied"


def test_r2_there_are_never_more_threads_than_can_be_served(
    home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(server_module, "MAX_THREADS", 2)
    human = Human(decide=lambda _: KeyAnswer(Event.NO))
    with serving(home, human, at_liberty=False) as desk:
        waiting = [connect(desk.path) for _ in range(2)]
        for connection in waiting:
            send(connection, request(["true"]))
        until(lambda: desk.handler.places.taken == 2)
        reply = exchange(desk.path, request(["true"]))
        assert reply["message"] == "server busy: too many in-flight requests"
        human.at_liberty.set()
        for connection in waiting:
            assert answer(connection)["status"] == "denied"
            connection.close()


def test_r2_the_memory_of_ids_is_bounded() -> None:
    memory = ReplayMemory(5, capacity=2)
    memory.admit("a", 0)
    memory.admit("b", 0)
    with pytest.raises(BusyError):
        memory.admit("c", 1)


# Short enough that what a broken gate leaves behind ends by itself.
SOON = "8"
NAP = "import time; time.sleep({sys.argv[2]})"
FAMILY = (
    f"import subprocess, sys, time; nap = [sys.executable, '-c', f'{NAP}', sys.argv[1]]; "
    "subprocess.Popen(nap); subprocess.Popen(nap, start_new_session=True); "
    "time.sleep(float(sys.argv[2]))"
)


@proves("GATE-EXE-04")
def test_r3_an_overrun_leaves_no_process_behind(home: Path) -> None:
    marker = str(home / "marker")
    with serving(home, Human(), exec_timeout=1) as desk:
        reply = exchange(desk.path, request([sys.executable, "-c", FAMILY, marker, SOON]))
        assert reply["message"] == "command timed out after 1s"
        assert processes_with(marker) == []


@proves("GATE-EXE-04")
def test_r3_a_stage_that_cannot_start_ends_the_ones_before_it(desk: Desk, home: Path) -> None:
    marker, broken = str(home / "marker"), home / "broken"
    broken.write_text("#!/nosuch/interpreter\n")
    broken.chmod(0o755)
    waiting = [sys.executable, "-c", f"import time; time.sleep({SOON})", marker]
    reply = exchange(desk.path, request(waiting, [str(broken)]))
    assert reply["message"].startswith("failed to spawn pipeline stage 1: ")
    assert processes_with(marker) == []


@proves("GATE-SOCK-01")
def test_r4_the_socket_never_was_wider_than_0600(
    home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = home / "gate.sock"
    modes: list[int] = []
    chmod = Path.chmod

    def watched(self: Path, mode: int) -> None:
        modes.append(stat.S_IMODE(self.lstat().st_mode))
        chmod(self, mode)
        modes.append(stat.S_IMODE(self.lstat().st_mode))

    monkeypatch.setattr(Path, "chmod", watched)
    before = os.umask(0)
    try:
        Listener(path).close()
    finally:
        os.umask(before)
    assert modes == [0o600, 0o600]


@proves("GATE-SOCK-01")
def test_r4_a_living_gate_is_never_clobbered(desk: Desk) -> None:
    with pytest.raises(TroubleError, match="already running"):
        Listener(desk.path)
    assert exchange(desk.path, request(["true"]))["status"] == "ok"


seconds = st.integers(min_value=0, max_value=4_102_444_799)  # 1970 to 2099


def written(second: int) -> str:
    return datetime.fromtimestamp(second, UTC).strftime("%Y-%m-%dT%H:%M:%SZ")


@given(st.text(alphabet="0123456789-+:.TZ", max_size=30) | st.text(max_size=30))
@example("2026-02-30T14:30:00Z")
@example("9999-12-31T23:59:60.999999999-23:59")
@example("0000-00-00T00:00:00Z")
def test_r5_every_text_is_an_instant_or_none(text: str) -> None:
    instant = parse_instant(text)
    assert instant is None or isinstance(instant, int)


@given(seconds, seconds)
@example(3599, 3600)
@example(86_399, 86_400)
def test_r5_a_later_stamp_is_a_later_instant(first: int, second: int) -> None:
    left, right = parse_instant(written(first)), parse_instant(written(second))
    assert left is not None
    assert right is not None
    assert (left < right) == (first < second)
    assert left == first * SECOND


@given(st.integers(), st.integers(), st.integers(min_value=0))
@example(10 * SECOND, 0, 0)
def test_r5_age_and_lead_are_total_and_monotone(instant: int, now: int, later: int) -> None:
    age, lead = age_seconds(instant, now), lead_seconds(instant, now)
    assert min(age, lead) == 0
    assert age_seconds(instant, now + later) >= age
    assert lead_seconds(instant, now + later) <= lead


@pytest.fixture
def device() -> Any:
    """A terminal's two ends."""
    master, slave = os.openpty()
    yield master, slave
    os.close(master)
    os.close(slave)


def crash_while_raw(terminal: Terminal, before: list[Any]) -> None:
    with terminal.raw():
        assert termios.tcgetattr(terminal.keys) != before
        raise ZeroDivisionError


@proves("GATE-ASK-09")
def test_r6_the_terminal_is_restored_after_a_crash(device: tuple[int, int]) -> None:
    _, slave = device
    before = termios.tcgetattr(slave)
    with pytest.raises(ZeroDivisionError):
        crash_while_raw(Terminal(slave, slave, {}), before)
    assert termios.tcgetattr(slave) == before


@proves("GATE-ASK-09")
def test_r6_the_terminal_is_restored_when_the_gate_is_ended_at_a_question(
    gate: RunningGate,
) -> None:
    with gate.ask(request(["true"])) as connection:
        gate.terminal.wait_for(QUESTION)
        gate.terminal.process.terminate()
        assert answer(connection)["message"] == "daemon shutting down"
    gate.terminal.process.wait(PATIENCE)
    assert termios.tcgetattr(gate.terminal.slave) == gate.terminal.settings


@proves("GATE-ASK-04")
def test_r6_what_was_typed_before_the_question_is_discarded(device: tuple[int, int]) -> None:
    master, slave = device
    os.write(master, b"y")
    # Its echo shows that it has arrived.
    assert os.read(master, 9) == b"y"
    with Terminal(slave, slave, {}).raw():
        assert select.select([slave], [], [], 0)[0] == []
        os.write(master, b"n")
        assert select.select([slave], [], [], PATIENCE)[0] == [slave]
        assert os.read(slave, 9) == b"n"
