"""What a daemon started is known, however it tries not to be."""

import json
import os
import socket
import subprocess
import sys
import textwrap
from collections.abc import Iterator
from contextlib import contextmanager

import pytest

from stringd.system.environment import MARK as SHELL_MARK
from stringd.system.lineage import is_descendant, outsider_holding, started_by_a_daemon

HOLD = "import socket, sys; s = socket.socket(fileno=int(sys.argv[1])); print(flush=True); input()"


class Daemon:
    """A process that marks what it starts, and answers questions about processes."""

    CODE = textwrap.dedent("""
        import json, os, subprocess, sys
        from stringd.system.lineage import (
            is_descendant, mark_descendants, outsider_holding, started_by_a_daemon)
        mark_descendants()
        started = []
        for line in sys.stdin:
            verb, *rest = json.loads(line)
            if verb == "start":
                child = subprocess.Popen(rest[0], stdout=subprocess.PIPE, stdin=subprocess.PIPE)
                started.append(child)
                answer = int(child.stdout.readline() or child.pid)
            elif verb == "is_descendant":
                answer = is_descendant(rest[0])
            elif verb == "outsider_holding":
                answer = outsider_holding(rest[0])
            print(json.dumps(answer), flush=True)
        os._exit(0)
    """)

    def __init__(self, *prefix: str) -> None:
        self.process = subprocess.Popen(
            [*prefix, sys.executable, "-c", self.CODE],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )

    def ask(self, *question: object) -> object:
        assert self.process.stdin is not None
        assert self.process.stdout is not None
        print(json.dumps(question), file=self.process.stdin, flush=True)
        return json.loads(self.process.stdout.readline())

    def start(self, code: str) -> int:
        """Start a Python program; it prints the process id to watch."""
        pid = self.ask("start", [sys.executable, "-I", "-S", "-c", textwrap.dedent(code)])
        assert isinstance(pid, int)
        return pid


@contextmanager
def running() -> Iterator[Daemon]:
    daemon = Daemon()
    try:
        yield daemon
    finally:
        daemon.process.kill()
        daemon.process.communicate()


@pytest.fixture
def daemon() -> Iterator[Daemon]:
    with running() as started:
        yield started


PLAIN = "import os, sys; print(os.getpid(), flush=True); sys.stdin.read()"
DETACHED = """\
import os, sys
if os.fork():
    sys.stdin.read()
    os._exit(0)
os.setsid()
if os.fork():
    os._exit(0)
while os.getppid() == os.getpgrp():
    pass
os.execve(sys.executable, [sys.executable, "-I", "-S", "-c",
    "import os, sys; print(os.getpid(), flush=True); sys.stdin.read()"], {})
"""


@pytest.mark.parametrize("code", [PLAIN, DETACHED], ids=["a child", "detached, without names"])
def test_what_a_daemon_started_is_its_descendant(daemon: Daemon, code: str) -> None:
    assert daemon.ask("is_descendant", daemon.start(code)) is True


def test_others_are_not(daemon: Daemon) -> None:
    assert daemon.ask("is_descendant", os.getpid()) is False
    assert daemon.ask("is_descendant", 1) is False


def test_a_process_that_is_gone_counts_as_a_descendant(daemon: Daemon) -> None:
    gone = subprocess.Popen(["true"])
    gone.wait()
    assert daemon.ask("is_descendant", gone.pid) is True


def test_what_outlived_a_killed_daemon_is_no_outsider_to_the_next() -> None:
    with running() as killed, running() as next_one:
        orphan = killed.start(DETACHED)
        killed.process.kill()
        killed.process.wait()
        assert next_one.ask("is_descendant", orphan) is True


def test_a_daemon_inside_another_tells_its_children_from_its_neighbours(daemon: Daemon) -> None:
    inner = json.dumps([sys.executable, "-c", Daemon.CODE])
    neighbour = daemon.start(PLAIN)
    code = f"""
        import json, os, subprocess, sys
        inner = subprocess.Popen({inner}, stdin=-1, stdout=-1, text=True)
        def ask(*question):
            print(json.dumps(question), file=inner.stdin, flush=True)
            return json.loads(inner.stdout.readline())
        child = ask("start", [sys.executable, "-c", {PLAIN!r}])
        seen = [ask("is_descendant", pid) for pid in ({neighbour}, os.getpid(), child)]
        print(int("".join(str(int(each)) for each in seen), 2), flush=True)
        sys.stdin.read()
    """
    assert daemon.start(code) == 0b001


def test_a_process_knows_that_a_daemon_started_it(daemon: Daemon) -> None:
    code = f"""
        import sys
        sys.path[:0] = {sys.path!r}
        from stringd.system.lineage import started_by_a_daemon
        print(int(started_by_a_daemon()), flush=True)
    """
    assert daemon.start(code) == 1


@pytest.mark.skipif(SHELL_MARK in os.environ, reason="these tests run inside a bash topic")
def test_a_process_that_no_daemon_started_knows_that_too() -> None:
    assert started_by_a_daemon() is False


def test_a_socket_is_an_outsiders_until_a_descendant_holds_it_too(daemon: Daemon) -> None:
    with socket.socket() as held:
        inode = os.fstat(held.fileno()).st_ino
        pid, name = outsider_holding(inode) or (0, "")
        assert pid == 0, "our own process counts as the daemon's"
        assert daemon.ask("outsider_holding", inode) == [os.getpid(), _name(os.getpid())]
        assert name == ""
        with subprocess.Popen(
            [sys.executable, "-I", "-S", "-c", HOLD, str(held.fileno())],
            pass_fds=[held.fileno()],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
        ) as beside:
            assert beside.stdout is not None
            beside.stdout.readline()
            found = daemon.ask("outsider_holding", inode)
            assert isinstance(found, list)
            assert found[0] in (os.getpid(), beside.pid)
            beside.communicate(b"\n")


def test_a_socket_in_the_hands_of_a_descendant_is_nobody_elses(daemon: Daemon) -> None:
    code = """
        import os, socket, sys
        held = socket.socket()
        print(os.fstat(held.fileno()).st_ino, flush=True)
        sys.stdin.read()
    """
    assert daemon.ask("outsider_holding", daemon.start(code)) is None


def test_a_socket_nobody_holds_has_no_holder(daemon: Daemon) -> None:
    assert daemon.ask("outsider_holding", 2**32 - 1) is None


def test_our_own_process_is_its_own_descendant() -> None:
    assert is_descendant(os.getpid()) is True


def _name(pid: int) -> str:
    with open(f"/proc/{pid}/comm", encoding="utf-8") as file:
        return file.read().strip()
