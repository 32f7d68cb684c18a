"""The user's `ssh`, called so that it asks nothing, forwards nothing and knows one host key."""

import os
import shutil
import tempfile
import threading
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Final

from stringd.gate.errors import TroubleError
from stringd.gate.hosts import HostEntry
from stringd.gate.processes import ALL_SIGNALS, QUIET, Child, leave_to_end
from stringd.gate.program import ShownProgram
from stringd.gate.resolve import CHILD_PATH, resolve
from stringd.gate.trust import is_roots_alone, weaknesses
from stringd.gate.watch import READABLE, Watch

CONNECT_SECONDS: Final = 15
# A connection that says nothing for so long is lost.
ALIVE_SECONDS: Final = 5
ALIVE_COUNT: Final = 3
# So long the next command finds the connection of the last one.
PERSIST_SECONDS: Final = 60
# ssh binds a longer name first, and the system allows 107 bytes.
_MAX_CONTROL_PATH: Final = 85
_SAID: Final = 500
_LOCAL_SECONDS: Final = 5.0

_Actions = Sequence[tuple[int | str, ...]]

# Options of newer versions that an older ssh may pass over.
_NEWER: Final = "KnownHostsCommand,SessionType,StdinNull,ForkAfterAuthentication,SetEnv"
_FIXED: Final = {
    "IgnoreUnknown": _NEWER,
    "BatchMode": "yes",
    "StrictHostKeyChecking": "yes",
    "GlobalKnownHostsFile": "/dev/null",
    "KnownHostsCommand": "none",
    "VerifyHostKeyDNS": "no",
    "UpdateHostKeys": "no",
    "CheckHostIP": "no",
    "ForwardX11": "no",
    "Tunnel": "no",
    "ClearAllForwardings": "yes",
    "PermitLocalCommand": "no",
    "RemoteCommand": "none",
    "SessionType": "default",
    "StdinNull": "no",
    "ForkAfterAuthentication": "no",
    "RequestTTY": "no",
    "EscapeChar": "none",
    "LogLevel": "ERROR",
    "ConnectTimeout": str(CONNECT_SECONDS),
    "ServerAliveInterval": str(ALIVE_SECONDS),
    "ServerAliveCountMax": str(ALIVE_COUNT),
}


def find_ssh(env: Mapping[str, str]) -> ShownProgram:
    """An ssh in root's hands; the directories of the system come before those of our own PATH.

    Raises `TroubleError`: one that others could have put there could run anything anywhere.
    """
    refused = ""
    for place in f"{CHILD_PATH}:{env.get('PATH', '')}".split(":"):
        program = resolve("ssh", place)
        if program.path is None:
            continue
        if is_roots_alone(program.path):
            return program
        weak = weaknesses(program.path)[-1]
        refused = refused or f"{program.path} is not used: {weak.who} can change {weak.path}"
    why = refused or "ssh was not found"
    raise TroubleError(f"{why}. Commands on other machines need an ssh that only root can change")


def options(
    entry: HostEntry, known_hosts: Path, control: Path | None, *, agent: bool = False
) -> list[str]:
    """The words between `ssh` and the destination; they win over the user's configuration.

    `control` is where a shared connection is; without it the connection is this call's own.
    """
    chosen = _FIXED | {
        "UserKnownHostsFile": f'"{_literal(known_hosts)}"',
        "HostKeyAlias": entry.name,
        "ForwardAgent": "yes" if agent else "no",
        "ControlPath": "none" if control is None else f'"{_literal(control)}"',
    }
    words = [word for name, value in chosen.items() for word in ("-o", f"{name}={value}")]
    # -k: Kerberos tickets are not forwarded; as an option, not every ssh knows it.
    return [*words, "-k", *(() if entry.port is None else ("-p", str(entry.port)))]


def _literal(path: Path) -> str:
    """A path in which ssh replaces nothing."""
    return str(path).replace("%", "%%")


class Connections:
    """One shared connection a host, in a directory of this gate's own."""

    def __init__(self, own_env: Mapping[str, str], near: Path) -> None:
        self._env = own_env
        self._near = near
        self._lock = threading.Lock()
        self._directory: Path | None = None
        self._used: dict[Path, tuple[str, HostEntry]] = {}

    def command(self, ssh: str, entry: HostEntry, watch: Watch, *, agent: bool) -> list[str]:
        """The words that start a session, over a connection that was just found to work.

        Whatever may use the agent gets a connection of its own: the other end of a shared one
        could use it as long as that lasts. Raises `TroubleError` when there is no connection.
        """
        known = self._known_hosts(entry)
        if agent:
            return ["ssh", *options(entry, known, None, agent=True), "--", entry.destination]
        control = known.with_suffix(".sock")
        self._used[control] = ssh, entry
        self._connect(ssh, entry, known, control, watch)
        shared = options(entry, known, control, agent=False)
        return ["ssh", *shared, "-o", "ControlMaster=no", "--", entry.destination]

    def close(self) -> None:
        """End the shared connections and leave nothing behind."""
        for control, (ssh, entry) in self._used.items():
            words = ["ssh", "-o", f'ControlPath="{_literal(control)}"', "-O", "exit"]
            if control.exists():
                _ended_well(Child(self._spawn(ssh, [*words, "--", entry.destination], QUIET)))
        if self._directory is not None:
            shutil.rmtree(self._directory, ignore_errors=True)

    def _connect(
        self, ssh: str, entry: HostEntry, known: Path, control: Path, watch: Watch
    ) -> None:
        """Have a shared connection, and a new one only if there is none."""
        words = ["ssh", *options(entry, known, control)]
        if control.exists():
            check = [*words, "-O", "check", "--", entry.destination]
            if _ended_well(Child(self._spawn(ssh, check, QUIET))):
                return
        words += ["-o", "ControlMaster=auto", "-o", f"ControlPersist={PERSIST_SECONDS}"]
        # The shortest session there is: it ends at once, and what it used stays.
        words += ["--", entry.destination, "exit"]
        said = os.memfd_create("ssh", os.MFD_CLOEXEC)
        try:
            actions = [*QUIET[:2], (os.POSIX_SPAWN_DUP2, said, 2)]
            child = Child(self._spawn(ssh, words, actions))
            if not _wait(child, watch, CONNECT_SECONDS + ALIVE_SECONDS * ALIVE_COUNT):
                raise TroubleError(f"could not connect to {entry.name} in time; nothing was run")
            if child.reap() == 255:
                raise TroubleError(unreachable(entry, os.pread(said, 65536, 0)))
        finally:
            os.close(said)

    def _known_hosts(self, entry: HostEntry) -> Path:
        """A file with the one key this host may show, named after what is in it."""
        with self._lock:
            if self._directory is None:
                self._directory = _private_directory(self._near)
        line = f"{entry.name} {entry.key}\n"
        number = f"{hash((entry.destination, entry.port, line)) & 0xFFFFFFFF:08x}"
        path = self._directory / f"{number}.key"
        path.write_text(line, encoding="ascii")
        return path

    def _spawn(self, ssh: str, words: list[str], actions: _Actions) -> int:
        return os.posix_spawn(
            ssh,
            words,
            self._env,
            file_actions=actions,
            setsid=True,
            setsigmask=[],
            setsigdef=ALL_SIGNALS,
        )


def _ended_well(child: Child) -> bool:
    """Of a call that asks nobody but a process of this machine."""
    if child.ends_within(_LOCAL_SECONDS):
        return child.reap() == 0
    leave_to_end(child)
    return False


def _wait(child: Child, watch: Watch, seconds: float) -> bool:
    """Whether it ended in time; one that did not, or that nobody waits for any more, is ended."""
    try:
        if watch.wait({child.pidfd: READABLE}, seconds):
            return True
        _end(child)
        return False
    except BaseException:
        _end(child)
        raise


def _end(child: Child) -> None:
    os.kill(child.pid, 9)
    child.reap()


def unreachable(entry: HostEntry, said: bytes) -> str:
    """Why there is no connection, from what ssh said."""
    text = said.decode("utf-8", "replace")
    if "verification failed" in text or "IDENTIFICATION HAS CHANGED" in text:
        return (
            f"{entry.name} did not show the pinned key ({entry.fingerprint}); nothing was run. If "
            f"it has a new one: stringd gate hosts add {entry.name} {entry.destination} --replace"
        )
    lines = [line for line in text.split("\n") if line.strip()]
    why = " ".join((lines[-1] if lines else "ssh did not say why").split())
    return f"could not connect to {entry.name}: {why[:_SAID]}; nothing was run"


def _private_directory(near: Path) -> Path:
    for place in (str(near), tempfile.gettempdir(), "/tmp"):  # noqa: S108  (private inside)
        if len(os.fsencode(place)) + 35 <= _MAX_CONTROL_PATH and "%" not in place:
            return Path(tempfile.mkdtemp(prefix="stringd-gate-", dir=place))
    raise TroubleError("there is no directory for connections: set TMPDIR to a shorter path")
