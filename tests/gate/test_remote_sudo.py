"""Root on another machine: a real sudo there, for an account that logs in over a real sshd."""

import base64
from collections.abc import Iterator
from contextlib import ExitStack, closing
from pathlib import Path

import pytest

from stringd.gate.hosts import FILE_NAME, Hosts
from stringd.gate.machines import Machines
from stringd.gate.running import RunningCommands
from tests.gate.sshd import MISSING, REASON, OtherMachine, other_machine
from tests.gate.support import Desk, Human, answer, connect, exchange, send, serving
from tests.gate.test_execute import processes_with
from tests.gate.test_remote import remote
from tests.gate.test_sudo import Account, account  # noqa: F401  (a fixture)
from tests.gate.test_sudo import pytestmark as sudo_marks
from tests.gate.test_turns import until

pytestmark = [*sudo_marks, pytest.mark.skipif(MISSING, reason=REASON)]


@pytest.fixture(scope="module")
def machine() -> Iterator[OtherMachine]:
    with other_machine() as running:
        yield running


@pytest.fixture
def running() -> RunningCommands:
    return RunningCommands()


@pytest.fixture
def desk(
    home: Path,
    machine: OtherMachine,
    account: Account,  # noqa: F811
    running: RunningCommands,
) -> Iterator[Desk]:
    hosts = Hosts(home / FILE_NAME)
    hosts.put(machine.entry(user=account.name))
    with ExitStack() as stack:
        machines = stack.enter_context(closing(Machines(hosts, 60, machine.env, home)))
        human = Human()
        yield stack.enter_context(serving(home, human, machines=machines, running=running))


def test_a_sudo_without_a_password_makes_it_root(
    desk: Desk,
    account: Account,  # noqa: F811
) -> None:
    account.may("ALL=(ALL) NOPASSWD: ALL")
    response = exchange(desk.path, remote(["id", "-u"], ["cat"], privileged=True))
    assert base64.b64decode(response["stdout"]) == b"0\n"
    plain = exchange(desk.path, remote(["id", "-un"]))
    assert base64.b64decode(plain["stdout"]).decode().strip() == account.name


def test_a_sudo_that_wants_a_password_runs_nothing_and_says_so(
    desk: Desk,
    account: Account,  # noqa: F811
    tmp_path: Path,
) -> None:
    account.may("ALL=(ALL) ALL")
    canary = tmp_path / "canary"
    response = exchange(desk.path, remote(["touch", str(canary)], privileged=True))
    assert response["status"] == "error"
    assert response["message"].startswith("sudo on web1 did not run the command: sudo: ")
    assert not canary.exists()


def test_what_root_runs_there_ends_when_the_person_ends_it(
    desk: Desk,
    account: Account,  # noqa: F811
    running: RunningCommands,
) -> None:
    account.may("ALL=(ALL) NOPASSWD: ALL")
    marker = "1234567.25"
    with connect(desk.path) as caller:
        send(caller, remote(["sleep", marker], privileged=True))
        # sudo, and the command it became the parent of.
        until(lambda: len(processes_with(marker)) >= 2)
        running.abort()
        response = answer(caller)
    assert "its processes on web1 " in response["message"]
    until(lambda: not processes_with(marker))
