"""Running our two commands as a person does: in a child process, or on a terminal."""

import os
import pty
import select
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path
from types import TracebackType
from typing import IO, NamedTuple, Self

from tests.support.daemon import WAIT_SECONDS, Daemon

BIN = Path(sys.executable).parent


class Done(NamedTuple):
    """How a command ended."""

    code: int
    out: str
    err: str


def environment(daemon: Daemon, **extra: str) -> dict[str, str]:
    """What a person's shell would hold: the daemon's port, and a home of their own."""
    held = daemon.child_environment()
    del held["STRINGD_DATA_DIR"]
    return {**held, "STRINGD_HOME": str(daemon.home), **extra}


def run(
    program: str,
    *arguments: str | bytes,
    env: Mapping[str, str],
    stdin: bytes = b"",
    cwd: Path | None = None,
) -> Done:
    """Run `string` or `stringd` to its end."""
    module = {"string": "stringd.cli.string", "stringd": "stringd"}[program]
    code = f"import sys; from {module} import main; sys.exit(main())"
    launch = ["-c", code] if program == "string" else ["-m", "stringd"]
    done = subprocess.run(
        [sys.executable, *launch, *arguments],
        env=dict(env),
        input=stdin,
        cwd=cwd,
        capture_output=True,
        timeout=WAIT_SECONDS * 2,
        check=False,
    )
    return Done(done.returncode, done.stdout.decode(), done.stderr.decode())


class Terminal:
    """A command on a pseudo-terminal. `until()` waits for text on the screen."""

    def __init__(
        self,
        *arguments: str,
        env: Mapping[str, str],
        stdout: IO[bytes] | None = None,
        program: str = "string",
    ) -> None:
        self._master, slave = pty.openpty()
        module = {"string": "stringd.cli.string", "stringd": "stringd.cli.main"}[program]
        code = f"import sys; from {module} import main; sys.exit(main())"
        self.process = subprocess.Popen(
            [sys.executable, "-c", code, *arguments],
            env=dict(env),
            stdin=slave,
            stdout=stdout or slave,
            stderr=slave,
            start_new_session=True,
            preexec_fn=_own_terminal,
        )
        os.close(slave)
        self.screen = ""

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        if self.process.poll() is None:
            self.process.kill()
        self.process.wait()
        os.close(self._master)

    def type(self, text: str) -> None:
        os.write(self._master, text.encode())

    def until(self, text: str) -> str:
        """Read until `text` shows; return everything before it and forget both."""
        while text not in self.screen:
            self._read()
        before, _, self.screen = self.screen.partition(text)
        return before

    def end(self) -> int:
        """The exit code, once the command has ended; what it still printed is on `screen`."""
        try:
            while True:
                self._read()
        except EOFError:
            return self.process.wait(WAIT_SECONDS)

    def _read(self) -> None:
        ready, _, _ = select.select([self._master], [], [], WAIT_SECONDS)
        assert ready, f"nothing more came after: {self.screen!r}"
        try:
            data = os.read(self._master, 65536)
        except OSError:
            data = b""
        if not data:
            raise EOFError(self.screen)
        self.screen += data.decode("utf-8", "replace")


def _own_terminal() -> None:
    """Make standard input the controlling terminal, so that Ctrl-C becomes a signal."""
    import fcntl
    import termios

    fcntl.ioctl(0, termios.TIOCSCTTY, 0)
