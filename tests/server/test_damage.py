"""Whatever is damaged in a data directory, the daemon starts and names it."""

import json
import os
import shutil
import time
from collections.abc import Callable
from pathlib import Path

import msgspec
import pytest
import yaml
from websockets.sync.client import connect

from stringd.runs.tools.trash import Trash
from stringd.runtime.topics.undo_store import UndoRecord
from stringd.server.damage import DamageCheck
from tests.runs.support import scripted, sequential, strategy
from tests.support.commands import run
from tests.support.daemon import WAIT_SECONDS, Daemon
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
# Those damaged together have different readers, so that none hides what another does.
FILES = {
    "users": (
        "data/users.json",
        "data/credentials.json",
        "data/runs/r.jsonl",
        "data/trash/bucket/x.tar.gz",
    ),
    "sessions": (
        "data/sessions.db",
        "data/provider-registry.json",
        "data/runs/r.config.json",
        "data/runs/events/other.jsonl",
    ),
    "trust": (
        ".string/trust.json",
        "data/cache/models-catalog.json",
        "data/runs/other.jsonl",
        "data/mcp.json",
    ),
}


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
    server = {"transport": "stdio", "command": "no-such-program"}
    (data / "mcp.json").write_text(json.dumps({"mcpServers": {"one": server}}), "utf-8")
    deleted = Trash(data / "trash", directory).put(
        "x", b"x" * 900, 0o600, run_id="r", agent_name="a"
    )
    (data / "trash" / "bucket").mkdir()
    deleted.rename(data / "trash" / "bucket" / "x.tar.gz")
    # It says where the directory was made, and this one is copied.
    (data / "made-here.json").unlink()
    home = daemon.home
    undo = data / "undo" / "u" / "file%3Amain" / "last.json"
    undo.parent.mkdir(parents=True)
    step = UndoRecord(1, "u", "file:main", "/x", True, "x", None, "0", "2026-01-01")
    undo.write_bytes(msgspec.json.encode(step))
    for app in ("a", "a/b"):
        (home / "apps" / app).mkdir(parents=True)
        (home / "apps" / app / "env.json").write_text('{"KEY": "value"}', "utf-8")
    (home / "config.json").write_text('{"env": {"KEY": "value"}}', "utf-8")
    (home / "packages").mkdir()
    (home / "packages" / ".installed.json").write_text('{"packages": {}}', "utf-8")
    (home / "packages" / "served").mkdir()
    (home / "packages" / "served" / "mcp.json").write_text('{"url": "http://one.test"}', "utf-8")
    (home / "packages" / ".saved.json").write_text('{"page": "0"}', "utf-8")
    trusted = {"trusted": [{"path": "/x", "digest": "sha256:0", "since": "2026-01-01"}]}
    (directory / ".string").mkdir(mode=0o700, exist_ok=True)
    (directory / ".string" / "trust.json").write_text(json.dumps(trusted), "utf-8")
    (directory / ".string" / "trust.json").chmod(0o600)
    return directory


def copied(whole: Path, tmp_path: Path) -> Path:
    """A copy of that machine; its users live in it."""
    machine = tmp_path / "machine"
    # Written now: a directory of older files is not taken for one that was made here.
    left_out = shutil.ignore_patterns("*.sock")
    shutil.copytree(whole, machine, ignore=left_out, copy_function=shutil.copy)
    users = machine / "data" / "users.json"
    users.write_bytes(users.read_bytes().replace(bytes(whole), bytes(machine)))
    return machine


@pytest.mark.parametrize("damage", DAMAGES)
@pytest.mark.parametrize("names", FILES.values(), ids=FILES)
def test_a_daemon_starts_and_names_what_is_damaged(
    whole: Path, tmp_path: Path, names: tuple[str, ...], damage: str
) -> None:
    machine = copied(whole, tmp_path)
    paths = [machine / name for name in names]
    for path in paths:
        path.write_bytes(DAMAGES[damage](path.read_bytes()))
    with Daemon(machine) as daemon:
        deadline = time.monotonic() + WAIT_SECONDS
        while len(told := request(daemon.port, "GET", "/health").json["damage"]) < len(paths):
            assert time.monotonic() < deadline, told
        for path in paths:
            assert sum(str(path) in each for each in told) == 1, told
        assert len(told) == len(paths), told
        assert request(daemon.port, "GET", "/users").json["users"][0]["id"] == "u"
    for path in paths:
        assert any("damage: " in line and path.name in line for line in daemon.output)


QUIET = (
    "data/homes.json",
    "data/undo/u/file%3Amain/last.json",
    "home/config.json",
    "home/apps/a/env.json",
    "home/apps/a/b/env.json",
    "home/packages/.installed.json",
    "home/packages/.saved.json",
    "home/packages/served/mcp.json",
    "data/mcp.json",
    "data/runs/events/r.jsonl",
    "data/trash/bucket/x.tar.gz",
)
"""Files that a daemon needs only when somebody asks for what is in them."""


@pytest.mark.parametrize("name", QUIET)
def test_a_look_names_what_is_damaged_since_the_last_one(
    whole: Path, tmp_path: Path, name: str
) -> None:
    machine = copied(whole, tmp_path)
    check = DamageCheck(machine / "data")
    assert check.look() == []
    path = machine / name
    undamaged = path.read_bytes()
    for damage in DAMAGES.values():
        path.write_bytes(damage(undamaged))
        # One that is being written is looked at later.
        os.utime(path, (1, 1))
        assert [each.path for each in check.look()] == [path]
    path.write_bytes(undamaged)
    os.utime(path, (1, 1))
    assert check.look() == []


def test_damage_that_happens_while_a_daemon_runs_is_named(whole: Path, tmp_path: Path) -> None:
    machine = copied(whole, tmp_path)
    path = machine / "data" / "provider-registry.json"
    with Daemon(machine) as daemon:
        path.write_bytes(b"[[")
        while not (told := request(daemon.port, "GET", "/health").json["damage"]):
            pass
        assert str(path) in told[0]
        with connect(f"ws://127.0.0.1:{daemon.port}/ws", proxy=None) as socket:
            socket.send(json.dumps({"type": "register_provider", "providerId": "openai"}))
            assert json.loads(socket.recv())["type"] == "provider_registered"
        assert json.loads(path.read_bytes()) == ["openai"]
        kept = path.with_name(f"{path.name}.unreadable")
        assert kept.read_bytes() == b"[["
        while str(kept) not in request(daemon.port, "GET", "/health").json["damage"][0]:
            pass
    assert any(f"damage: {kept}" in line for line in daemon.output)


def test_a_damaged_record_of_packages_is_kept_aside_by_the_next_installation(
    whole: Path, tmp_path: Path
) -> None:
    machine = copied(whole, tmp_path)
    record = machine / "home" / "packages" / ".installed.json"
    record.write_bytes(b"{]")
    with Daemon(machine) as daemon:
        person = Person(daemon.port, "u", daemon.home)
        person.put("app.md", "---\nname: new\ntype: app\n---\n# New\n")
        person.gets("/install app.md")
    assert record.with_name(".installed.json.unreadable").read_bytes() == b"{]"
    assert [each.path.name for each in DamageCheck(machine / "data").look()] == [
        ".installed.json.unreadable"
    ]


def test_a_damaged_list_of_apps_is_not_called_an_empty_one(whole: Path, tmp_path: Path) -> None:
    machine = copied(whole, tmp_path)
    path = machine / "home" / "config.json"
    path.write_bytes(b"{]")
    with Daemon(machine) as daemon:
        refused = Person(daemon.port, "u", daemon.home).fails("/open app:a")
    assert refused.text.startswith("ERROR(LOAD_ERROR): config.json cannot be read")
    assert path.read_bytes() == b"{]"


def test_without_the_record_of_saved_files_none_counts_as_your_own(
    whole: Path, tmp_path: Path
) -> None:
    machine = copied(whole, tmp_path)
    (machine / "home" / "packages" / ".saved.json").write_bytes(b"{]")
    canary = tmp_path / "canary"
    with Daemon(machine) as daemon:
        person = Person(daemon.port, "u", daemon.home)
        person.put("page.md", f"# P\n\n```act.go\nCLI touch {canary}\n```\n")
        person.gets("/open page.md")
        assert "stringd trust" in person.fails("/act.go").text
    assert not canary.exists()


def test_a_damaged_choice_of_user_is_said(tmp_path: Path) -> None:
    path = tmp_path / "config.json"
    path.write_bytes(b"{]")
    daemon = Daemon(tmp_path)
    with daemon:
        env = {**daemon.child_environment(), "STRINGD_CONFIG": str(path), "STRINGD_USER": ""}
        done = run("string", "file:main", "/info", env=env)
    assert f"{path} cannot be read, so you are user default" in done.err


def test_an_undamaged_copy_is_not_called_damaged(whole: Path, tmp_path: Path) -> None:
    machine = copied(whole, tmp_path)
    daemon = Daemon(machine)
    done = run("stringd", "doctor", "--json", env=daemon.child_environment())
    found = [each for each in json.loads(done.out)["checks"] if each["name"] == "damage"]
    assert [each["state"] for each in found] == ["ok"], found


def test_doctor_and_the_list_of_runs_name_a_damaged_timeline(whole: Path, tmp_path: Path) -> None:
    machine = copied(whole, tmp_path)
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
