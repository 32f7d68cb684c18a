"""`stringd service`: what is written, and what the service manager is asked to do."""

import os
import plistlib
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from stringd.cli.service.units import ServicePlan, launchd_agent, systemd_service, systemd_socket
from tests.support.commands import run

PLAN = ServicePlan(
    [sys.executable, "-P", "-m", "stringd", "serve", "--port", "3100"],
    {"PATH": '/odd "dir"/100%/$HOME\\x:/bin', "STRINGD_DATA_DIR": "/home/a b/.string/daemon"},
    3100,
)


@pytest.fixture
def machine(tmp_path: Path) -> dict[str, str]:
    """A home, and a service manager that writes down what it is asked."""
    programs = tmp_path / "bin"
    programs.mkdir()
    recorder = programs / "systemctl"
    recorder.write_text(f'#!/bin/sh\necho "$@" >> {tmp_path}/asked\necho active\n')
    recorder.chmod(0o755)
    inherited = {k: v for k, v in os.environ.items() if not k.startswith(("STRINGD_", "XDG_"))}
    return {**inherited, "HOME": str(tmp_path), "PATH": f"{programs}:/usr/bin:/bin"}


def asked(machine: dict[str, str]) -> list[str]:
    lines = Path(machine["HOME"], "asked").read_text().splitlines()
    return [line for line in lines if line != "--user show-environment"]


def test_it_is_installed_shown_and_removed(machine: dict[str, str]) -> None:
    unit = Path(machine["HOME"], ".config/systemd/user/stringd.service")
    done = run("stringd", "service", "install", "--port", "3177", env=machine)
    assert done.code == 0, done.err
    assert unit.read_text() in done.out
    assert '"serve" "--port" "3177"' in unit.read_text()
    assert asked(machine) == ["--user daemon-reload", "--user enable --now stringd.service"]
    assert run("stringd", "service", "status", env=machine).out == f"{unit}: active\n"
    assert run("stringd", "service", "uninstall", env=machine).out == f"removed {unit}\n"
    assert not unit.exists()
    assert asked(machine)[-2:] == ["--user disable --now stringd.service", "--user daemon-reload"]
    assert run("stringd", "service", "status", env=machine).code == 1


def test_without_a_service_manager_it_says_what_to_do(machine: dict[str, str]) -> None:
    Path(machine["HOME"], "bin/systemctl").write_text("#!/bin/sh\nexit 1\n")
    done = run("stringd", "service", "install", env=machine)
    assert done.code == 1
    assert "Nothing was changed" in done.err
    assert "@reboot" in done.err
    assert not Path(machine["HOME"], ".config").exists()


def test_printing_changes_nothing(machine: dict[str, str]) -> None:
    done = run("stringd", "service", "install", "--socket", "--print", env=machine)
    assert "ListenStream=127.0.0.1:3100" in done.out
    assert not Path(machine["HOME"], ".config").exists()


def test_values_are_taken_literally() -> None:
    text = systemd_service(PLAN)
    assert r'Environment="PATH=/odd \"dir\"/100%%/$HOME\\x:/bin"' in text
    assert 'Environment="STRINGD_DATA_DIR=/home/a b/.string/daemon"' in text


def test_systemd_itself_has_no_objection(tmp_path: Path) -> None:
    (tmp_path / "stringd.service").write_text(systemd_service(PLAN))
    (tmp_path / "stringd.socket").write_text(systemd_socket(PLAN))
    if program := shutil.which("systemd-analyze"):
        files = [str(tmp_path / "stringd.service"), str(tmp_path / "stringd.socket")]
        done = subprocess.run(
            [program, "--user", "verify", *files], capture_output=True, text=True, check=False
        )
        assert "stringd." not in done.stderr
    sections = [line for line in systemd_service(PLAN).splitlines() if line.startswith("[")]
    assert sections == ["[Unit]", "[Service]", "[Install]"]


def test_launchd_reads_its_own_format() -> None:
    agent = plistlib.loads(launchd_agent(PLAN, Path("/log")).encode())
    assert agent["ProgramArguments"] == PLAN.command
    assert agent["EnvironmentVariables"] == PLAN.environment
