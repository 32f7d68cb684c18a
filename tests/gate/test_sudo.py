"""Real sudo, a real password and a real terminal, as an account made for these tests."""

import json
import os
import pwd
import secrets
import shutil
import signal
import subprocess
import sys
import tempfile
import termios
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import pytest

import stringd
from stringd.gate.audit import FILE_NAME
from tests.gate.support import PATIENCE, QUESTION, RunningGate, connect, running_gate
from tests.gate.test_execute import processes_with
from tests.gate.test_turns import until
from tests.requirements import proves

NEEDED = ("sudo", "useradd", "userdel", "chpasswd", "setpriv", "visudo")
MISSING = [name for name in NEEDED if shutil.which(name) is None]
AS_ROOT_QUESTION = "Execute as root? [y/N] (60s timeout, default=N)"

pytestmark = [
    pytest.mark.skipif(os.getuid() != 0, reason="only root can make the account these tests need"),
    pytest.mark.skipif(bool(MISSING), reason=f"not installed: {', '.join(MISSING)}"),
]


def _python_for_everyone() -> str | None:
    """An interpreter that other accounts may run: ours may lie in somebody's home."""
    for candidate in (sys.executable, "/usr/bin/python3"):
        check = "import sys; sys.exit(sys.version_info < (3, 11))"
        words = ["setpriv", "--reuid", "65534", "--clear-groups", candidate, "-c", check]
        try:
            if subprocess.run(words, capture_output=True, check=False).returncode == 0:
                return candidate
        except OSError:
            continue
    return None


@dataclass
class Account:
    """A user of this machine, and a place where it can run stringd."""

    name: str
    password: str
    home: Path
    python: str
    sudoers: Path

    def program(self) -> list[str]:
        entry = pwd.getpwnam(self.name)
        ids = ["--reuid", str(entry.pw_uid), "--regid", str(entry.pw_gid), "--clear-groups"]
        return ["setpriv", *ids, self.python, "-m", "stringd"]

    def env(self) -> dict[str, str]:
        path = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"
        return {"PYTHONPATH": str(self.home), "HOME": str(self.home), "PATH": path}

    def may(self, rule: str, defaults: str = "!lecture") -> None:
        """Give the account these rights, and none else."""
        self.sudoers.write_text(f"{self.name} {rule}\nDefaults:{self.name} {defaults}\n")
        self.sudoers.chmod(0o440)
        subprocess.run(["visudo", "-cqf", str(self.sudoers)], check=True)
        # A password given in another test must not count in this one.
        shutil.rmtree(f"/run/sudo/ts/{self.name}", ignore_errors=True)
        Path(f"/run/sudo/ts/{self.name}").unlink(missing_ok=True)

    @contextmanager
    def gate(self, **env: str) -> Iterator[RunningGate]:
        everything = self.env() | env
        with running_gate(self.home, program=self.program(), env=everything) as gate:
            yield gate

    def request(self, gate: RunningGate, *words: str) -> "subprocess.Popen[str]":
        return subprocess.Popen(
            [*self.program(), "request", "--socket", str(gate.path), *words],
            env=self.env(),
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            cwd="/",
        )


@pytest.fixture(scope="module")
def account() -> Iterator[Account]:
    python = _python_for_everyone()
    if python is None:
        pytest.skip("no Python 3.11 that another account may run")
    name = f"stringd{secrets.token_hex(3)}"
    home = Path(tempfile.mkdtemp(prefix="sd"))
    sudoers = Path(f"/etc/sudoers.d/{name}")
    password = secrets.token_urlsafe(12)
    made = subprocess.run(
        ["useradd", "-M", "-d", str(home), name], capture_output=True, check=False
    )
    if made.returncode != 0:
        pytest.skip(f"no account could be made: {made.stderr.decode().strip()}")
    try:
        subprocess.run(["chpasswd"], input=f"{name}:{password}", text=True, check=True)
        shutil.copytree(Path(stringd.__file__).parent, home / "stringd")
        for path in [home, *home.rglob("*")]:
            shutil.chown(path, name)
            path.chmod(0o755)
        yield Account(name, password, home, python, sudoers)
    finally:
        sudoers.unlink(missing_ok=True)
        subprocess.run(["userdel", name], capture_output=True, check=False)
        shutil.rmtree(home)


@pytest.fixture
def roots_folder() -> Iterator[Path]:
    """A place where everybody may read and only root may write."""
    folder = Path(tempfile.mkdtemp(prefix="sr"))
    folder.chmod(0o755)
    yield folder
    shutil.rmtree(folder)


def finished(process: "subprocess.Popen[str]") -> tuple[int, str, str]:
    out, err = process.communicate(timeout=PATIENCE)
    return process.returncode, out, err


def approve_with_password(gate: RunningGate, account: Account) -> None:
    gate.terminal.wait_for(AS_ROOT_QUESTION)
    gate.terminal.type("y")
    gate.terminal.wait_for("password for")
    gate.terminal.type(f"{account.password}\n")


@proves("GATE-EXE-07")
def test_sudo_asks_for_the_password_on_the_approvers_terminal(account: Account) -> None:
    account.may("ALL=(ALL) ALL")
    with account.gate() as gate:
        asked = account.request(gate, "id", "-u")
        approve_with_password(gate, account)
        assert finished(asked) == (0, "0\n", "")
        gate.terminal.wait_for("exit 0")
        assert account.password not in gate.terminal.screen
        assert termios.tcgetattr(gate.terminal.slave) == gate.terminal.settings
        denied = account.request(gate, "id")
        gate.terminal.wait_for(AS_ROOT_QUESTION)
        gate.terminal.type("x")
        assert finished(denied)[2] == "Request denied.\n"


@proves("GATE-EXE-07")
def test_a_sudo_that_remembers_nothing_asks_every_time(account: Account) -> None:
    account.may("ALL=(ALL) ALL", "!lecture, timestamp_timeout=0")
    with account.gate() as gate:
        for _ in range(3):
            asked = account.request(gate, "id", "-u")
            approve_with_password(gate, account)
            assert finished(asked) == (0, "0\n", "")
            gate.terminal.wait_for("exit 0")


@proves("GATE-EXE-07")
def test_a_privileged_pipeline_asks_for_the_password_once(account: Account) -> None:
    account.may("ALL=(ALL) ALL")
    with account.gate() as gate:
        asked = account.request(gate, "id", "-u", "|", "cat", "-n", "|", "cat")
        approve_with_password(gate, account)
        assert finished(asked) == (0, "     1\t0\n", "")
        gate.terminal.wait_for("exit [0, 0, 0]")
        assert gate.terminal.screen.count("password for") == 1


@proves("GATE-EXE-07")
def test_a_rule_for_one_command_is_enough(account: Account) -> None:
    """Nothing is wrapped around the command and no variable is forced on it."""
    found = shutil.which("id", path=account.env()["PATH"])
    account.may(f"ALL=(root) NOPASSWD: {found}")
    with account.gate() as gate:
        asked = account.request(gate, "id", "-u")
        gate.terminal.wait_for(AS_ROOT_QUESTION)
        gate.terminal.type("y")
        assert finished(asked) == (0, "0\n", "")


def test_a_variable_of_the_request_reaches_the_command(account: Account) -> None:
    account.may("ALL=(ALL) NOPASSWD: ALL")
    with account.gate() as gate:
        asked = account.request(gate, "--env", "TZ=Mars/Olympus", "printenv", "TZ")
        gate.terminal.wait_for(AS_ROOT_QUESTION)
        gate.terminal.type("y")
        assert finished(asked) == (0, "Mars/Olympus\n", "")


@proves("GATE-EXE-04")
@pytest.mark.parametrize(
    "words", [["sleep"], ["sh", "-c", 'trap "" TERM HUP INT; sleep "$1"', "sh"]]
)
def test_the_time_limit_ends_what_root_owns(account: Account, words: Sequence[str]) -> None:
    account.may("ALL=(ALL) NOPASSWD: ALL")
    marker = f"6{secrets.randbelow(10**8)}"
    with account.gate(STRINGD_GATE_EXEC_TIMEOUT="1") as gate:
        asked = account.request(gate, *words, marker)
        gate.terminal.wait_for(AS_ROOT_QUESTION)
        gate.terminal.type("y")
        assert finished(asked) == (1, "", "Error: command timed out after 1s\n")
        assert processes_with(marker) == []
        # And the gate goes on.
        again = account.request(gate, "id", "-u")
        gate.terminal.wait_for(AS_ROOT_QUESTION)
        gate.terminal.type("y")
        assert finished(again) == (0, "0\n", "")


@proves("GATE-EXE-04")
def test_the_time_limit_ends_what_root_owns_where_sudo_allows_nothing_else(
    account: Account,
) -> None:
    found = shutil.which("sleep", path=account.env()["PATH"])
    account.may(f"ALL=(root) NOPASSWD: {found}")
    marker = f"9.{secrets.randbelow(10**8)}"
    with account.gate(STRINGD_GATE_EXEC_TIMEOUT="1") as gate:
        asked = account.request(gate, "sleep", marker)
        gate.terminal.wait_for(AS_ROOT_QUESTION)
        gate.terminal.type("y")
        assert finished(asked) == (1, "", "Error: command timed out after 1s\n")
        assert processes_with(marker) == []


@proves("GATE-EXE-04")
def test_what_cannot_be_ended_is_named_and_holds_nobody_up(
    account: Account, roots_folder: Path
) -> None:
    tool = roots_folder / "stubborn"
    tool.write_text("#!/bin/sh\ntrap '' TERM HUP INT\nsleep $1\n")
    tool.chmod(0o755)
    account.may(f"ALL=(root) NOPASSWD: {tool}")
    with account.gate(STRINGD_GATE_EXEC_TIMEOUT="1") as gate:
        asked = account.request(gate, str(tool), "12")
        gate.terminal.wait_for(AS_ROOT_QUESTION)
        gate.terminal.type("y")
        assert finished(asked) == (1, "", "Error: command timed out after 1s\n")
        gate.terminal.wait_for("Still running as root: end it with sudo kill -9 ")
        again = account.request(gate, str(tool), "0")
        gate.terminal.wait_for(AS_ROOT_QUESTION)
        gate.terminal.type("y")
        assert finished(again) == (0, "", "")


@proves("GATE-END-01")
def test_ending_the_gate_ends_what_root_owns(account: Account) -> None:
    account.may("ALL=(ALL) NOPASSWD: ALL")
    marker = f"6{secrets.randbelow(10**8)}"
    ready = account.home / f"ready{marker}"
    with account.gate() as gate:
        asked = account.request(gate, "sh", "-c", f"touch {ready}; exec sleep {marker}")
        gate.terminal.wait_for(AS_ROOT_QUESTION)
        gate.terminal.type("y")
        until(lambda: ready.exists() and bool(processes_with(marker)))
        gate.terminal.process.send_signal(signal.SIGTERM)
        assert finished(asked) == (1, "", "Error: daemon shutting down\n")
        assert gate.terminal.process.wait(PATIENCE) == -signal.SIGTERM
        assert processes_with(marker) == []


def test_another_account_is_hung_up_on(account: Account) -> None:
    account.may("ALL=(ALL) ALL")
    with account.gate() as gate:
        words = [sys.executable, "-m", "stringd", "request", "--socket", str(gate.path), "id"]
        done = subprocess.run(words, capture_output=True, text=True, check=False, timeout=PATIENCE)
        assert done.returncode == 1
        assert "belongs to another account" in done.stderr
        with connect(gate.path) as stranger:
            assert stranger.recv(1) == b""
        gate.terminal.wait_for("rejecting connection from uid 0")
        assert QUESTION not in gate.terminal.screen


@pytest.fixture(params=["binary", "text"])
def tool(request: pytest.FixtureRequest, account: Account) -> Path:
    """A program of the account's own, which says A."""
    path = account.home / f"tool-{request.param}"
    if request.param == "binary":
        shutil.copy("/bin/echo", path)
    else:
        path.write_text('#!/bin/sh\necho "$@"\n')
    path.chmod(0o755)
    shutil.chown(path, account.name)
    return path


@proves("GATE-EXE-08")
def test_a_program_that_others_can_change_is_checked_by_root_itself(
    account: Account, tool: Path
) -> None:
    account.may("ALL=(ALL) NOPASSWD: ALL")
    with account.gate() as gate:
        asked = account.request(gate, str(tool), "A", "b c")
        shown = gate.terminal.wait_for(AS_ROOT_QUESTION)
        assert f"Caution: {account.name} can change {tool}" in shown
        gate.terminal.type("y")
        assert finished(asked) == (0, "A b c\n", "")


@proves("GATE-EXE-08")
@pytest.mark.parametrize("how", ["replaced", "rewritten", "parent"])
def test_a_program_changed_while_sudo_asks_for_the_password_is_not_run(
    account: Account, tool: Path, how: str
) -> None:
    """The longest moment between approval and execution, and the last one an attacker has."""
    account.may("ALL=(ALL) ALL")
    folder = account.home / f"folder-{secrets.token_hex(3)}"
    folder.mkdir()
    moved = tool.rename(folder / "tool")
    mark = account.home / f"mark-{secrets.token_hex(3)}"
    evil = f"#!/bin/sh\ntouch {mark}\n"
    with account.gate() as gate:
        asked = account.request(gate, str(moved), "A")
        gate.terminal.wait_for(AS_ROOT_QUESTION)
        gate.terminal.type("y")
        gate.terminal.wait_for("password for")
        if how == "rewritten":
            moved.write_text(evil)
        else:
            place = folder
            if how == "parent":
                folder.rename(f"{folder}-away")
                folder.mkdir()
            else:
                moved.unlink()
            (place / "tool").write_text(evil)
            (place / "tool").chmod(0o755)
        gate.terminal.type(f"{account.password}\n")
        assert finished(asked) == (1, "", "Error: command changed after approval\n")
    assert not mark.exists()


@proves("GATE-EXE-10")
def test_ctrl_c_at_the_password_reaches_the_caller_as_a_failure(account: Account) -> None:
    account.may("ALL=(ALL) ALL")
    with account.gate() as gate:
        asked = account.request(gate, "id", "-u")
        gate.terminal.wait_for(AS_ROOT_QUESTION)
        gate.terminal.type("y")
        gate.terminal.wait_for("password for")
        gate.terminal.type("\x03")
        code, out, err = finished(asked)
        assert (code, out) == (1, "")
        assert err == "Error: command ended by the person at the terminal\n"
        # And the gate is there for the next one.
        again = account.request(gate, "id", "-u")
        approve_with_password(gate, account)
        assert finished(again) == (0, "0\n", "")


@pytest.fixture
def lonely() -> Iterator[Path]:
    """A program that nobody runs but the test."""
    path = Path(f"/usr/local/bin/stringd-test-{secrets.token_hex(8)}")
    shutil.copy("/usr/bin/true", path)
    yield path
    path.unlink()


@proves("GATE-EXE-10")
@pytest.mark.parametrize("typed", ["\x04", "wrong\n"], ids=["Ctrl-D", "wrong passwords"])
def test_a_password_that_was_not_given_is_a_failure_and_not_an_end_of_the_command(
    account: Account, lonely: Path, typed: str
) -> None:
    account.may("ALL=(ALL) ALL", "!lecture, passwd_tries=1")
    with account.gate() as gate:
        asked = account.request(gate, str(lonely))
        gate.terminal.wait_for(AS_ROOT_QUESTION)
        gate.terminal.type("y")
        gate.terminal.wait_for("password for")
        gate.terminal.type(typed)
        code, out, err = finished(asked)
        assert (code, out) == (1, "")
        assert err.startswith("Error: sudo did not run the command: ")
    assert kept_events(account)[-2:] == ["failed", "ended"]


@proves("GATE-EXE-10")
def test_a_command_that_sudo_does_not_allow_is_a_failure(account: Account, lonely: Path) -> None:
    account.may("ALL=(root) NOPASSWD: /usr/bin/true")
    with account.gate() as gate:
        asked = account.request(gate, str(lonely))
        gate.terminal.wait_for(AS_ROOT_QUESTION)
        gate.terminal.type("y")
        gate.terminal.wait_for("password for")
        gate.terminal.type(f"{account.password}\n")
        code, _, err = finished(asked)
        assert code == 1
        assert err.startswith("Error: sudo did not run the command: ")


@proves("GATE-EXE-10")
@pytest.mark.parametrize(
    ("text", "status"),
    [
        ("sudo: 3 incorrect password attempts", 1),
        ("stringd gate: command changed after approval", 126),
    ],
)
def test_a_command_that_ran_cannot_have_it_recorded_that_it_did_not(
    account: Account, text: str, status: int
) -> None:
    account.may("ALL=(ALL) ALL")
    with account.gate() as gate:
        asked = account.request(gate, "sh", "-c", f"echo '{text}' >&2; exit {status}")
        approve_with_password(gate, account)
        assert finished(asked) == (status, "", f"{text}\n(exit code: {status})\n")
    assert kept_events(account)[-2:] == ["finished", "ended"]


@proves("GATE-EXE-10")
def test_nor_where_sudo_remembers_no_password(account: Account) -> None:
    account.may("ALL=(ALL) ALL", "!lecture, timestamp_timeout=0")
    text = "sudo: 3 incorrect password attempts"
    with account.gate() as gate:
        asked = account.request(gate, "sh", "-c", f"echo '{text}' >&2; exit 1")
        approve_with_password(gate, account)
        code, _, err = finished(asked)
        assert code == 1
        assert err == f"Error: not certain whether the command ran; it or sudo says: {text}\n"


def kept_events(account: Account) -> list[str]:
    """What the audit log says happened."""
    lines = next(account.home.rglob(FILE_NAME)).read_text("utf-8").splitlines()
    return [json.loads(line)["event"] for line in lines]


@proves("GATE-EXE-10")
def test_ctrl_c_ends_what_root_runs(account: Account) -> None:
    account.may("ALL=(ALL) NOPASSWD: ALL")
    marker = f"6{secrets.randbelow(10**8)}"
    with account.gate() as gate:
        asked = account.request(gate, "sleep", marker)
        gate.terminal.wait_for(AS_ROOT_QUESTION)
        gate.terminal.type("y")
        until(lambda: len(processes_with(marker)) > 1)
        gate.terminal.type("\x03")
        assert finished(asked)[2] == "Error: command ended by the person at the terminal\n"
        assert processes_with(marker) == []


@proves("GATE-EXE-09")
def test_a_sudo_planted_in_the_accounts_path_gets_no_password(account: Account) -> None:
    account.may("ALL=(ALL) ALL")
    folder, mark = account.home / "bin", account.home / "got"
    folder.mkdir()
    (folder / "sudo").write_text(f"#!/bin/sh\ntouch {mark}\n")
    (folder / "sudo").chmod(0o755)
    shutil.chown(folder, account.name)
    shutil.chown(folder / "sudo", account.name)
    with account.gate(PATH=f"{folder}:{account.env()['PATH']}") as gate:
        asked = account.request(gate, "id", "-u")
        shown = gate.terminal.wait_for(AS_ROOT_QUESTION)
        assert "through /usr/bin/sudo" in shown
        gate.terminal.type("y")
        gate.terminal.wait_for("password for")
        gate.terminal.type(f"{account.password}\n")
        assert finished(asked) == (0, "0\n", "")
    assert not mark.exists()


def test_programs_of_the_same_account_may_not_attach_to_the_gate(account: Account) -> None:
    with account.gate() as gate:
        # The kernel gives these to root where a process refuses to be traced.
        assert Path(f"/proc/{gate.terminal.process.pid}/environ").stat().st_uid == 0
