"""`stringd gate` and `stringd gate audit` as programs."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from stringd import __version__
from stringd.gate.audit import FILE_NAME, AuditLog
from tests.gate.support import PATIENCE


def run(*words: str, **env: str) -> "subprocess.CompletedProcess[str]":
    return subprocess.run(
        [sys.executable, "-m", "stringd", "gate", *words],
        capture_output=True,
        stdin=subprocess.DEVNULL,
        timeout=PATIENCE,
        env=os.environ | env,
        text=True,
        check=False,
    )


@pytest.fixture
def log(tmp_path: Path) -> Path:
    audit = AuditLog(tmp_path / FILE_NAME)
    audit.append("started", {"version": "1"})
    audit.append(
        "received", {"id": "a", "pipeline": [["echo", "\x1b[2J", "a b"]], "privileged": True}
    )
    audit.append("decided", {"id": "a", "decision": "denied", "by": "terminal", "note": "no\x07"})
    audit.close()
    return tmp_path / FILE_NAME


def test_tail_shows_a_request_in_one_line_without_its_escapes(log: Path) -> None:
    done = run("audit", "tail", "-n", "2", STRINGD_DATA_DIR=str(log.parent))
    started, asked = done.stdout.splitlines()
    assert started.endswith("started     version: 1")
    assert asked.endswith("denied      root  echo $'\\x1b[2J' 'a b'  note: no\\x07")
    assert done.returncode == 0


def test_the_log_is_found_from_every_directory(tmp_path: Path) -> None:
    (tmp_path / ".string").mkdir()
    audit = AuditLog(tmp_path / ".string" / FILE_NAME)
    audit.append("started", {"version": "1"})
    audit.close()
    for cwd in ("/", str(tmp_path)):
        words = [sys.executable, "-m", "stringd", "gate", "audit", "verify"]
        env = {name: value for name, value in os.environ.items() if name != "STRINGD_DATA_DIR"}
        for more in ({}, {"STRINGD_DATA_DIR": ".stringd"}):
            done = subprocess.run(
                words,
                cwd=cwd,
                env=env | {"HOME": str(tmp_path)} | more,
                capture_output=True,
                text=True,
                check=False,
            )
            assert done.stdout.startswith("1 records, unbroken: "), done.stderr


def test_tail_shows_as_many_records_as_it_is_asked_for(log: Path) -> None:
    assert run("audit", "tail", "-n", "0", STRINGD_DATA_DIR=str(log.parent)).stdout == ""
    done = run("audit", "tail", "-n", "-1", STRINGD_DATA_DIR=str(log.parent))
    assert (done.returncode, done.stdout) == (2, "")
    assert "-1 is not a number of records" in done.stderr


def test_tail_is_what_audit_does_alone(log: Path) -> None:
    alone = run("audit", "--json", STRINGD_DATA_DIR=str(log.parent))
    assert [json.loads(line)["seq"] for line in alone.stdout.splitlines()] == [1, 2, 3]


def test_verify_accepts_an_unbroken_log(log: Path) -> None:
    done = run("audit", "verify", STRINGD_DATA_DIR=str(log.parent))
    assert (done.returncode, done.stdout) == (0, f"3 records, unbroken: {log}\n")


def test_verify_exits_1_and_names_the_first_broken_record(log: Path) -> None:
    log.write_text(log.read_text().replace("denied", "approved"))
    done = run("audit", "verify", STRINGD_DATA_DIR=str(log.parent))
    assert done.returncode == 1
    assert done.stderr.startswith("line 3 is broken: its hash does not match its content\n")
    as_json = json.loads(run("audit", "verify", "--json", "--file", str(log)).stdout)
    assert as_json["broken"]["line"] == 3
    assert (as_json["ok"], as_json["records"]) == (False, 2)


def test_export_prints_one_json_array(log: Path) -> None:
    done = run("audit", "export", "--file", str(log))
    assert [record["event"] for record in json.loads(done.stdout)] == [
        "started",
        "received",
        "decided",
    ]


def test_a_missing_log_is_named(tmp_path: Path) -> None:
    done = run("audit", "verify", STRINGD_DATA_DIR=str(tmp_path))
    assert done.returncode == 1
    assert f"there is no log at {tmp_path / FILE_NAME}" in done.stderr


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["--bogus"], "unknown option: --bogus"),
        (["extra"], "unknown option: extra"),
        (["--socket", ""], "error: --socket requires a value"),
        (
            ["--forward-agent"],
            "error: --forward-agent requires --host (no SSH session in local mode)",
        ),
        (["--no-confirm-unprivileged"], "error: --no-confirm-unprivileged: every command is asked"),
        (["--unattended-eligible"], "error: --unattended-eligible: nothing runs unattended"),
        (["--no-unattended-eligible", "--bogus"], "unknown option: --bogus"),
        (["--pkexec"], "error: --pkexec: privileged commands run through sudo"),
        (
            ["--host", "x"],
            "error: --host: this gate asks for every machine: stringd gate hosts add",
        ),
        (["--notify", "it's"], "error: the notify command cannot be read: No closing quotation"),
        (["--socket", "/dev/null/x/gate.sock"], "error: /dev/null/x cannot be made: "),
        (["--arming", "soon"], "error: argument --arming: soon is not a number"),
    ],
)
def test_what_cannot_be_is_refused_with_a_reason(words: list[str], message: str) -> None:
    done = run(*words)
    assert done.returncode == 1
    assert done.stderr.startswith(message)


@pytest.mark.parametrize("word", ["-V", "--version"])
def test_the_version_is_printed(word: str) -> None:
    done = run(word)
    assert (done.returncode, done.stdout) == (0, f"stringd {__version__}\n")


@pytest.mark.parametrize("word", ["-h", "--help"])
def test_help_on_standard_error_names_the_keys_and_the_settings(word: str) -> None:
    done = run(word)
    assert (done.returncode, done.stdout) == (0, "")
    assert done.stderr.startswith("usage: stringd gate ")
    assert "STRINGD_GATE_PROMPT_TIMEOUT" in done.stderr
    assert "y approves" in done.stderr


def test_the_gate_imports_nothing_but_the_standard_library() -> None:
    script = (
        "import sys; before = set(sys.modules); import stringd.cli.gate, stringd.gate.app;"
        "print(sorted({m.partition('.')[0] for m in set(sys.modules) - before}"
        " - set(sys.stdlib_module_names)))"
    )
    done = subprocess.run(
        [sys.executable, "-c", script], capture_output=True, text=True, check=True
    )
    assert done.stdout == "['stringd']\n"
