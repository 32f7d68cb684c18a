"""Gates to test against: the program on a real terminal, or a server with a scripted human."""

import fcntl
import json
import os
import pty
import select
import signal
import socket
import struct
import subprocess
import sys
import termios
import threading
import time
import uuid
from collections.abc import Callable, Hashable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager, nullcontext
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from stringd.gate.audit import FILE_NAME, AuditLog
from stringd.gate.callers import CallerId, caller_of
from stringd.gate.decide import Event, KeyAnswer
from stringd.gate.display import Line
from stringd.gate.execute import Executor
from stringd.gate.listener import Listener
from stringd.gate.machines import Machines
from stringd.gate.program import ShownProgram
from stringd.gate.question import Question
from stringd.gate.requests import RequestHandler
from stringd.gate.running import RunningCommands
from stringd.gate.server import Server
from stringd.gate.turns import Turns
from stringd.gate.watch import Watch
from tests.gate.screen import Screen
from tests.support.daemon import WAIT_SECONDS

PATIENCE = float(os.environ.get("STRINGD_TEST_PATIENCE", WAIT_SECONDS))
QUESTION = "timeout, default=N)"


def now() -> str:
    return datetime.now(UTC).strftime("%Y-%m-%dT%H:%M:%SZ")


def request(*stages: Sequence[str], **fields: object) -> dict[str, Any]:
    """A request that passes every check, changed by `fields`; a field set to None is left out."""
    whole: dict[str, Any] = {
        "id": str(uuid.uuid4()),
        "time": now(),
        "pipeline": [list(stage) for stage in stages] or [["true"]],
        "privileged": False,
    }
    whole |= fields
    return {name: value for name, value in whole.items() if value is not None}


def connect(path: Path) -> socket.socket:
    connection = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    connection.settimeout(PATIENCE)
    connection.connect(str(path))
    return connection


def read_line(connection: socket.socket) -> bytes:
    data = bytearray()
    while not data.endswith(b"\n"):
        piece = connection.recv(1 << 20)
        if not piece:
            break
        data += piece
    return bytes(data)


def send(connection: socket.socket, message: dict[str, Any]) -> None:
    connection.sendall(json.dumps(message).encode() + b"\n")


def answer(connection: socket.socket) -> dict[str, Any]:
    reply: dict[str, Any] = json.loads(read_line(connection))
    return reply


def exchange(path: Path, message: dict[str, Any] | bytes) -> dict[str, Any]:
    """One request over the raw socket, and its answer."""
    with connect(path) as connection:
        if isinstance(message, bytes):
            connection.sendall(message)
        else:
            send(connection, message)
        return answer(connection)


def no_more_threads(_: threading.Thread) -> None:
    """`Thread.start` on a machine that has given all its threads away."""
    raise RuntimeError("can't start new thread")


class Terminal:
    """The program on the other side of a pseudo-terminal, and the person in front of it."""

    def __init__(self, argv: Sequence[str], env: dict[str, str], size: tuple[int, int]) -> None:
        self.master, slave = pty.openpty()
        self._size = size
        fcntl.ioctl(slave, termios.TIOCSWINSZ, struct.pack("HHHH", *size, 0, 0))
        self.settings = termios.tcgetattr(slave)
        self.slave = slave
        self._ends: tuple[int, ...] = (self.master, slave)
        self.process = subprocess.Popen(
            [sys.executable, "-c", _OWN_THE_TERMINAL, *argv],
            stdin=slave,
            stdout=slave,
            stderr=slave,
            env=env,
            start_new_session=True,
        )
        self.screen = ""
        self._read_to = 0

    def type(self, keys: str) -> None:
        os.write(self.master, keys.encode())

    def wait_for(self, text: str) -> str:
        """Read until the text appears after what was waited for last; what was passed over."""
        deadline = time.monotonic() + PATIENCE
        while True:
            at = self.screen.find(text, self._read_to)
            if at >= 0:
                start, self._read_to = self._read_to, at + len(text)
                return self.screen[start : self._read_to]
            left = deadline - time.monotonic()
            if left <= 0 or not select.select([self.master], [], [], left)[0]:
                raise AssertionError(f"{text!r} did not appear; the screen:\n{self.screen}")
            try:
                data = os.read(self.master, 65536)
            except OSError:
                raise AssertionError(f"the program ended; the screen:\n{self.screen}") from None
            self.screen += data.decode(errors="replace")

    def seen(self, *, wide: bool = False) -> Screen:
        """The screen as far as it was read."""
        return Screen(*self._size, wide=wide).feed(self.screen)

    def resize(self, rows: int, columns: int) -> None:
        """Change the window's size; the program is told by the system."""
        self._size = rows, columns
        fcntl.ioctl(self.slave, termios.TIOCSWINSZ, struct.pack("HHHH", rows, columns, 0, 0))

    def hang_up(self) -> None:
        """Close the window."""
        self._close_ends()

    def close(self) -> None:
        if self.process.poll() is None:
            self.process.send_signal(signal.SIGTERM)
            try:
                self.process.wait(PATIENCE)
            except subprocess.TimeoutExpired:
                self.process.kill()
                self.process.wait()
        self._close_ends()

    def _close_ends(self) -> None:
        for descriptor in self._ends:
            os.close(descriptor)
        self._ends = ()


# The session leader has to take the terminal itself before it becomes the program.
_OWN_THE_TERMINAL = """
import fcntl, os, sys, termios
fcntl.ioctl(0, termios.TIOCSCTTY, 0)
os.execvp(sys.argv[1], sys.argv[1:])
"""


@dataclass
class RunningGate:
    """`stringd gate` on a terminal of its own."""

    terminal: Terminal
    path: Path
    data_dir: Path

    def ask(self, message: dict[str, Any]) -> socket.socket:
        connection = connect(self.path)
        send(connection, message)
        return connection

    def audit(self) -> list[dict[str, Any]]:
        return [json.loads(line) for line in (self.data_dir / FILE_NAME).read_text().splitlines()]


@contextmanager
def running_gate(
    folder: Path,
    *options: str,
    arming: int = 0,
    size: tuple[int, int] = (30, 100),
    program: Sequence[str] = (sys.executable, "-m", "stringd"),
    env: Mapping[str, str] | None = None,
    at_start: Callable[[Terminal], None] = lambda _: None,
) -> Iterator[RunningGate]:
    """The real program; `program` may become another user first."""
    path = folder / "gate.sock"
    settings = {
        **os.environ,
        "TERM": "xterm",
        "STRINGD_DATA_DIR": str(folder / "data"),
        "NO_COLOR": "1",
        **(env or {}),
    }
    argv = [*program, "gate", "--socket", str(path), "--no-bell", "--arming", str(arming)]
    terminal = Terminal([*argv, *options], settings, size)
    try:
        at_start(terminal)
        terminal.wait_for("Questions appear here")
        yield RunningGate(terminal, path, folder / "data")
    finally:
        terminal.close()


@dataclass
class Human:
    """An approver without a terminal: answers as told, and remembers what it was asked."""

    decide: Callable[[Question], KeyAnswer] = lambda _: KeyAnswer(Event.YES, by="test")
    asked: list[Question] = field(default_factory=list)
    told: list[Line] = field(default_factory=list)
    # Questions wait here until the test lets them be answered.
    at_liberty: threading.Event = field(default_factory=threading.Event)
    _turns: Turns = field(default_factory=Turns)

    @property
    def waiting(self) -> int:
        return self._turns.waiting

    def turn(self, watch: Watch, caller: Hashable = None) -> AbstractContextManager[None]:
        return self._turns.take(watch, caller)

    def ask(self, question: Question, watch: Watch) -> KeyAnswer:
        self.asked.append(question)
        while not self.at_liberty.wait(0.01):
            watch.check()
        return self.decide(question)

    def lend(self, group: int) -> AbstractContextManager[None]:
        return nullcontext()

    def announce(self, lines: Sequence[Line]) -> None:
        self.told += lines


@dataclass
class Desk:
    """A gate server in this process, with its human."""

    path: Path
    human: Human
    server: Server
    handler: RequestHandler
    audit: Path
    log: list[str]


@contextmanager
def serving(
    folder: Path,
    human: Human,
    *,
    at_liberty: bool = True,
    exec_timeout: int = 30,
    sudo: ShownProgram | None = None,
    identify: Callable[[int, int], CallerId] = caller_of,
    machines: Machines | None = None,
    running: RunningCommands | None = None,
) -> Iterator[Desk]:
    """Serve on a thread until the block ends."""
    if at_liberty:
        human.at_liberty.set()
    path = folder / "gate.sock"
    listener = Listener(path)
    log: list[str] = []
    servers: list[Server] = []
    audit = AuditLog(folder / FILE_NAME)
    handler = RequestHandler(
        human,
        Executor(exec_timeout, dict(os.environ)),
        audit,
        max_future=5,
        stop=lambda: servers[0].leave(),
        log=log.append,
        sudo=None if sudo is None else lambda: sudo,
        identify=identify,
        machines=machines,
        running=running,
    )
    server = Server(listener.socket, handler, log.append)
    servers.append(server)
    thread = threading.Thread(target=server.run)
    thread.start()
    try:
        yield Desk(path, human, server, handler, folder / FILE_NAME, log)
    finally:
        server.leave()
        thread.join(PATIENCE)
        server.drain(PATIENCE)
        server.close()
        listener.close()
        audit.close()
