"""`stringd keys`, `providers`, `models`, `mcp-servers` and `trash`, on one running daemon."""

import json
import os
import pty
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml

from stringd.runs.tools.trash import Trash
from tests.runs.models import servers
from tests.runs.support import sequential, strategy
from tests.support import web
from tests.support.commands import Done, run
from tests.support.daemon import WAIT_SECONDS, Daemon
from tests.support.web import Asked, WebServer

KEY = "sk-of-a-test-1234567890"


@pytest.fixture(scope="module")
def daemon(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Daemon]:
    with Daemon(tmp_path_factory.mktemp("keys"), GROQ_API_KEY="gsk-of-the-daemon") as running:
        yield running


def stringd(daemon: Daemon, *args: str, typed: str = "", **env: str) -> Done:
    inherited = {**daemon.child_environment(), **env}
    inherited.pop("GROQ_API_KEY")
    return run("stringd", *args, env=inherited, stdin=typed.encode(), cwd=daemon.directory)


def answer(asked: Asked) -> web.Reply:
    """A server that lists models and completes, in the form it is asked in."""
    if asked.method == "GET":
        return web.Reply(json.dumps({"data": [{"id": "big"}, {"id": "\u202esmall"}]}))
    if asked.target.endswith("/v1/messages"):
        reply = servers.anthropic(servers.anthropic_text("from the other"))
    else:
        reply = servers.openai_text("from the one")
    return web.Reply(b"".join(reply.chunks), "text/event-stream")


def test_doctor_asks_a_provider_only_on_request_whether_its_key_works(daemon: Daemon) -> None:
    def checks(*more: str) -> dict[str, Any]:
        report = json.loads(stringd(daemon, "doctor", "--json", *more).out)
        return {each["name"]: each for each in report["checks"]}

    with WebServer(answer) as server:
        address = ("--base-url", f"{server.url}/v1")
        stringd(daemon, "keys", "set", "asked", *address, typed=f"{KEY}\n")
        assert "key asked" not in checks()
        found = checks("--ask", "asked", "--ask", "nobody")
        assert (found["key asked"]["state"], found["key nobody"]["state"]) == ("ok", "broken")
    gone = checks("--ask", "asked")["key asked"]
    assert gone["state"] == "broken"
    assert KEY not in json.dumps(gone)
    stringd(daemon, "keys", "remove", "asked")


def run_agent(daemon: Daemon, model: str, **env: str) -> Done:
    path = daemon.directory / "agent.yaml"
    path.write_text(yaml.safe_dump(strategy(sequential("a"), a={"model": model})), "utf-8")
    return stringd(daemon, "run", str(path), "-i", "x", **env)


@pytest.mark.parametrize(
    ("provider", "path", "header", "said"),
    [
        ("cerebras", "/v1/chat/completions", "authorization", "from the one"),
        ("minimax", "/v1/messages", "x-api-key", "from the other"),
    ],
)
def test_a_provider_of_the_catalog_works_with_a_key_set_while_the_daemon_runs(
    daemon: Daemon, provider: str, path: str, header: str, said: str
) -> None:
    before = run_agent(daemon, f"{provider}/m")
    assert before.code == 1
    assert f"Type: stringd keys set {provider}" in before.out + before.err
    with WebServer(answer) as server:
        address = f"{server.url}/v1"
        done = stringd(daemon, "keys", "set", provider, "--base-url", address, typed=f"{KEY}\n")
        assert (done.code, done.err) == (0, "")
        after = run_agent(daemon, f"{provider}/m")
        assert (after.code, after.err) == (0, "")
        assert said in after.out
        assert server.asked[-1].target == path
        assert server.asked[-1].headers[header].endswith(KEY)
        live = stringd(daemon, "models", provider, "--live")
        assert live.out.split() == [f"{provider}/big", f"{provider}/\\u{{202e}}small"]
    gone = stringd(daemon, "models", provider, "--live", "--json")
    assert gone.code == 1
    assert list(json.loads(gone.out)["errors"]) == [provider]
    assert stringd(daemon, "keys", "remove", provider).code == 0
    assert run_agent(daemon, f"{provider}/m").code == 1


def test_a_key_from_standard_input_is_kept_and_listed_without_being_shown(daemon: Daemon) -> None:
    done = stringd(daemon, "keys", "set", "nvidia", typed=f"  {KEY}\nmore\n")
    assert (done.code, done.err) == (0, "")
    kept = json.loads((daemon.data_dir / "credentials.json").read_text("utf-8"))
    assert kept["$global"]["nvidia"] == {"type": "api", "key": KEY}
    listed = stringd(daemon, "keys")
    assert ["nvidia", "kept", "by", "stringd"] in [x.split() for x in listed.out.splitlines()]
    assert "GROQ_API_KEY of the daemon's environment" in listed.out
    facts = stringd(daemon, "keys", "list", "--json")
    assert {
        "provider": "nvidia",
        "source": "stored",
        "variable": None,
        "usable": True,
    } in json.loads(facts.out)
    shown = stringd(daemon, "providers", "nvidia")
    assert shown.out == "ok  nvidia  key: kept by stringd\n"
    assert KEY not in done.out + listed.out + facts.out + shown.out
    assert stringd(daemon, "keys", "remove", "nvidia").out == "removed the key of nvidia\n"
    again = stringd(daemon, "keys", "remove", "nvidia")
    assert (again.code, again.out) == (1, "")
    assert "no key is kept for nvidia" in again.err


def test_a_key_is_typed_in_a_terminal_unseen(daemon: Daemon) -> None:
    master, slave = pty.openpty()
    with subprocess.Popen(
        [sys.executable, "-m", "stringd", "keys", "set", "zai"],
        env=daemon.child_environment(),
        stdin=slave,
        stdout=slave,
        stderr=slave,
        start_new_session=True,
    ) as process:
        os.close(slave)
        screen = b""
        while b"(not shown): " not in screen:
            screen += os.read(master, 1024)
        os.write(master, f"{KEY}\n".encode())
        while b"kept the key" not in screen:
            screen += os.read(master, 1024)
        assert process.wait(WAIT_SECONDS) == 0
    os.close(master)
    assert KEY.encode() not in screen
    assert stringd(daemon, "keys", "remove", "zai").code == 0


@pytest.mark.parametrize(
    ("arguments", "typed", "why"),
    [
        (("nvidia", KEY), "", "a key on the command line can be read by others"),
        (("nvidia",), "\n", "no key was given"),
        (("nvidia",), "schlüssel\n", "that is not a key"),
        (("nvidai",), KEY, "did you mean nvidia?"),
        (("mine", "--base-url", "ftp://x"), KEY, "--base-url is an http:// or https:// address"),
        (("nvidia", "--from-env"), "", "NVIDIA_API_KEY is not set in this shell"),
        (("demo",), KEY, "needs no key"),
    ],
)
def test_what_is_not_a_key_is_refused(
    daemon: Daemon, arguments: tuple[str, ...], typed: str, why: str
) -> None:
    done = stringd(daemon, "keys", "set", *arguments, typed=typed)
    assert done.code == 1
    assert why in done.err
    assert KEY not in done.out + done.err


def test_a_key_the_shell_has_and_the_daemon_has_not_is_told(daemon: Daemon) -> None:
    shown = stringd(daemon, "providers", "mistral", MISTRAL_API_KEY=KEY)
    assert "the daemon does not have MISTRAL_API_KEY, which this shell has" in shown.out
    assert "stringd keys set mistral --from-env" in shown.out
    failed = run_agent(daemon, "mistral/m", MISTRAL_API_KEY=KEY)
    said = " ".join((failed.out + failed.err).split())
    assert "The daemon was started without MISTRAL_API_KEY" in said
    assert "stringd keys set mistral" in said
    done = stringd(daemon, "keys", "set", "mistral", "--from-env", "--json", MISTRAL_API_KEY=KEY)
    assert json.loads(done.out)["source"] == "stored"
    assert stringd(daemon, "keys", "remove", "mistral").code == 0


def test_a_key_that_the_environment_overrides_is_told(daemon: Daemon) -> None:
    done = stringd(daemon, "keys", "set", "groq", typed=KEY)
    assert "but GROQ_API_KEY of the daemon's environment comes first" in done.out
    gone = stringd(daemon, "keys", "remove", "groq")
    assert gone.code == 0
    assert "GROQ_API_KEY of the daemon's environment is still used" in gone.err


def test_providers_and_models_are_listed(daemon: Daemon) -> None:
    near = stringd(daemon, "providers").out
    assert "ok  demo " in near
    assert "--  openai " in near
    assert "more with: stringd providers --all" in near
    every: list[dict[str, Any]] = json.loads(stringd(daemon, "providers", "--json").out)
    assert {"cerebras", "moonshotai", "huggingface", "lmstudio"} <= {each["id"] for each in every}
    assert len(every) > 150
    models = stringd(daemon, "models").out
    assert "demo/echo" in models
    assert "groq/" in models
    assert "\nopenai/" not in models
    unknown = stringd(daemon, "models", "opnai")
    assert (unknown.code, "did you mean openai?" in unknown.err) == (1, True)


def test_mcp_servers_are_listed_with_their_trust(daemon: Daemon) -> None:
    own = {"transport": "stdio", "command": "no-such-program", "enabledByDefault": True}
    (daemon.data_dir / "mcp.json").write_text(json.dumps({"mcpServers": {"own": own}}), "utf-8")
    project = daemon.directory / "project"
    (project / ".stringd").mkdir(parents=True)
    theirs = {"mcpServers": {"theirs": {**own, "enabledByDefault": False}}}
    (project / ".stringd" / "mcp.json").write_text(json.dumps(theirs), "utf-8")
    shown = stringd(daemon, "mcp-servers", "--cwd", str(project))
    lines = [line.split() for line in shown.out.splitlines()]
    assert ["own", "data", "directory", "stdio", "trusted", "on", "by", "default"] in lines
    assert any(line[:4] == ["theirs", "workspace", "stdio", "not"] for line in lines)
    assert f"stringd trust {project}" in shown.out
    listed = json.loads(stringd(daemon, "mcp-servers", "--cwd", str(project), "--json").out)
    assert {each["id"]: each["trusted"] for each in listed} == {"own": True, "theirs": False}
    (daemon.data_dir / "mcp.json").unlink()


def test_deleted_files_are_listed_restored_and_cleared(daemon: Daemon) -> None:
    trash = Trash(daemon.data_dir / "trash", daemon.directory)
    for name in ("one.txt", "two.txt", "three.txt"):
        trash.put(name, name.encode(), 0o644, run_id="r", agent_name="a")
    listed = stringd(daemon, "trash").out.splitlines()
    assert [line.split()[3] for line in listed[:3]] == ["one.txt", "two.txt", "three.txt"]
    assert stringd(daemon, "trash", "restore", "two.txt").code == 0
    assert (daemon.directory / "two.txt").read_text("utf-8") == "two.txt"
    moved = stringd(daemon, "trash", "restore", "1", "--to", "kept/one.txt", "--json")
    assert Path(json.loads(moved.out)["restored"]) == daemon.directory / "kept" / "one.txt"
    wrong = stringd(daemon, "trash", "restore", "nine.txt")
    assert (wrong.code, "nine.txt is not in the trash" in wrong.err) == (1, True)
    asked = stringd(daemon, "trash", "clear")
    assert (asked.code, asked.err) == (1, "stringd: say --yes to delete for good\n")
    cleared = stringd(daemon, "trash", "clear", "--yes", "--json")
    assert json.loads(cleared.out)["cleared"] == 1
    assert "is empty" in stringd(daemon, "trash").out
