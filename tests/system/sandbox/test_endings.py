"""How a sandbox ends: with the command's own status, and with nothing left behind."""

import json
import os
import pty
import select
import signal
import socket
import subprocess
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from stringd.system.sandbox import Bubblewrap, ask_to_end, processes_inside
from tests.support.daemon import WAIT_SECONDS
from tests.system.sandbox.cage import Cage, limits

# Each job says when it is up; it would hold the output open for ten minutes.
JOB = "touch up; exec sleep 600"
UP = "until [ -e up ]; do sleep 0.01; done"
DETACH = {
    "in the background": "sh job &",
    "without a terminal": "nohup sh job 2>&1 &",
    "in a session of its own": "setsid sh job &",
    "twice forked in a session of its own": "(setsid nohup sh -c 'sh job & sleep 600' &) &",
    "deaf to signals": "(trap '' TERM HUP INT; setsid sh job) &",
    "stopped": f"sh job & {UP}; kill -STOP $!",
}
# A parent that starts what it is told, says so, and waits to be killed.
PARENT = """
import json, subprocess, sys
argv, environment, folder = json.loads(sys.argv[1])
child = subprocess.Popen(argv, env=environment, cwd=folder)
child.wait()
"""


@pytest.mark.parametrize("code", [0, 1, 7, 126, 255])
def test_the_exit_code_of_the_command_comes_through(caged: Cage, code: int) -> None:
    assert caged.run(f"exit {code}").code == code


@pytest.mark.parametrize("name", ["TERM", "KILL", "SEGV", "INT"])
def test_a_signal_that_ends_the_command_comes_through(caged: Cage, name: str) -> None:
    assert caged.run(f"kill -{name} $$").code == 128 + signal.Signals[f"SIG{name}"]


def test_a_program_that_does_not_exist_fails(caged: Cage) -> None:
    process = caged.start(caged.enclosed(["/no/such/program"]), stderr=subprocess.PIPE)
    _, said = process.communicate(timeout=WAIT_SECONDS)
    assert process.returncode != 0
    assert b"/no/such/program" in said


def test_input_and_output_are_the_callers(caged: Cage) -> None:
    process = caged.start(caged.enclosed(["/bin/cat"]), stdin=-1, stdout=-1)
    output, _ = process.communicate(b"\0all of it\n" * 100_000, timeout=WAIT_SECONDS)
    assert output == b"\0all of it\n" * 100_000
    assert process.returncode == 0


@pytest.mark.parametrize("script", DETACH.values(), ids=DETACH)
def test_nothing_is_left_when_the_command_ends(caged: Cage, script: str) -> None:
    # What is left holds the pipe open, so that the end of the output is the end of all of it.
    assert caged.run(_detaching(caged, script, "exit 3")).code == 3


@pytest.mark.parametrize("number", [signal.SIGKILL, signal.SIGTERM])
@pytest.mark.parametrize("script", DETACH.values(), ids=DETACH)
def test_nothing_is_left_when_the_started_process_is_killed(
    caged: Cage, script: str, number: signal.Signals
) -> None:
    enclosed = caged.enclosed(
        ["/bin/bash", "-c", _detaching(caged, script, "echo ready; sleep 600")]
    )
    process = caged.start(enclosed, stdout=subprocess.PIPE, start_new_session=True)
    assert process.stdout is not None
    assert process.stdout.readline() == b"ready\n"
    os.killpg(process.pid, number)
    process.wait(WAIT_SECONDS)
    _until_closed(process.stdout.fileno())
    process.stdout.close()


@pytest.mark.parametrize("script", DETACH.values(), ids=DETACH)
def test_nothing_is_left_when_the_parent_is_killed(caged: Cage, script: str) -> None:
    enclosed = caged.enclosed(
        ["/bin/bash", "-c", _detaching(caged, script, "echo ready; sleep 600")]
    )
    told = json.dumps([enclosed.argv, enclosed.environment, str(caged.workspace)])
    parent = subprocess.Popen(
        [caged.python, "-I", "-c", PARENT, told], stdout=subprocess.PIPE, cwd="/", **caged.user
    )
    assert parent.stdout is not None
    assert parent.stdout.readline() == b"ready\n"
    parent.kill()
    parent.wait(WAIT_SECONDS)
    _until_closed(parent.stdout.fileno())
    parent.stdout.close()


def _detaching(cage: Cage, script: str, then: str) -> str:
    """A script that detaches a job and, when that is up, does something more."""
    job = cage.workspace / "job"
    job.write_text(JOB)
    job.chmod(0o644)
    return f"{script}\n {UP}; {then}"


def _until_closed(descriptor: int) -> None:
    """Wait for the end of a pipe: the moment when nobody holds its other end."""
    deadline = time.monotonic() + WAIT_SECONDS
    while select.select([descriptor], [], [], deadline - time.monotonic())[0]:
        if not os.read(descriptor, 4096):
            return
    pytest.fail("something inside is still alive")


def test_what_runs_inside_can_be_asked_to_end_by_itself(caged: Cage) -> None:
    script = "trap 'echo cleaned; exit 5' TERM; echo ready; while :; do sleep 0.1; done"
    enclosed = caged.enclosed(["/bin/bash", "-c", script])
    process = caged.start(enclosed, stdout=subprocess.PIPE)
    assert process.stdout is not None
    assert process.stdout.readline() == b"ready\n"
    assert processes_inside(process.pid)
    assert ask_to_end(process.pid) >= 1
    assert process.communicate(timeout=WAIT_SECONDS)[0] == b"cleaned\n"
    assert process.returncode == 5


def test_temporary_files_are_gone_after_a_kill(caged: Cage) -> None:
    script = 'path=$(mktemp); echo "$path"; sleep 600'
    process = caged.start(caged.enclosed(["/bin/bash", "-c", script]), stdout=subprocess.PIPE)
    assert process.stdout is not None
    path = Path(process.stdout.readline().decode().strip())
    process.kill()
    process.wait(WAIT_SECONDS)
    _until_closed(process.stdout.fileno())
    process.stdout.close()
    _until(lambda: not path.exists())


def _until(condition: Callable[[], bool]) -> None:
    deadline = time.monotonic() + WAIT_SECONDS
    while not condition():
        assert time.monotonic() < deadline
        time.sleep(0.01)


def test_a_terminal_of_its_own_has_job_control(caged: Cage) -> None:
    ours, theirs = pty.openpty()
    command = ["/bin/bash", "--norc", "--noprofile", "-i"]
    enclosed = caged.enclosed(command, caged.spec(terminal=True), PS1="$ ", TERM="dumb")
    takes_terminal = (
        "import fcntl, os, sys, termios; os.setsid(); fcntl.ioctl(0, termios.TIOCSCTTY)"
    )
    start = f"{takes_terminal}; os.execv(sys.argv[1], sys.argv[1:])"
    argv = [caged.python, "-I", "-c", start, *enclosed.argv]
    process = subprocess.Popen(
        argv,
        env=enclosed.environment,
        stdin=theirs,
        stdout=theirs,
        stderr=theirs,
        cwd=caged.workspace,
        **caged.user,
    )
    os.close(theirs)
    try:
        seen = _type(ours, "[ -t 0 ] && echo on-a-$((1))-terminal\n", b"on-a-1-terminal\r\n")
        assert b"no job control" not in seen
        _type(ours, "sh -c 'echo waiting-$((2)); exec sleep 600'; true\n", b"waiting-2\r\n")
        os.write(ours, b"\x03")
        _type(ours, "echo after-$((3))\n", b"after-3\r\n")
        os.write(ours, b"exit 4\n")
        assert process.wait(WAIT_SECONDS) == 4
    finally:
        process.kill()
        process.wait()
        os.close(ours)


def _type(terminal: int, text: str, expected: bytes) -> bytes:
    os.write(terminal, text.encode())
    return _read_until(terminal, expected)


def _read_until(terminal: int, expected: bytes) -> bytes:
    seen, deadline = b"", time.monotonic() + WAIT_SECONDS
    while expected not in seen:
        ready = select.select([terminal], [], [], max(0.0, deadline - time.monotonic()))[0]
        assert ready, seen
        seen += os.read(terminal, 4096)
    return seen


FORKS = """
import os, signal
made = []
try:
    while len(made) < 200:
        child = os.fork()
        if not child:
            signal.pause()
        made.append(child)
except BlockingIOError:
    pass
print(len(made))
"""


def test_processes_are_limited(caged: Cage) -> None:
    if not isinstance(caged.walls, Bubblewrap):
        pytest.skip("Landlock's limit counts the whole account: another test reads it")
    if os.geteuid() == 0 and caged.kind.account == "self":
        pytest.skip("the kernel exempts root")
    (caged.workspace / "forks.py").write_text(FORKS)
    done = caged.run('"$PY" -I forks.py', caged.spec(limits=limits(processes=50)))
    assert 10 < int(done.output) < 50


def test_limits_of_a_process_are_set(caged: Cage) -> None:
    given = limits(processes=50, memory=1 << 30, cpu_seconds=30)
    done = caged.run("ulimit -u; ulimit -d; ulimit -t", caged.spec(limits=given))
    processes, memory, seconds = map(int, done.output.split())
    # Landlock's number includes every thread of the machine, for the kernel counts these too.
    assert processes == 50 if isinstance(caged.walls, Bubblewrap) else 50 <= processes < 100_000
    assert memory == 1 << 20
    assert seconds == 30


def test_memory_is_limited(caged: Cage) -> None:
    script = '"$PY" -I -c "bytearray(200 << 20)"'
    assert caged.run(script, caged.spec(limits=limits(memory=100 << 20))).code != 0
    assert caged.run(script, caged.spec(limits=limits())).code == 0


def test_the_working_directory_is_kept(caged: Cage) -> None:
    enclosed = caged.enclosed(["/bin/pwd"])
    process = caged.start(enclosed, stdout=subprocess.PIPE, cwd=caged.workspace / "sub")
    assert process.communicate(timeout=WAIT_SECONDS)[0].decode() == f"{caged.workspace}/sub\n"


def test_no_descriptor_but_the_three_reaches_the_command(caged: Cage) -> None:
    listed = caged.run("ls /proc/self/fd | tr '\\n' ' '").output.split()
    # The fourth is the listing's own.
    assert listed == ["0", "1", "2", "3"]


@contextmanager
def _keeping(cage: Cage, script: str) -> Iterator[tuple["subprocess.Popen[bytes]", socket.socket]]:
    """A script in a sandbox that keeps jobs, and the socket on which it says what it left."""
    ours, theirs = socket.socketpair()
    with ours, theirs:
        ours.settimeout(WAIT_SECONDS)
        enclosed = cage.enclosed(["/bin/bash", "-c", script], cage.spec(keeps_jobs=True))
        process = cage.start(enclosed, stdin=theirs, stdout=subprocess.PIPE, start_new_session=True)
        theirs.close()
        assert process.stdout is not None
        try:
            yield process, ours
        finally:
            process.kill()
            process.wait(WAIT_SECONDS)
            process.stdout.close()


@pytest.mark.parametrize("script", ["exit 7", "cat; exit 7", "sleep 600 & exit 7"])
def test_a_command_that_detaches_nothing_ends_its_sandbox(caged: Cage, script: str) -> None:
    with _keeping(caged, script) as (process, report):
        assert report.recv(16) == b""
        assert process.wait(WAIT_SECONDS) == 7


def test_a_detached_job_is_reported_and_lives_until_its_own_end(caged: Cage) -> None:
    script = "mkfifo gate; setsid sh -c 'touch up; read line <gate; echo late' & "
    with _keeping(caged, f"{script}{UP}; exit 7") as (process, report):
        assert report.recv(16) == b"7\n"
        assert processes_inside(process.pid)
        (caged.workspace / "gate").write_text("go\n")
        assert process.stdout is not None
        assert process.stdout.readline() == b"late\n"
        assert process.wait(WAIT_SECONDS) == 7


@pytest.mark.parametrize("end", ["the socket is closed", "the started process is killed"])
@pytest.mark.parametrize("job", ["setsid sh job &", "(trap '' TERM HUP INT; setsid sh job) &"])
def test_a_detached_job_ends_when(caged: Cage, job: str, end: str) -> None:
    with _keeping(caged, _detaching(caged, job, "exit 7")) as (process, report):
        assert report.recv(16) == b"7\n"
        report.close() if end == "the socket is closed" else process.kill()
        assert process.stdout is not None
        _until_closed(process.stdout.fileno())


def test_a_command_among_jobs_can_be_asked_to_end_by_itself(caged: Cage) -> None:
    script = "trap 'echo cleaned; exit 5' TERM; echo ready; while :; do sleep 0.1; done"
    with _keeping(caged, script) as (process, _):
        assert process.stdout is not None
        assert process.stdout.readline() == b"ready\n"
        ask_to_end(process.pid)
        assert process.stdout.readline() == b"cleaned\n"
        assert process.wait(WAIT_SECONDS) == 5
