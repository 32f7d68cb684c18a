"""`stringd doctor`: what is set up, what is broken, how to mend it."""

import json
import os
import re
import socket
from pathlib import Path

import pytest

from stringd.cli import doctor
from stringd.server.settings import VARIABLES
from stringd.system.sandbox import report
from tests.support.commands import Done, run
from tests.support.daemon import Daemon, another_program, free_port

SECRET = "sk-do-not-print-me"


@pytest.fixture
def machine(tmp_path: Path) -> dict[str, str]:
    """A machine on which nothing was set up."""
    private = ("STRINGD_", "OPENAI_", "ANTHROPIC_", "XDG_")
    inherited = {k: v for k, v in os.environ.items() if not k.startswith(private)}
    return {
        **inherited,
        "HOME": str(tmp_path),
        "STRINGD_PORT": str(free_port()),
        "STRINGD_GATE_SOCKET": str(tmp_path / "gate.sock"),
    }


def examine(env: dict[str, str]) -> tuple[int, dict[str, dict[str, str]]]:
    done = run("stringd", "doctor", "--json", env=env)
    assert done.err == ""
    report = json.loads(done.out)
    assert report["ok"] is (done.code == 0)
    return done.code, {check["name"]: check for check in report["checks"]}


def test_a_fresh_machine_has_no_problem(machine: dict[str, str]) -> None:
    code, checks = examine(machine)
    assert code == 0
    assert checks["python"]["state"] == "ok"
    assert checks["daemon"]["state"] == "off"
    assert checks["daemon"]["fix"] == "stringd up"
    assert checks["gate"]["state"] == "off"
    assert checks["models openai"]["state"] == "off"


def test_the_walls_around_commands_are_named(machine: dict[str, str]) -> None:
    _, checks = examine(machine)
    walls = report()
    assert checks["sandbox"]["detail"] == walls.sentence
    assert checks["sandbox"]["state"] == ("off" if walls.facts["walls"] == "none" else "ok")
    assert checks["sandbox"]["fix"] == walls.fix


def test_people_are_told_what_to_do(machine: dict[str, str]) -> None:
    done: Done = run("stringd", "doctor", env=machine)
    assert done.code == 0
    lines = done.out.splitlines()
    assert lines[0].startswith("ok    python")
    assert any(line.strip() == "→ stringd up" for line in lines)
    assert lines[-1] == "Everything needed is in place."


def test_a_running_daemon_is_recognised(daemon: Daemon, machine: dict[str, str]) -> None:
    code, checks = examine({**machine, "STRINGD_PORT": str(daemon.port)})
    assert code == 0
    assert checks["daemon"]["state"] == "ok"
    assert checks["daemon"]["detail"].startswith(f"answers on port {daemon.port}: ")


def test_another_program_on_the_port_is_a_problem(machine: dict[str, str]) -> None:
    with another_program() as port:
        code, checks = examine({**machine, "STRINGD_PORT": str(port)})
    assert code == 1
    assert checks["daemon"]["state"] == "broken"
    assert "STRINGD_PORT" in checks["daemon"]["fix"]


def test_an_unusable_setting_is_a_problem(machine: dict[str, str]) -> None:
    for name, value in (("STRINGD_PORT", "0"), ("STRINGD_QUEUE_TIMEOUT_MS", "soon")):
        code, checks = examine({**machine, name: value})
        assert code == 1
        assert checks["settings"]["fix"] == f"correct or unset {name}"


def test_a_misspelt_setting_is_named_with_the_one_that_was_meant(machine: dict[str, str]) -> None:
    for name, meant in (
        ("STRINGD_BASH_TIMOUT_MS", "STRINGD_BASH_TIMEOUT_MS"),
        ("STRINGD_GATE_SOCKETS", "STRINGD_GATE_SOCKET"),
    ):
        code, checks = examine({**machine, name: "5"})
        assert code == 1
        said = f"{name} is not a setting; did you mean {meant}?"
        assert checks["settings"]["detail"] == said
    code, checks = examine({**machine, "STRINGD_OF_ANOTHER_PROGRAM": "5"})
    assert checks["settings"]["state"] == "ok"


def test_every_variable_that_the_code_reads_is_known() -> None:
    source = Path(doctor.__file__).parents[1]
    named = {
        name
        for path in source.rglob("*.py")
        for name in re.findall(r"STRINGD_[A-Z_]*[A-Z]", path.read_text("utf-8"))
    }
    assert named - {*VARIABLES, *doctor.OTHER_VARIABLES} == set()


def test_a_data_directory_open_to_others_is_a_problem(
    machine: dict[str, str], tmp_path: Path
) -> None:
    data = tmp_path / "data"
    data.mkdir()
    for mode, expected, fix in (
        (0o777, 1, f"chmod 700 {data}"),
        (0o755, 0, f"chmod 700 {data}"),
        (0o700, 0, None),
    ):
        data.chmod(mode)
        code, checks = examine({**machine, "STRINGD_DATA_DIR": str(data)})
        assert (code, checks["data directory"]["fix"]) == (expected, fix)


def test_a_data_directory_that_is_a_file_is_a_problem(
    machine: dict[str, str], tmp_path: Path
) -> None:
    (tmp_path / "data").write_text("", encoding="utf-8")
    code, checks = examine({**machine, "STRINGD_DATA_DIR": str(tmp_path / "data")})
    assert code == 1
    assert checks["data directory"]["detail"] == f"{tmp_path / 'data'} is not a directory"


def test_a_gate_that_left_its_socket_behind_is_a_problem(machine: dict[str, str]) -> None:
    with socket.socket(socket.AF_UNIX) as dead:
        dead.bind(machine["STRINGD_GATE_SOCKET"])
    code, checks = examine(machine)
    assert code == 1
    assert checks["gate"]["state"] == "broken"
    assert "stringd gate" in checks["gate"]["fix"]


def test_keys_are_named_and_never_shown(machine: dict[str, str]) -> None:
    env = {**machine, "OPENAI_API_KEY": SECRET, "ANTHROPIC_BASE_URL": f"http://{SECRET}"}
    for arguments in ((), ("--json",)):
        done = run("stringd", "doctor", *arguments, env=env)
        assert "OPENAI_API_KEY set" in done.out
        assert "ANTHROPIC_BASE_URL set" in done.out
        assert SECRET not in done.out
