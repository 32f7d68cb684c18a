"""A real daemon in its own process, and raw ways to talk to it."""

import os
import secrets
import signal
import socket
import subprocess
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from types import TracebackType
from typing import Final, Self

WAIT_SECONDS = 60
"""The one bound on every wait for something that happens: long enough for a machine that has other
work, and only a test that fails waits so long."""


# Below the ports that the kernel gives to outgoing connections: one of those may take a port that
# is free now before the program that we choose it for listens, or while it starts again.
_PORTS: Final = range(10_000, 32_000)


reservations: Final[list[socket.socket]] = []
"""One for every port this process chose: a name that only one process of the machine can have."""


def free_port() -> int:
    """A port that nobody listens on, and that no other test of this machine chooses."""
    while True:
        # Not `random`: properties give every worker the same seed.
        port = secrets.choice(_PORTS)
        name = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
        try:
            name.bind(f"\0stringd-test-port-{port}")
            with socket.socket() as probe:
                probe.bind(("127.0.0.1", port))
        except OSError:
            name.close()
        else:
            reservations.append(name)
            return port


@contextmanager
def another_program(port: int = 0) -> Iterator[int]:
    """A program on a port that answers everybody with something that is not HTTP."""
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", port))
        listener.listen()
        stop = threading.Event()

        def answer() -> None:
            while not stop.is_set():
                connection, _ = listener.accept()
                with connection:
                    connection.sendall(b"SSH-2.0-OpenSSH_9.2\r\n\r\n")

        thread = threading.Thread(target=answer)
        thread.start()
        taken: int = listener.getsockname()[1]
        try:
            yield taken
        finally:
            stop.set()
            socket.create_connection(("127.0.0.1", taken)).close()
            thread.join(WAIT_SECONDS)


class Daemon:
    """`stringd serve` on a free port; started on entry, stopped on exit."""

    program: tuple[str, ...] = ("-m", "stringd")
    launcher: tuple[str, ...] = ()
    """A command that becomes the one in its arguments."""

    def __init__(self, directory: Path, *arguments: str, **environment: str) -> None:
        self.directory = directory
        self.data_dir = directory / "data"
        self.home = directory / "home"
        self.home.mkdir(parents=True, exist_ok=True)
        self.port = free_port()
        self.arguments = arguments
        self.environment = environment
        self.process: subprocess.Popen[str] | None = None
        self.output: list[str] = []

    def __enter__(self) -> Self:
        self.start()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.stop()

    def start(self) -> None:
        """Start the daemon and wait until it says that it listens."""
        self.process = subprocess.Popen(
            [*self.launcher, sys.executable, *self.program, "serve", *self.arguments],
            env=self.child_environment(),
            cwd=self.directory,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
        )
        assert self.process.stdout is not None
        self.output = []
        for line in self.process.stdout:
            self.output.append(line)
            if line.startswith("stringd listening"):
                return
        raise AssertionError(f"the daemon did not start: {''.join(self.output)}")

    def child_environment(self) -> dict[str, str]:
        """Ours without its STRINGD_* settings, plus the daemon's own."""
        inherited = {k: v for k, v in os.environ.items() if not k.startswith("STRINGD_")}
        return {
            **inherited,
            "HOME": str(self.directory),
            "STRINGD_PORT": str(self.port),
            "STRINGD_DATA_DIR": str(self.data_dir),
            "STRINGD_MODEL_CATALOG": "off",
            **self.environment,
        }

    def stop(self, number: int = signal.SIGTERM) -> int:
        """End the daemon with a signal and return its exit code."""
        assert self.process is not None
        if self.process.poll() is None:
            self.process.send_signal(number)
        code = self.process.wait(WAIT_SECONDS)
        assert self.process.stdout is not None
        if not self.process.stdout.closed:
            self.output += self.process.stdout.readlines()
            self.process.stdout.close()
        return code

    def kill(self) -> None:
        """End the daemon as a crash would."""
        self.stop(signal.SIGKILL)
