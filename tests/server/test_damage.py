"""Whatever is damaged in a data directory, the daemon starts and names it."""

import json
import shutil
from collections.abc import Callable
from pathlib import Path

import pytest
import yaml
from websockets.sync.client import connect

from tests.runs.support import scripted, sequential, strategy
from tests.support.commands import run
from tests.support.daemon import Daemon
from tests.support.http import request
from tests.support.person import Person

Damage = Callable[[bytes], bytes]

DAMAGES: dict[str, Damage] = {
    "half": lambda content: content[: len(content) // 2],
    "garbage": lambda _content: bytes(range(256)) * 16,
    "zeros": lambda content: bytes(len(content)),
    "zeros at the start": lambda content: bytes(40) + content[40:],
    "text": lambda _content: b"not what it was\n" * 40,
    "a byte turned": lambda content: bytes([content[0] ^ 0x80]) + content[1:],
    "another start": lambda content: b"<<<<<<< HEAD\n" + content,
    "an open bracket": lambda _content: b"[{" * 5000,
    "not UTF-8": lambda content: b"\xff\xfe" + content,
    "cut at the front": lambda content: content[5:],
}
FILES = (
    "data/users.json",
    "data/sessions.db",
    "data/credentials.json",
    "data/provider-registry.json",
    "data/cache/models-catalog.json",
    "data/runs/r.jsonl",
    "data/runs/r.config.json",
    "data/runs/other.jsonl",
    ".string/trust.json",
)


@pytest.fixture(scope="module")
def whole(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A machine on which a daemon has been used."""
    directory = tmp_path_factory.mktemp("whole") / "machine"
    directory.mkdir()
    path = directory / "s.yaml"
    path.write_text(yaml.safe_dump(strategy(sequential("a"), a=scripted("one"))), "utf-8")
    with Daemon(directory) as daemon:
        person = Person(daemon.port, "u", daemon.home)
        for number in range(20):
            person.gets('/set {x} = "' + "y" * 900 + '"', f"file:t{number}")
        with connect(f"ws://127.0.0.1:{daemon.port}/ws", proxy=None) as socket:
            for run_id in ("r", "other"):
                ask = {"type": "prepare_run", "runId": run_id, "strategyPath": str(path)}
                socket.send(json.dumps(ask))
                assert json.loads(socket.recv())["type"] == "run_prepared"
                socket.send(json.dumps({"type": "start_run", "runId": run_id, "input": "go"}))
                while json.loads(socket.recv())["type"] != "strategy_completed":
                    pass
    data = daemon.data_dir
    key = {"$global": {"openai": {"type": "api", "key": "sk-nothing"}}}
    (data / "credentials.json").write_text(json.dumps(key), "utf-8")
    (data / "provider-registry.json").write_text('["openai", "groq"]', "utf-8")
    (data / "cache").mkdir(exist_ok=True)
    (data / "cache" / "models-catalog.json").write_text('{"fetchedAt": 1, "data": {}}', "utf-8")
    # It says where the directory was made, and this one is copied.
    (data / "made-here.json").unlink()
    trusted = {"trusted": [{"path": "/x", "digest": "sha256:0", "since": "2026-01-01"}]}
    (directory / ".string").mkdir(mode=0o700, exist_ok=True)
    (directory / ".string" / "trust.json").write_text(json.dumps(trusted), "utf-8")
    (directory / ".string" / "trust.json").chmod(0o600)
    return directory


@pytest.mark.parametrize("damage", DAMAGES)
@pytest.mark.parametrize("name", FILES)
def test_a_daemon_starts_and_names_what_is_damaged(
    whole: Path, tmp_path: Path, name: str, damage: str
) -> None:
    machine = tmp_path / "machine"
    shutil.copytree(whole, machine, ignore=shutil.ignore_patterns("*.sock"))
    path = machine / name
    path.write_bytes(DAMAGES[damage](path.read_bytes()))
    with Daemon(machine) as daemon:
        while not (told := request(daemon.port, "GET", "/health").json["damage"]):
            pass
        assert str(path) in told[0], told
        assert request(daemon.port, "GET", "/users").json["users"][0]["id"] == "u"
    assert any("damage: " in line and path.name in line for line in daemon.output)


def test_an_undamaged_copy_is_not_called_damaged(whole: Path, tmp_path: Path) -> None:
    machine = tmp_path / "machine"
    shutil.copytree(whole, machine, ignore=shutil.ignore_patterns("*.sock"))
    daemon = Daemon(machine)
    done = run("stringd", "doctor", "--json", env=daemon.child_environment())
    found = [each for each in json.loads(done.out)["checks"] if each["name"] == "damage"]
    assert [each["state"] for each in found] == ["ok"], found


def test_doctor_and_the_list_of_runs_name_a_damaged_timeline(whole: Path, tmp_path: Path) -> None:
    machine = tmp_path / "machine"
    shutil.copytree(whole, machine, ignore=shutil.ignore_patterns("*.sock"))
    path = machine / "data" / "runs" / "r.jsonl"
    path.write_bytes(b"nothing of it\n")
    with Daemon(machine) as daemon:
        done = run("stringd", "runs", env=daemon.child_environment())
        assert "(damaged: nothing in it can be read)" in done.out
        checked = run("stringd", "doctor", "--json", env=daemon.child_environment())
    found = [each for each in json.loads(checked.out)["checks"] if each["name"] == "damage"]
    assert checked.code == 1
    assert [(each["state"], str(path) in each["detail"]) for each in found] == [("broken", True)]
    assert "stringd runs delete r" in found[0]["fix"]
