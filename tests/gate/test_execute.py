import os
import resource
import signal
import socket
import subprocess
import sys
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager, nullcontext, suppress
from pathlib import Path

import pytest

from stringd.gate.decide import Approval, Event, Permit
from stringd.gate.errors import StoppingError, TroubleError
from stringd.gate.execute import Executor
from stringd.gate.pipeline import Outcome
from stringd.gate.processes import family
from stringd.gate.program import ShownProgram
from stringd.gate.resolve import hold, release
from stringd.gate.watch import Signal, Watch
from stringd.wire.gate import MAX_OUTPUT_BYTES
from tests.gate.test_validate import valid, validated
from tests.requirements import proves

OWN_ENV = {"PATH": os.environ["PATH"], "SECRET_KEY": "hunter2"}


@pytest.fixture
def stopping() -> Iterator[Signal]:
    stopping = Signal()
    yield stopping
    stopping.close()


@pytest.fixture
def watch(stopping: Signal) -> Iterator[Watch]:
    ours, theirs = socket.socketpair()
    with ours, theirs:
        yield Watch(ours, stopping)


def permit(*stages: tuple[str, ...], sudo: Path | None = None, **fields: object) -> Permit:
    request = validated(valid(pipeline=stages, privileged=sudo is not None, **fields))
    approval = Approval(request)
    by = None if sudo is None else ShownProgram("sudo", str(sudo))
    approval.show(tuple(hold(stage[0]) for stage in stages), by)
    approval.advance(Event.YES)
    return approval.spend()


def run(watch: Watch, *stages: tuple[str, ...], limit: int = 30, **fields: object) -> Outcome:
    executor = Executor(limit, OWN_ENV)
    permitted = permit(*stages, sudo=None, **fields)
    try:
        return executor.run(permitted, watch, lambda _: nullcontext())
    finally:
        for program in permitted.programs:
            release(program)


def python(code: str, *arguments: str) -> tuple[str, ...]:
    # A newline in a word is refused, so longer programs travel as one line.
    return (sys.executable, "-c", f"exec(bytes.fromhex('{code.encode().hex()}'))", *arguments)


pytestmark = pytest.mark.usefixtures("home")


@proves("GATE-RES-01")
def test_output_and_codes_come_back(watch: Watch) -> None:
    outcome = run(watch, python("import sys; print('out'); print('err', file=sys.stderr); exit(3)"))
    assert outcome.codes == (3,)
    assert bytes(outcome.stdout.blob()) == b"out\n"
    assert bytes(outcome.stages()[0].stderr) == b"err\n"
    assert not outcome.stdout.truncated


def test_words_arrive_as_they_were_sent(watch: Watch) -> None:
    words = ["", "a b", "$HOME", "`id`", "é", "a\tb", "*", "'\"", ";|&"]
    code = "import sys; sys.stdout.write('\\0'.join(sys.argv[1:]))"
    outcome = run(watch, python(code, *words))
    assert bytes(outcome.stdout.blob()).decode().split("\0") == words


@proves("GATE-RES-01")
def test_a_pipeline_joins_its_stages(watch: Watch) -> None:
    outcome = run(watch, ("echo", "hi"), ("tr", "h", "H"), ("wc", "-c"))
    assert outcome.codes == (0, 0, 0)
    assert bytes(outcome.stdout.blob()).strip() == b"3"


@proves("GATE-EXE-02")
def test_a_signal_death_is_minus_one_and_the_signal_beside_it(watch: Watch) -> None:
    outcome = run(watch, ("yes",), ("head", "-n", "1"))
    first, last = outcome.stages()
    assert (first.exit_code, first.signal) == (-1, signal.SIGPIPE)
    assert (last.exit_code, last.signal) == (0, None)


@proves("GATE-EXE-01")
def test_a_child_starts_in_the_root_with_a_closed_hand(watch: Watch) -> None:
    code = """
import os, signal, sys
print(os.getcwd(), oct(os.umask(0)), sorted(map(int, os.listdir('/proc/self/fd')))[:-1])
print(os.getpgid(0) == os.getsid(0) == os.getpid(), os.readlink('/proc/self/fd/0'))
print(signal.pthread_sigmask(signal.SIG_BLOCK, []))
print(sorted(os.environ))
try:
    os.open('/dev/tty', os.O_RDWR)
except OSError as error:
    print('no terminal')
"""
    lines = bytes(run(watch, python(code)).stdout.blob()).decode().splitlines()
    assert lines[0] == "/ 0o77 [0, 1, 2]"
    assert lines[1] == "True /dev/null"
    assert lines[2] == "set()"
    assert "SECRET_KEY" not in lines[3]
    assert lines[4] == "no terminal"


def test_ignored_signals_of_ours_are_not_inherited(watch: Watch) -> None:
    before = signal.signal(signal.SIGTTOU, signal.SIG_IGN)
    try:
        outcome = run(watch, ("grep", "SigIgn", "/proc/self/status"))
    finally:
        signal.signal(signal.SIGTTOU, before)
    ignored = int(bytes(outcome.stdout.blob()).split()[1], 16)
    assert not any(ignored >> (number - 1) & 1 for number in signal.valid_signals())


@pytest.mark.parametrize(
    ("word", "text"),
    [
        ("nosuchprogram", "No such file or directory (os error 2)"),
        ("", "No such file or directory (os error 2)"),
        ("/etc/passwd", "Permission denied (os error 13)"),
    ],
)
def test_what_cannot_start_says_why(watch: Watch, word: str, text: str) -> None:
    with pytest.raises(TroubleError) as single:
        run(watch, (word,))
    assert str(single.value) == f"failed to execute command: {text}"
    with pytest.raises(TroubleError) as later:
        run(watch, ("sleep", "60"), (word,))
    assert str(later.value) == f"failed to spawn pipeline stage 1: {text}"


def open_descriptors() -> list[str]:
    return sorted(os.listdir("/proc/self/fd"))  # noqa: PTH208  (a Path would hold one open)


@pytest.mark.parametrize("spare", range(6))
def test_too_few_descriptors_fail_the_command_and_leave_none_open(watch: Watch, spare: int) -> None:
    wanted, before = permit(("true",)), open_descriptors()
    executor = Executor(30, OWN_ENV)
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    with ExitStack() as filled:
        lowest = max(map(int, before)) + 1
        filled.callback(resource.setrlimit, resource.RLIMIT_NOFILE, (soft, hard))
        resource.setrlimit(resource.RLIMIT_NOFILE, (lowest, hard))
        # Every number below the limit is taken but the spare ones.
        taken = []
        with suppress(OSError):
            while True:
                taken.append(os.dup(0))
        for descriptor in taken:
            filled.callback(os.close, descriptor)
        resource.setrlimit(resource.RLIMIT_NOFILE, (lowest + spare, hard))
        if spare < 5:
            with pytest.raises(
                TroubleError, match="failed to execute command: Too many open files"
            ):
                executor.run(wanted, watch, lambda _: nullcontext())
        else:
            assert executor.run(wanted, watch, lambda _: nullcontext()).codes == (0,)
    assert open_descriptors() == before


def test_a_broken_interpreter_line_fails_at_exec_and_ends_the_stages_before(
    watch: Watch, tmp_path: Path
) -> None:
    bad = tmp_path / "bad"
    bad.write_text("#!/nosuch/interpreter\n")
    bad.chmod(0o755)
    marker = str(tmp_path / "marker")
    with pytest.raises(TroubleError, match="failed to spawn pipeline stage 1: No such file"):
        run(watch, python("import sys, time; time.sleep(600)", marker), (str(bad),))
    assert not processes_with(marker)


@proves("GATE-EXE-03")
@pytest.mark.parametrize("stream", ["stdout", "stderr"])
@pytest.mark.parametrize(
    ("size", "truncated"), [(MAX_OUTPUT_BYTES, False), (MAX_OUTPUT_BYTES + 1, True)]
)
def test_a_stream_is_cut_only_beyond_the_cap(
    watch: Watch, stream: str, size: int, truncated: bool
) -> None:
    code = f"import sys; sys.{stream}.buffer.write(b'x' * {size})"
    outcome = run(watch, python(code))
    capture = outcome.stdout if stream == "stdout" else outcome.stderrs[0]
    assert capture.truncated is truncated
    assert capture.total == size
    assert len(bytes(capture.blob())) == MAX_OUTPUT_BYTES
    assert outcome.codes == (0,)


@proves("GATE-EXE-05")
def test_a_grandchild_holding_the_pipe_does_not_hold_the_answer(watch: Watch) -> None:
    code = """
import os, subprocess
child = subprocess.Popen(['sleep', '600'])
print(child.pid, flush=True)
"""
    outcome = run(watch, python(code))
    os.kill(int(bytes(outcome.stdout.blob())), signal.SIGKILL)
    assert outcome.stdout.is_open
    assert not outcome.stdout.truncated
    assert outcome.codes == (0,)


def processes_with(marker: str) -> list[str]:
    """Processes that have a word in their command line."""
    found = []
    for entry in Path("/proc").iterdir():
        try:
            words = (entry / "cmdline").read_bytes().split(b"\0")
        except OSError:
            continue
        if marker.encode() in words:
            found.append(entry.name)
    return found


@proves("GATE-EXE-04")
def test_an_overrun_is_killed_with_all_it_started(watch: Watch, tmp_path: Path) -> None:
    marker = str(tmp_path / "marker")
    code = """
import subprocess, sys, time
subprocess.Popen([sys.executable, '-c', 'import time; time.sleep(600)', sys.argv[1]])
subprocess.Popen([sys.executable, '-c', 'import time; time.sleep(600)', sys.argv[1]],
                 start_new_session=True)
time.sleep(600)
"""
    with pytest.raises(TroubleError) as overrun:
        run(watch, python(code, marker), limit=1)
    assert str(overrun.value) == "command timed out after 1s"
    assert processes_with(marker) == []
    with pytest.raises(TroubleError, match="pipeline timed out after 1s"):
        run(watch, ("sleep", "600"), ("cat",), limit=1)


def test_a_shutdown_ends_what_runs(watch: Watch, stopping: Signal, tmp_path: Path) -> None:
    marker = str(tmp_path / "marker")
    stopping.set()
    with pytest.raises(StoppingError):
        run(watch, python("import time; time.sleep(600)", marker))
    assert processes_with(marker) == []


@proves("GATE-EXE-06")
def test_a_file_swapped_after_approval_is_not_run(watch: Watch, tmp_path: Path) -> None:
    tool, ran = tmp_path / "tool", tmp_path / "ran"
    tool.write_text("#!/bin/sh\necho good\n")
    tool.chmod(0o755)
    approved = permit(("true",), (str(tool),))
    tool.write_text(f"#!/bin/sh\ntouch {ran}\n")
    with pytest.raises(TroubleError, match="command changed after approval"):
        Executor(30, OWN_ENV).run(approved, watch, lambda _: nullcontext())
    assert not ran.exists()


@pytest.fixture
def fake_sudo(tmp_path: Path) -> Path:
    """A sudo that prints what it was given and in which group it runs."""
    sudo = tmp_path / "sudo"
    sudo.write_text(f"#!{sys.executable}\nimport os, sys\nprint(sys.argv[1:], os.getpgrp())\n")
    sudo.chmod(0o755)
    return sudo


class Lender:
    """Remembers to which groups the terminal was lent."""

    def __init__(self) -> None:
        self.groups: list[int] = []

    def __call__(self, group: int) -> nullcontext[None]:
        self.groups.append(group)
        return nullcontext()


@proves("GATE-EXE-07")
def test_the_terminal_is_lent_to_privileged_commands_only(watch: Watch, fake_sudo: Path) -> None:
    lend = Lender()
    executor = Executor(30, OWN_ENV)
    executor.run(permit(("true",)), watch, lend)
    assert lend.groups == []
    outcome = executor.run(permit(("id", "-u"), sudo=fake_sudo, env={"TZ": "UTC"}), watch, lend)
    printed = bytes(outcome.stdout.blob()).decode()
    assert printed == f"['TZ=UTC', '--', '/usr/bin/id', '-u'] {lend.groups[0]}\n"


@pytest.mark.parametrize(("uid", "times"), [(0, 2), (1000, 3)])
@proves("GATE-EXE-07")
def test_sudo_may_ask_before_a_pipeline_starts_unless_we_are_root(
    watch: Watch, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, uid: int, times: int
) -> None:
    calls = tmp_path / "calls"
    (tmp_path / "sudo").write_text(f'#!/bin/sh\necho "$*" >> {calls}\n')
    (tmp_path / "sudo").chmod(0o755)
    monkeypatch.setattr("stringd.gate.pipeline.os.geteuid", lambda: uid)
    executor = Executor(30, OWN_ENV)
    executor.run(permit(("id", "-u"), ("cat",), sudo=tmp_path / "sudo"), watch, Lender())
    words = calls.read_text().splitlines()
    assert len(words) == times
    assert ("-v" in words) == (uid != 0)


@proves("GATE-EXE-07")
def test_the_terminal_is_lent_before_sudo_starts(watch: Watch, fake_sudo: Path) -> None:
    """One that starts in the background may find out before it is moved, and not ask."""
    alone: list[bool] = []

    @contextmanager
    def lend(group: int) -> Iterator[None]:
        alone.append(all(pid == group for pid in family([group])))
        yield

    Executor(30, OWN_ENV).run(permit(("id",), sudo=fake_sudo), watch, lend)
    assert alone == [True]


def test_a_sudo_that_does_not_authenticate_runs_nothing(
    watch: Watch, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "sudo").write_text(f'#!/bin/sh\n[ "$1" = -v ] && exit 1\ntouch {tmp_path}/ran\n')
    (tmp_path / "sudo").chmod(0o755)
    monkeypatch.setattr("stringd.gate.pipeline.os.geteuid", lambda: 1000)
    executor = Executor(30, OWN_ENV)
    refusing = permit(("id",), ("cat",), sudo=tmp_path / "sudo")
    with pytest.raises(TroubleError, match="sudo did not authenticate"):
        executor.run(refusing, watch, Lender())
    assert not (tmp_path / "ran").exists()


def test_a_family_holds_all_descendants_and_never_its_relatives_by_our_own_group() -> None:
    child = subprocess.Popen(["sleep", "600"])
    try:
        assert family([child.pid]) == [child.pid]
        assert child.pid in family([os.getpid()])
    finally:
        child.kill()
        child.wait()
