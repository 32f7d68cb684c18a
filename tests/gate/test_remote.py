"""Commands on another machine: a real ssh to a real sshd, through the gate's own wire."""

import base64
import json
import os
import select
import subprocess
import sys
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from stringd.gate.decide import Event, KeyAnswer
from stringd.gate.hosts import FILE_NAME, Hosts
from stringd.gate.machines import Machines
from stringd.gate.question import Question
from stringd.gate.running import RunningCommands
from stringd.gate.ssh import options
from tests.gate.sshd import MISSING, REASON, Cable, OtherMachine, make_key, other_machine
from tests.gate.support import (
    PATIENCE,
    QUESTION,
    Desk,
    Human,
    Terminal,
    answer,
    connect,
    exchange,
    request,
    running_gate,
    send,
    serving,
)
from tests.gate.test_execute import processes_with
from tests.gate.test_turns import until

pytestmark = pytest.mark.skipif(MISSING, reason=REASON)


@pytest.fixture(scope="module")
def machine() -> Iterator[OtherMachine]:
    with other_machine() as running:
        yield running


def test_the_users_configuration_forwards_nothing(tmp_path: Path, machine: OtherMachine) -> None:
    wanted = ("ForwardAgent", "ForwardX11", "PermitLocalCommand", "GSSAPIDelegateCredentials")
    config = tmp_path / "config"
    config.write_text("".join(f"{name} yes\n" for name in wanted))
    words = ["ssh", "-F", str(config), "-G", *options(machine.entry(), tmp_path / "known", None)]
    shown = subprocess.run([*words, "--", "x"], capture_output=True, text=True, check=True).stdout
    said = dict(line.partition(" ")[::2] for line in shown.splitlines())
    # An ssh without Kerberos does not name it.
    assert {said.get(name.lower(), "no") for name in wanted} == {"no"}


@pytest.fixture
def machines(home: Path, machine: OtherMachine) -> Iterator[Machines]:
    hosts = Hosts(home / FILE_NAME)
    hosts.put(machine.entry())
    with closing(Machines(hosts, 30, machine.env, home)) as found:
        yield found


@pytest.fixture
def elsewhere(home: Path, machines: Machines) -> Iterator[Desk]:
    """A gate whose human says yes to everything, and that knows web1."""
    with serving(home, Human(), machines=machines) as desk:
        yield desk


def remote(*stages: list[str], **fields: object) -> dict[str, Any]:
    return request(*stages, action="remote", host="web1", **fields)


def output(response: dict[str, Any]) -> bytes:
    assert response["status"] == "ok", response
    return base64.b64decode(response["stdout"])


def ended(pid: int) -> bool:
    """Whether a process ends, waited for."""
    try:
        handle = os.pidfd_open(pid)
    except ProcessLookupError:
        return True
    try:
        return bool(select.select([handle], [], [], PATIENCE)[0])
    finally:
        os.close(handle)


def announcing(pipe: Path) -> list[str]:
    """A command that says its process into a pipe and then stays."""
    os.mkfifo(pipe)
    return ["sh", "-c", 'echo $$ >"$1"; exec sleep 1000', "sh", str(pipe)]


def test_a_command_runs_there_with_its_words_and_nothing_of_ours(elsewhere: Desk) -> None:
    script = 'printf "%s|" "$@" "$PWD" "$LANG" "$HOME"; echo no >&2; env >&2; exit 3'
    asked = remote(["sh", "-c", script, "sh", "a 'b'", "$(id)", "ü"], env={"LANG": "C"})
    response = exchange(elsewhere.path, asked)
    assert output(response).decode().split("|")[:5] == ["a 'b'", "$(id)", "ü", "/", "C"]
    stage = response["stages"][0]
    complaint = base64.b64decode(stage["stderr"]).decode()
    assert stage["exit_code"] == 3
    names = {line.partition("=")[0] for line in complaint.splitlines()[1:]}
    assert names <= {"HOME", "USER", "LOGNAME", "PATH", "LANG", "PWD", "SHLVL", "_", "OLDPWD"}
    # The next one uses the same connection.
    assert output(exchange(elsewhere.path, remote(["echo", "again"]))) == b"again\n"


def test_stages_run_there_together(elsewhere: Desk) -> None:
    asked = remote(["sh", "-c", "echo e >&2; seq 5"], ["grep", "4"], ["sh", "-c", "cat; exit 1"])
    response = exchange(elsewhere.path, asked)
    assert [stage["exit_code"] for stage in response["stages"]] == [0, 0, 1]
    assert base64.b64decode(response["stages"][0]["stderr"]) == b"e\n"


def test_much_output_is_cut_as_it_is_here(elsewhere: Desk) -> None:
    size = 17 * 1024 * 1024
    response = exchange(elsewhere.path, remote(["head", "-c", str(size), "/dev/zero"]))
    assert response["stdout_truncated"]
    assert len(output(response)) == 16 * 1024 * 1024


def test_the_question_names_the_machine_its_address_and_its_key(
    home: Path, machine: OtherMachine
) -> None:
    hosts = Hosts(home / "data" / FILE_NAME)
    hosts.put(machine.entry())
    env = {**machine.env, "NO_COLOR": ""}
    with (
        running_gate(home, env=env, size=(30, 200)) as gate,
        gate.ask(remote(["echo", "hi"], privileged=True)) as caller,
    ):
        shown = gate.terminal.wait_for(QUESTION)
        assert "Execute as root on web1? [y/N]" in shown
        assert f"Host:    web1 ({machine.entry().address}, " in shown
        assert machine.entry().fingerprint in shown
        assert "\x1b[1;30;46m" in shown
        gate.terminal.type("n")
        gate.terminal.wait_for("Denied")
        assert answer(caller)["status"] == "denied"
        hosts.put(machine.entry("web2"))
        with gate.ask(request(["echo", "hi"], action="remote", host="web2")):
            assert "added to the list" in gate.terminal.wait_for(QUESTION)


def test_nothing_is_asked_for_a_machine_that_is_not_in_the_list(elsewhere: Desk) -> None:
    response = exchange(elsewhere.path, request(["id"], action="remote", host="web9"))
    assert response["status"] == "error"
    assert "stringd gate hosts add web9" in response["message"]
    assert elsewhere.human.asked == []


def test_a_command_that_env_or_sudo_would_read_otherwise_is_refused(elsewhere: Desk) -> None:
    for word in ("A=b", "-i"):
        response = exchange(elsewhere.path, remote([word, "id"]))
        assert response["message"] == "pipeline[0][0] is not a command name"


def test_a_machine_with_another_key_gets_nothing(
    home: Path, machine: OtherMachine, tmp_path: Path
) -> None:
    hosts = Hosts(home / FILE_NAME)
    hosts.put(OtherMachine(machine.port, make_key(tmp_path / "other"), machine.env).entry())
    canary = tmp_path / "canary"
    with (
        closing(Machines(hosts, 30, machine.env, home)) as machines,
        serving(home, Human(), machines=machines) as desk,
    ):
        response = exchange(desk.path, remote(["touch", str(canary)]))
    assert response["status"] == "error"
    assert "did not show the pinned key" in response["message"]
    assert "--replace" in response["message"]
    assert not canary.exists()


def test_an_overdue_command_is_ended_there(home: Path, machine: OtherMachine) -> None:
    hosts = Hosts(home / FILE_NAME)
    hosts.put(machine.entry())
    with (
        closing(Machines(hosts, 1, machine.env, home)) as machines,
        serving(home, Human(), machines=machines) as desk,
    ):
        response = exchange(desk.path, remote(["sleep", marker := f"{10**6 + os.getpid()}"]))
        until(lambda: not processes_with(marker))
    assert "timed out after 1s on web1; " in response["message"]


def test_what_the_person_ends_is_ended_there(
    home: Path, machines: Machines, tmp_path: Path
) -> None:
    pipe = tmp_path / "pid"
    running = RunningCommands()
    with (
        serving(home, Human(), machines=machines, running=running) as desk,
        connect(desk.path) as caller,
    ):
        send(caller, remote(announcing(pipe)))
        pid = int(pipe.read_text())
        running.abort()
        response = answer(caller)
    assert response["message"].startswith("command ended by the person at the terminal; ")
    assert "its processes on web1 have ended" in response["message"]
    assert ended(pid)


def test_a_lost_connection_says_what_is_known_and_what_ran_ends(
    home: Path, machine: OtherMachine, tmp_path: Path
) -> None:
    hosts = Hosts(home / FILE_NAME)
    cable = Cable(machine.port)
    hosts.put(machine.entry(port=cable.port))
    pipe = tmp_path / "pid"
    with (
        closing(Machines(hosts, 60, machine.env, home)) as machines,
        serving(home, Human(), machines=machines) as desk,
        connect(desk.path) as caller,
    ):
        send(caller, remote(announcing(pipe)))
        pid = int(pipe.read_text())
        cable.cut()
        response = answer(caller)
        assert ended(pid)
        again = exchange(desk.path, remote(["true"]))
    assert response["status"] == "error"
    # Whether the first words of the script were underway when the cable was cut is chance.
    assert response["message"].startswith("the connection to web1 was lost; ")
    assert "is not known" in response["message"]
    assert "could not connect to web1" in again["message"]
    assert "nothing was run" in again["message"]


def test_a_caller_that_leaves_does_not_end_what_runs_there(elsewhere: Desk, tmp_path: Path) -> None:
    pipe, done = tmp_path / "pid", tmp_path / "done"
    os.mkfifo(pipe)
    os.mkfifo(done)
    script = 'echo $$ >"$1"; cat "$2"; echo finished >"$1"'
    with connect(elsewhere.path) as caller:
        send(caller, remote(["sh", "-c", script, "sh", str(pipe), str(done)]))
        pipe.read_text()
    done.write_text("go")
    assert pipe.read_text() == "finished\n"


def test_a_caller_that_leaves_before_the_answer_gets_nothing_run(
    home: Path, machines: Machines, tmp_path: Path
) -> None:
    canary = tmp_path / "canary"
    human = Human()
    with serving(home, human, at_liberty=False, machines=machines) as desk:
        with connect(desk.path) as caller:
            send(caller, remote(["touch", str(canary)]))
            until(lambda: bool(human.asked))
        human.at_liberty.set()
    assert not canary.exists()


def test_the_agent_is_forwarded_only_when_asked_and_shown(home: Path, machines: Machines) -> None:
    shown: list[bool] = []

    def decide(question: Question) -> KeyAnswer:
        shown.append(question.request.forward_agent)
        return KeyAnswer(Event.YES, by="test")

    with serving(home, Human(decide), machines=machines) as desk:
        without = exchange(desk.path, remote(["sh", "-c", "echo ${SSH_AUTH_SOCK-none}"]))
        listed = exchange(desk.path, remote(["ssh-add", "-l"], forward_agent=True))
    assert output(without) == b"none\n"
    assert b"ED25519" in output(listed)
    assert shown == [False, True]


def test_the_record_of_an_approval_has_the_machine(elsewhere: Desk) -> None:
    exchange(elsewhere.path, remote(["true"]))
    records = [json.loads(line) for line in elsewhere.audit.read_text().splitlines()]
    received = next(record for record in records if record["event"] == "received")
    decided = next(record for record in records if record["event"] == "decided")
    assert (received["action"], received["host"]) == ("remote", "web1")
    assert decided["machine"]["name"] == "web1"
    assert decided["machine"]["fingerprint"].startswith("ED25519 SHA256:")


def test_the_list_is_kept_from_the_command_line(home: Path, machine: OtherMachine) -> None:
    env = {**machine.env, "STRINGD_DATA_DIR": str(home)}

    def hosts(*words: str) -> "subprocess.CompletedProcess[str]":
        program = [sys.executable, "-m", "stringd", "gate", "hosts", *words]
        return subprocess.run(
            program, env=env, capture_output=True, text=True, check=False, stdin=subprocess.DEVNULL
        )

    entry = machine.entry()
    where = ["web1", entry.destination, "--port", str(machine.port)]
    print_only = hosts("add", *where)
    assert print_only.returncode == 1
    assert entry.fingerprint in print_only.stdout
    assert "--fingerprint" in print_only.stderr
    assert hosts("add", *where, "--fingerprint", "SHA256:other").returncode == 1
    digest = entry.fingerprint.rpartition(" ")[2]
    added = hosts("add", *where, "--fingerprint", digest)
    assert added.returncode == 0, added.stderr
    assert "--replace" in hosts("add", *where, "--fingerprint", digest).stderr
    assert json.loads(hosts("list", "--json").stdout)[0]["fingerprint"] == entry.fingerprint
    tested = json.loads(hosts("test", "web1", "--json").stdout)
    assert tested["ok"]
    assert tested["login"] == entry.destination.partition("@")[0]
    assert hosts("remove", "web1").returncode == 0
    assert "stringd gate hosts add" in hosts("list").stdout
    assert hosts("test", "web1").returncode == 1


@pytest.mark.parametrize(("typed", "ending"), [("y", "is in the list"), ("", "Nothing was")])
def test_a_person_sees_the_key_before_it_is_pinned(
    home: Path, machine: OtherMachine, typed: str, ending: str
) -> None:
    entry = machine.entry()
    words = ["hosts", "add", "web1", entry.destination, "--port", str(machine.port)]
    env = {**machine.env, "STRINGD_DATA_DIR": str(home)}
    program = [sys.executable, "-m", "stringd", "gate", *words]
    with closing(Terminal(program, env, (30, 200))) as terminal:
        assert entry.fingerprint in terminal.wait_for("Pin this key for web1? [y/N]")
        terminal.type(f"{typed}\n")
        terminal.wait_for(ending)
    assert list(Hosts(home / FILE_NAME).all()) == (["web1"] if typed else [])


def test_the_request_command_names_the_machine(elsewhere: Desk) -> None:
    words = ["request", "--socket", str(elsewhere.path), "--no-privilege", "--host", "web1"]
    program = [sys.executable, "-m", "stringd", *words, "echo", "there"]
    done = subprocess.run(program, capture_output=True, text=True, check=False)
    assert done.stdout == "there\n"
    assert elsewhere.human.asked[0].elsewhere == "web1"
