"""What was tried against the gate from outside, each attempt as a test."""

import base64
import itertools
import json
import os
import shutil
import signal
import socket
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from stringd.gate.audit import FILE_NAME, verify
from stringd.gate.callers import HOLD_SECONDS, MAX_PER_CALLER, CallerId, Callers, caller_of
from stringd.gate.decide import Event, KeyAnswer
from stringd.gate.errors import BusyError, TroubleError
from stringd.gate.question import Size, compose
from stringd.gate.refusals import BURST
from stringd.gate.sudo import find_sudo
from stringd.gate.surroundings import key_pressers
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
from tests.gate.test_execute import processes_with
from tests.gate.test_turns import until
from tests.requirements import proves


def printed(reply: dict[str, object]) -> str:
    return base64.b64decode(str(reply["stdout"])).decode()


@contextmanager
def at_the_last_moment(monkeypatch: pytest.MonkeyPatch, do: Callable[[], None]) -> Iterator[None]:
    """Do something after every check, right before the system starts a program."""
    spawn = os.posix_spawn

    def late(*args: object, **kwargs: object) -> int:
        do()
        return spawn(*args, **kwargs)  # type: ignore[arg-type]

    with monkeypatch.context() as patched:
        patched.setattr(os, "posix_spawn", late)
        yield


def two_tools(home: Path, kind: str) -> tuple[Path, Path]:
    """A program that says A and one that says B, of one name in two folders."""
    for name in ("a", "b"):
        (home / name).mkdir()
        tool = home / name / "tool"
        if kind == "binary":
            # `echo` and `printf` print another text for the same word.
            shutil.copy("/bin/echo" if name == "a" else "/usr/bin/printf", tool)
        else:
            tool.write_text(f"#!/bin/sh\necho {name.upper()}\n")
        tool.chmod(0o755)
    return home / "a", home / "b"


OUTPUT = {"binary": "\\101\n", "text": "A\n"}


@proves("GATE-EXE-08")
@pytest.mark.parametrize("kind", ["binary", "text"])
def test_a1_a_parent_exchanged_after_approval_changes_nothing(
    home: Path, monkeypatch: pytest.MonkeyPatch, kind: str
) -> None:
    shown, other = two_tools(home, kind)
    link = home / "link"
    link.symlink_to(shown)

    def exchange_parent() -> None:
        (home / "new").symlink_to(other)
        (home / "new").replace(link)

    with serving(home, Human()) as desk, at_the_last_moment(monkeypatch, exchange_parent):
        reply = exchange(desk.path, request([str(link / "tool"), r"\101"]))
    assert printed(reply) == OUTPUT[kind]


@proves("GATE-EXE-08")
def test_a1_a_script_rewritten_in_place_after_approval_runs_as_it_was_shown(
    home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    shown, _ = two_tools(home, "text")

    def rewrite() -> None:
        (shown / "tool").write_text("#!/bin/sh\necho B\n")

    with serving(home, Human()) as desk, at_the_last_moment(monkeypatch, rewrite):
        assert printed(exchange(desk.path, request([str(shown / "tool")]))) == "A\n"


@proves("GATE-EXE-08")
def test_a1_nobody_opens_a_binary_for_writing_while_it_is_started(
    home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    shown, _ = two_tools(home, "binary")
    attempts: list[str] = []

    def overwrite() -> None:
        try:
            os.close(os.open(shown / "tool", os.O_WRONLY | os.O_NONBLOCK))
        except BlockingIOError:
            attempts.append("held up")

    with serving(home, Human()) as desk, at_the_last_moment(monkeypatch, overwrite):
        assert printed(exchange(desk.path, request([str(shown / "tool"), "x"]))) == "x\n"
    assert attempts == ["held up"]


@proves("GATE-ASK-14")
@pytest.mark.skipif(os.getuid() != 0, reason="only root can give files away")
def test_a1_a_script_passed_as_an_argument_is_named_as_changeable(home: Path) -> None:
    script, data = home / "deploy.sh", home / "notes.txt"
    for path in (script, data):
        path.write_text("echo hi\n")
        os.chown(path, 65534, 65534)
    human = Human(decide=lambda _: KeyAnswer(Event.NO))
    with serving(home, human) as desk:
        for words in (["sh", str(script)], ["cat", str(data)], ["env", f"--chdir={script}"]):
            exchange(desk.path, request(words))
    named = [[weak.path for weak in question.files.named] for question in human.asked]
    assert named == [[str(script)], [], [str(script)]]


@proves("GATE-ASK-14")
@pytest.mark.skipif(os.getuid() != 0, reason="only root can give files away")
@pytest.mark.parametrize(
    "line", ["#!{}", "#! {} -u", "#!/usr/bin/env {}", "#!/usr/bin/env -S A=1 {}"]
)
def test_an_interpreter_that_others_can_change_is_named(home: Path, line: str) -> None:
    """The text is held, but the system looks its interpreter up when it is started."""
    interpreter, script = home / "interpreter", home / "script"
    shutil.copy("/bin/sh", interpreter)
    os.chown(interpreter, 65534, 65534)
    script.write_text(f"{line.format(interpreter)}\necho hi\n")
    script.chmod(0o755)
    human = Human(decide=lambda _: KeyAnswer(Event.NO))
    with serving(home, human) as desk:
        exchange(desk.path, request([str(script)]))
    (question,) = human.asked
    assert [(weak.path, weak.who) for weak in question.files.named] == [
        (str(interpreter), "nobody")
    ]


@proves("GATE-ASK-14")
@pytest.mark.skipif(os.getuid() != 0, reason="only root can give files away")
def test_decoys_do_not_hide_that_more_files_can_change(home: Path) -> None:
    scripts = [home / f"{number}.sh" for number in range(6)]
    for path in scripts:
        path.write_text("echo hi\n")
        os.chown(path, 65534, 65534)
    human = Human(decide=lambda _: KeyAnswer(Event.NO))
    with serving(home, human) as desk:
        exchange(desk.path, request(["sh", *map(str, scripts)]))
        exchange(desk.path, request(["sh", *map(str, scripts[:5])]))
    many, few = human.asked
    assert (len(many.files.named), many.files.more) == (5, True)
    assert (len(few.files.named), few.files.more) == (5, False)
    shown = "".join(
        span.text for page in compose(many, Size(100, 60)) for row in page for span in row
    )
    assert "others can change more of them" in shown


@proves("GATE-ASK-14")
@pytest.mark.skipif(os.getuid() != 0, reason="only root can give files away")
@pytest.mark.parametrize("form", ["{}", "if={}", "@{}", "--from={}"])
def test_a_file_that_root_would_copy_is_named_as_changeable(home: Path, form: str) -> None:
    data = home / "job"
    data.write_text("text\n")
    os.chown(data, 65534, 65534)
    human = Human(decide=lambda _: KeyAnswer(Event.NO))
    with serving(home, human) as desk:
        exchange(desk.path, request(["cp", form.format(data), "/nowhere"], privileged=True))
    (question,) = human.asked
    assert [weak.path for weak in question.files.named] == [str(data)]


@proves("GATE-ASK-12")
def test_a4_callers_that_come_and_go_do_not_move_the_question(home: Path) -> None:
    with (
        running_gate(home, size=(24, 80)) as gate,
        gate.ask(request(["rm", "-rf", "/nowhere"], id="first")) as connection,
    ):
        gate.terminal.wait_for(QUESTION)
        before = gate.terminal.seen().lines
        for _ in range(2):
            with gate.ask(request(["true"])):
                gate.terminal.wait_for("1 more waiting")
                gate.terminal.wait_for(QUESTION)
            gate.terminal.wait_for(QUESTION)
        after = gate.terminal.seen().lines
        assert after[:9] == before[:9]
        assert any(row == "Command: rm -rf /nowhere" for row in after)
        gate.terminal.type("x")
        assert answer(connection)["status"] == "denied"


@proves("GATE-ASK-12")
def test_a4_a_resized_window_shows_the_question_whole(home: Path) -> None:
    with (
        running_gate(home, size=(40, 120)) as gate,
        gate.ask(request(["echo", *map(str, range(150))])) as connection,
    ):
        gate.terminal.wait_for(QUESTION)
        gate.terminal.resize(16, 50)
        gate.terminal.wait_for("Page 1 of ")
        gate.terminal.wait_for(QUESTION)
        seen = gate.terminal.seen()
        assert len(seen.lines) == 16
        assert seen.lines[0].startswith("━━━ Command request")
        gate.terminal.type("x")
        assert answer(connection)["status"] == "denied"


@proves("GATE-ASK-05")
def test_a_window_too_small_to_read_in_approves_nothing(home: Path) -> None:
    with running_gate(home, size=(5, 20)) as gate, gate.ask(request(["true"])) as connection:
        gate.terminal.wait_for("Window too small")
        gate.terminal.type("y")
        # It is drawn once more instead.
        gate.terminal.wait_for("Window too small")
        gate.terminal.resize(24, 80)
        gate.terminal.wait_for(QUESTION)
        gate.terminal.type("y")
        assert answer(connection)["status"] == "ok"


@proves("GATE-EXE-09")
@pytest.mark.skipif(os.getuid() != 0, reason="only root can give files away")
@pytest.mark.parametrize("weak", ["file", "folder"])
def test_a5_a_sudo_that_others_could_have_planted_is_never_used(
    home: Path, monkeypatch: pytest.MonkeyPatch, weak: str
) -> None:
    planted = home / "bin" / "sudo"
    planted.parent.mkdir()
    planted.write_text("#!/bin/sh\n")
    planted.chmod(0o755)
    os.chown(planted if weak == "file" else planted.parent, 65534, 65534)
    env = {"PATH": str(planted.parent)}
    monkeypatch.setattr("stringd.gate.sudo._PLACES", "/nowhere")
    with pytest.raises(TroubleError, match="is not used: nobody can change"):
        find_sudo(env)
    with serving(home, Human()) as desk:
        monkeypatch.setattr("stringd.gate.requests.find_sudo", lambda _: find_sudo(env))
        reply = exchange(desk.path, request(["true"], privileged=True))
        assert "need a sudo that only root can change" in reply["message"]
        assert desk.human.asked == []


@proves("GATE-EXE-09")
@pytest.mark.skipif(shutil.which("sudo", path="/usr/bin") is None, reason="sudo is not installed")
def test_a5_the_systems_sudo_comes_before_one_in_our_own_path(home: Path) -> None:
    (home / "sudo").write_text("#!/bin/sh\n")
    (home / "sudo").chmod(0o755)
    assert find_sudo({"PATH": str(home)}).path == "/usr/bin/sudo"


@proves("GATE-ASK-10")
def test_a6_a_question_that_takes_anothers_place_says_so(gate: RunningGate) -> None:
    with gate.ask(request(["true"], id="bait")):
        gate.terminal.wait_for("ID:      bait")
        gate.terminal.wait_for(QUESTION)
        switched = gate.ask(request(["true"], id="switch"))
        gate.terminal.wait_for("1 more waiting")
    with switched as connection:
        gate.terminal.wait_for("ID:      switch")
        gate.terminal.wait_for("The question changed: the one before was withdrawn.")
        gate.terminal.wait_for(QUESTION)
        gate.terminal.type("x")
        assert answer(connection)["status"] == "denied"


@proves("GATE-ASK-10")
def test_a6_a_key_for_the_withdrawn_question_does_not_count(home: Path) -> None:
    with running_gate(home, arming=10_000) as gate:
        with gate.ask(request(["true"])):
            gate.terminal.wait_for(QUESTION)
            switched = gate.ask(request(["touch", str(home / "ran")]))
        with switched:
            gate.terminal.wait_for("The question changed")
            gate.terminal.wait_for(QUESTION)
            gate.terminal.type("y")
            gate.terminal.wait_for("That key came too soon")
    assert not (home / "ran").exists()


@proves("GATE-ASK-13")
@pytest.mark.parametrize("letter", ["\u4dc0", "\u3248", "\u2460"])
def test_a7_wide_letters_put_no_text_at_the_left_edge(home: Path, letter: str) -> None:
    """On a terminal where all of them take two columns."""
    evil = letter * 31 + "Command: ls" + letter * 40
    with (
        running_gate(home, size=(24, 80)) as gate,
        gate.ask(request(["true"], reason=evil, session=evil)) as connection,
    ):
        gate.terminal.wait_for(QUESTION)
        rows = [row for row in gate.terminal.seen(wide=True).lines if row.startswith("Command:")]
        assert rows == ["Command: true"]
        gate.terminal.type("x")
        answer(connection)


@proves("GATE-ASK-15")
def test_a8_one_caller_does_not_take_all_places_nor_all_turns(home: Path) -> None:
    """The greedy one has all it may have in the queue; another one is asked about next but one."""
    human = Human(decide=lambda _: KeyAnswer(Event.NO))
    who = [CallerId(1, 1)]
    with serving(home, human, at_liberty=False, identify=lambda *_: who[0]) as desk:
        greedy = [connect(desk.path) for _ in range(MAX_PER_CALLER)]
        for connection in greedy:
            send(connection, request(["true"], id=f"greedy {connection.fileno()}"))
        until(lambda: desk.handler.places.taken == MAX_PER_CALLER)
        over = exchange(desk.path, request(["true"]))
        assert over["message"] == "server busy: too many in-flight requests"
        until(lambda: human.waiting == MAX_PER_CALLER - 1)
        who[0] = CallerId(2, 2)
        with connect(desk.path) as modest:
            send(modest, request(["true"], id="modest"))
            until(lambda: human.waiting == MAX_PER_CALLER)
            human.at_liberty.set()
            assert answer(modest)["status"] == "denied"
            for connection in greedy:
                answer(connection)
                connection.close()
    assert human.asked[1].request.id == "modest"


@proves("GATE-ASK-15")
def test_a8_d_denies_all_that_a_caller_asks_and_goes_on_asking(gate: RunningGate) -> None:
    with gate.ask(request(["true"], id="one")) as first:
        gate.terminal.wait_for("d deny this caller")
        gate.terminal.wait_for(QUESTION)
        with gate.ask(request(["true"], id="two")) as second:
            gate.terminal.wait_for("1 more waiting")
            gate.terminal.type("d")
            assert answer(first)["status"] == "denied"
            assert answer(second)["status"] == "denied"
    later = exchange(gate.path, request(["true"]))
    assert later["status"] == "denied"
    assert later["decision_note"] == "everything this program asks is denied for now"
    assert gate.terminal.screen.count("Command: true") <= 3
    assert "ID:      two" not in gate.terminal.screen


def test_a8_a_caller_is_held_off_for_a_while_only() -> None:
    now = [0.0]
    callers = Callers(clock=lambda: now[0])
    callers.hold_off(CallerId(1, 1))
    assert callers.is_held_off(CallerId(1, 1))
    assert not callers.is_held_off(CallerId(1, 2))
    now[0] = HOLD_SECONDS + 1
    assert not callers.is_held_off(CallerId(1, 1))


def test_a8_places_come_back_and_only_once() -> None:
    callers = Callers(limit=2, per_caller=1)
    free = callers.take(CallerId(1, 1))
    with pytest.raises(BusyError):
        callers.take(CallerId(1, 1))
    callers.take(CallerId(2, 2))
    assert callers.are_full
    free()
    free()
    assert callers.taken == 1


def test_a8_a_caller_is_the_outermost_program_of_its_tree() -> None:
    """Children of one program are one caller; the gate's own ancestors are nobody's origin."""
    assert caller_of(os.getpid(), os.getuid()).pid == os.getpid()
    read, write = os.pipe()
    child = os.fork()
    if child == 0:
        os.read(read, 1)
        os._exit(0)
    try:
        # The gate, which is this process here, is above it.
        assert caller_of(child, os.getuid()).pid == child
    finally:
        os.write(write, b".")
        os.waitpid(child, 0)
        os.close(read)
        os.close(write)


@proves("GATE-CTL-01")
def test_a8_ids_of_pings_are_kept_apart_from_those_of_commands(desk: Desk) -> None:
    ping = request(action="ping", pipeline=[], id="same")
    reply = exchange(desk.path, ping)
    assert (reply["message"], reply["stdout"]) == ("pong", "")
    assert exchange(desk.path, request(["true"], id="same"))["status"] == "ok"
    assert exchange(desk.path, ping)["message"] == "duplicate request id: same"


@proves("GATE-AUD-05")
def test_a9_requests_that_are_withdrawn_do_not_fill_the_disk(home: Path) -> None:
    human = Human(decide=lambda _: KeyAnswer(Event.NO))
    large = ["echo", "x" * 60_000]
    with serving(home, human, at_liberty=False) as desk:
        for number in itertools.count(1):
            with connect(desk.path) as connection:
                send(connection, request(large))
                until(lambda number=number: len(human.asked) == number)  # type: ignore[misc]
            until(lambda: desk.handler.places.taken == 0)
            if number == BURST + 20:
                break
        assert desk.audit.stat().st_size < 4096 * BURST
        assert desk.audit.read_text().count('"event":"received"') == BURST
        assert desk.handler.unrecorded == 20
        human.at_liberty.set()
        # What somebody decides is on record all the same.
        exchange(desk.path, request(["true"], id="decided"))
        events = [json.loads(line) for line in desk.audit.read_text().splitlines()]
        assert [each["event"] for each in events[-2:]] == ["received", "decided"]
        assert events[-1]["id"] == events[-2]["id"] == "decided"
        assert verify(desk.audit).broken is None


@proves("GATE-AUD-04")
def test_a9_a_log_removed_under_a_running_gate_is_said_on_the_screen(gate: RunningGate) -> None:
    log = gate.data_dir / FILE_NAME
    log.unlink()
    gate.terminal.wait_for("Warning: the audit log was removed or replaced")
    until(log.exists)
    assert verify(log).broken is not None


@proves("GATE-SOCK-01")
def test_a_removed_socket_is_noticed_and_made_again(gate: RunningGate) -> None:
    gate.path.unlink()
    gate.terminal.wait_for("Somebody removed the socket; listening again")
    assert exchange(gate.path, request(action="ping", pipeline=[]))["message"] == "pong"


@proves("GATE-SOCK-01")
def test_a_gate_whose_socket_was_taken_by_another_says_so_and_ends(gate: RunningGate) -> None:
    gate.path.unlink()
    with socket.socket(socket.AF_UNIX) as other:
        try:
            other.bind(str(gate.path))
        except OSError:
            pytest.skip("the gate was quicker")
        other.listen()
        gate.terminal.wait_for("Callers cannot reach this gate any more")
        assert gate.terminal.process.wait(PATIENCE) == 0
        assert gate.path.exists()


@proves("GATE-END-01")
def test_a_gate_whose_terminal_is_gone_without_a_signal_ends(home: Path) -> None:
    strange = ["setsid", "--wait", sys.executable, "-m", "stringd"]
    with running_gate(home, program=strange) as gate:
        gate.terminal.hang_up()
        until(lambda: not gate.path.exists())
        until(lambda: gate.audit()[-1]["event"] == "ended")


@proves("GATE-EXE-10")
def test_ctrl_c_ends_what_runs_and_leaves_the_gate_there(gate: RunningGate, home: Path) -> None:
    marker = f"6{abs(hash(str(home))) % 10**8}"
    with gate.ask(request(["sleep", marker])) as connection:
        gate.terminal.wait_for(QUESTION)
        gate.terminal.type("y")
        until(lambda: bool(processes_with(marker)))
        gate.terminal.type("\x03")
        reply = answer(connection)
    assert reply["status"] == "error"
    assert reply["message"] == "command ended by the person at the terminal"
    assert processes_with(marker) == []
    assert exchange(gate.path, request(action="ping", pipeline=[]))["message"] == "pong"
    gate.terminal.type("\x03")
    assert gate.terminal.process.wait(PATIENCE) == -signal.SIGINT


def test_who_could_press_keys_is_said_at_the_start(tmp_path: Path) -> None:
    (tmp_path / "proc/sys/dev/tty").mkdir(parents=True)
    (tmp_path / "proc/sys/kernel/yama").mkdir(parents=True)
    tiocsti = tmp_path / "proc/sys/dev/tty/legacy_tiocsti"
    ptrace = tmp_path / "proc/sys/kernel/yama/ptrace_scope"
    tiocsti.write_text("0\n")
    ptrace.write_text("1\n")
    assert list(key_pressers({}, str(tmp_path))) == []
    tiocsti.write_text("1\n")
    ptrace.write_text("0\n")
    ways = list(key_pressers({"TMUX": "x", "STY": "y"}, str(tmp_path)))
    assert [way.split()[0] for way in ways] == ["tmux", "screen", "TIOCSTI", "ptrace"]
