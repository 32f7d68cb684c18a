"""Another machine to test against: a real sshd on loopback, with an agent that may log in there."""

import os
import pwd
import shutil
import socket
import subprocess
import tempfile
import threading
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path

from stringd.gate.hosts import HostEntry
from tests.gate.support import PATIENCE
from tests.support.machine import found

SSHD = found("sshd")
MISSING = SSHD is None or found("ssh-agent") is None
REASON = "sshd is not installed"
_CONFIG = """
ListenAddress 127.0.0.1:{port}
HostKey {folder}/host
AuthorizedKeysFile {folder}/key.pub
PidFile none
StrictModes no
UsePAM no
PasswordAuthentication no
PermitUserEnvironment no
MaxStartups 100
"""


@dataclass(frozen=True)
class OtherMachine:
    """A running sshd."""

    port: int
    key: str
    env: dict[str, str]
    """For an ssh that may log in."""

    def entry(
        self, name: str = "web1", *, port: int | None = None, user: str | None = None
    ) -> HostEntry:
        user = user or pwd.getpwuid(os.getuid()).pw_name
        return HostEntry(name, f"{user}@127.0.0.1", self.key, port or self.port)


def make_key(path: Path) -> str:
    """A new key pair; its public half as a `known_hosts` file has it."""
    words = ["ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-C", "", "-f", str(path)]
    subprocess.run(words, check=True)
    return path.with_suffix(".pub").read_text().strip()


@contextmanager
def other_machine() -> Iterator[OtherMachine]:
    """An sshd as this account, and an agent with the key that it accepts."""
    folder = Path(tempfile.mkdtemp(prefix="sshd"))
    # Other accounts of this machine may log in too, and sshd reads the key as them.
    folder.chmod(0o755)
    try:
        with _running(folder) as machine:
            yield machine
    finally:
        shutil.rmtree(folder)


@contextmanager
def _running(folder: Path) -> Iterator[OtherMachine]:
    if os.getuid() == 0:
        Path("/run/sshd").mkdir(exist_ok=True)
    key = make_key(folder / "host")
    make_key(folder / "key")
    with socket.create_server(("127.0.0.1", 0)) as free:
        port = free.getsockname()[1]
    (folder / "config").write_text(_CONFIG.format(port=port, folder=folder))
    env = {**os.environ, "SSH_AUTH_SOCK": str(folder / "agent")}
    env.pop("SSH_ASKPASS", None)
    with ExitStack() as running:
        agent = subprocess.Popen(
            ["ssh-agent", "-D", "-a", env["SSH_AUTH_SOCK"]], stdout=subprocess.PIPE, text=True
        )
        running.callback(_end, agent)
        assert agent.stdout is not None
        # It says so once it listens.
        agent.stdout.readline()
        running.callback(agent.stdout.close)
        subprocess.run(
            ["ssh-add", "-q", str(folder / "key")], env=env, check=True, capture_output=True
        )
        assert SSHD is not None
        words = [SSHD, "-D", "-e", "-f", str(folder / "config")]
        daemon = subprocess.Popen(words, stderr=subprocess.PIPE, text=True)
        running.callback(_end, daemon)
        assert daemon.stderr is not None
        said = ""
        for line in daemon.stderr:
            said += line
            if "Server listening" in line:
                break
        else:
            raise AssertionError(f"sshd did not start:\n{said}")
        reader = threading.Thread(target=daemon.stderr.read, daemon=True)
        reader.start()
        yield OtherMachine(port, key, env)
    reader.join(PATIENCE)
    daemon.stderr.close()


def _end(process: "subprocess.Popen[str]") -> None:
    process.terminate()
    process.wait(PATIENCE)


class Cable:
    """A wire to a port of this machine that can be cut."""

    def __init__(self, port: int) -> None:
        self._target = port
        self._server = socket.create_server(("127.0.0.1", 0))
        self.port: int = self._server.getsockname()[1]
        self._ends: list[socket.socket] = []
        self._threads = [threading.Thread(target=self._accept, daemon=True)]
        self._threads[0].start()

    def cut(self) -> None:
        """Both ends notice at once, and nobody can connect any more."""
        with suppress(OSError):
            self._server.shutdown(socket.SHUT_RDWR)
        self._server.close()
        for end in self._ends:
            with suppress(OSError):
                end.shutdown(socket.SHUT_RDWR)
        for thread in list(self._threads):
            thread.join(PATIENCE)
        for end in self._ends:
            end.close()

    def _accept(self) -> None:
        while True:
            try:
                here, _ = self._server.accept()
            except OSError:
                return
            there = socket.create_connection(("127.0.0.1", self._target))
            self._ends += [here, there]
            for pair in ((here, there), (there, here)):
                thread = threading.Thread(target=_carry, args=pair, daemon=True)
                self._threads.append(thread)
                thread.start()


def _carry(source: socket.socket, target: socket.socket) -> None:
    with suppress(OSError):
        while data := source.recv(65536):
            target.sendall(data)
    with suppress(OSError):
        target.shutdown(socket.SHUT_WR)
