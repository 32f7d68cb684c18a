"""`stringd import comma`: what Comma Agents kept is used here, and nothing here is lost by it."""

import json
import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.support.commands import Done, run
from tests.support.daemon import Daemon

STRATEGY = """
name: Greet
version: "1.0"
agents:
  greeter: {model: demo/echo, systemPrompt: "{{ 'prompts/greet.md' | file }}"}
flow: {name: main, type: sequential, steps: [{agent: greeter}]}
"""
CALL = {
    "id": "7c1a1f6e-0000-4000-8000-000000000001",
    "agentName": "greeter",
    "createdAt": "2026-02-01T09:00:01.000Z",
    "userMessage": {"role": "user", "content": "hi"},
    "responseMessages": [{"role": "assistant", "content": "hello there"}],
    "text": "hello there",
    "usage": {"promptTokens": 3, "completionTokens": 2},
    "finishReason": "stop",
}


def started(comma: Path) -> dict[str, Any]:
    return {
        "type": "run_started",
        "ts": "2026-02-01T09:00:00.000Z",
        "strategyPath": str(comma / "strategies/greet.yaml"),
        "strategyName": "Greet",
        "cwd": str(comma.parent),
        "initialInput": "hi",
    }


def write(path: Path, content: object) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(content if isinstance(content, str) else json.dumps(content))
    return path


def write_run(path: Path, *events: dict[str, Any]) -> Path:
    return write(path, "".join(f"{json.dumps(event)}\n" for event in events))


@pytest.fixture
def comma(tmp_path: Path) -> Path:
    """What a user of Comma has at home."""
    folder = tmp_path / "home/.comma"
    write(folder / "strategies/greet.yaml", STRATEGY)
    write(folder / "strategies/prompts/greet.md", "Be kind.")
    write(folder / "skills/tidy/SKILL.md", "---\nname: tidy\ndescription: tidy up\n---\nTidy.\n")
    write(
        folder / "mcp.json",
        {"mcpServers": {"files": {"transport": "stdio", "command": "mcp", "cwd": "servers"}}},
    )
    keys = {
        "$global": {"openai": {"type": "api", "key": "sk-canary-1"}},
        "Greet": {"anthropic": {"type": "api", "key": "ak-canary-2"}},
    }
    write(folder / "credentials.json", keys)
    ended = {"type": "run_completed", "ts": "2026-02-01T09:00:02.000Z", "status": "completed"}
    call = {"type": "agent_call", "ts": CALL["createdAt"], "record": CALL}
    write_run(folder / "runs/whole.jsonl", started(folder), call, ended)
    write(folder / "runs/whole.config.json", {"enabledMcpServerIds": ["files"]})
    write_run(folder / "runs/cut.jsonl", started(folder))
    return folder


@pytest.fixture
def env(comma: Path) -> dict[str, str]:
    """The environment of that user, whose daemon does not run."""
    home = str(comma.parent)
    return {**os.environ, "HOME": home, "STRINGD_DATA_DIR": f"{home}/.string/daemon"}


@pytest.fixture
def running(env: dict[str, str]) -> Iterator[dict[str, str]]:
    """The same, while a daemon runs."""
    with Daemon(Path(env["HOME"]), STRINGD_DATA_DIR=env["STRINGD_DATA_DIR"]) as daemon:
        yield {**daemon.child_environment(), "HOME": env["HOME"]}


def imported(env: dict[str, str], *arguments: str, code: int = 0) -> list[dict[str, str]]:
    done = run("stringd", "import", "comma", "--json", *arguments, env=env)
    assert done.code == code, done
    found: list[dict[str, str]] = json.loads(done.out)["items"]
    return found


def outcomes(items: list[dict[str, str]]) -> dict[str, str]:
    return {item["name"]: item["outcome"] for item in items}


def stringd(env: dict[str, str], *arguments: str) -> Done:
    done = run("stringd", *arguments, env=env)
    assert done.code == 0, done
    return done


def test_what_was_commas_works_here_while_the_daemon_runs(
    running: dict[str, str], comma: Path
) -> None:
    package = comma / "packages/@acme/kit"
    write(
        package / "comma-project.json",
        {
            "name": "@acme/kit",
            "version": "1.0.0",
            "strategies": {"greet": {"path": "greet.yaml", "expose": True}},
        },
    )
    plain = STRATEGY.replace("{{ 'prompts/greet.md' | file }}", "Hi").replace("Greet", "KitGreet")
    path = write(package / "greet.yaml", plain)
    write_run(comma / "runs/kit.jsonl", {**started(comma), "strategyPath": str(path)})

    assert set(outcomes(imported(running)).values()) == {"imported"}
    listed = stringd(running, "runs").out
    assert "whole  completed" in listed
    assert "cut    interrupted" in listed
    assert "hello there" in stringd(running, "runs", "show", "whole").out
    again = stringd(running, "runs", "continue", "whole", "--input", "again", "--plain")
    assert again.out.endswith("again\n")
    assert stringd(running, "runs", "resume", "cut", "--plain").out.endswith("hi\n")
    assert stringd(running, "runs", "resume", "kit", "--plain").out.endswith("hi\n")
    assert stringd(running, "run", "Greet", "-i", "hello", "--plain").out.endswith("hello\n")
    assert "openai  kept by stringd" in stringd(running, "keys").out
    assert "trusted" in stringd(running, "mcp-servers").out


def test_definitions_and_keys_mean_the_same_here(env: dict[str, str], comma: Path) -> None:
    imported(env)
    data = Path(env["STRINGD_DATA_DIR"])
    server = json.loads((data / "mcp.json").read_text())["mcpServers"]["files"]
    assert server["cwd"] == str(comma / "servers")
    keys = json.loads((data / "credentials.json").read_text())
    assert keys["Greet"] == {"anthropic": {"type": "api", "key": "ak-canary-2"}}
    assert (data / "credentials.json").stat().st_mode & 0o077 == 0


def test_a_second_import_takes_only_what_is_new(env: dict[str, str], comma: Path) -> None:
    imported(env)
    write_run(comma / "runs/later.jsonl", started(comma))
    later = outcomes(imported(env))
    assert later.pop("later") == "imported"
    assert set(later.values()) == {"present"}


def test_what_differs_here_stays_unless_the_owner_says_otherwise(
    env: dict[str, str], comma: Path
) -> None:
    data = Path(env["STRINGD_DATA_DIR"])
    imported(env, "--only", "skills")
    write(data / "strategies/greet.yaml", "# mine\n")
    write(data / "credentials.json", {"$global": {"openai": {"type": "api", "key": "sk-mine"}}})
    write(data / "mcp.json", {"mcpServers": {"files": {"transport": "stdio", "command": "mine"}}})
    write_run(data / "runs/whole.jsonl", {**started(comma), "initialInput": "mine"})
    first = outcomes(imported(env))
    kept = {name for name, outcome in first.items() if outcome == "kept"}
    assert kept == {"greet.yaml", "openai", "files", "whole"}
    second = outcomes(imported(env, "--replace"))
    assert [second[name] for name in sorted(kept)] == ["imported"] * 3 + ["kept"]
    assert (data / "strategies/greet.yaml.before-import").read_text() == "# mine\n"
    assert "mine" in (data / "runs/whole.jsonl").read_text()


def test_a_dry_run_says_the_same_and_changes_nothing(env: dict[str, str]) -> None:
    data = Path(env["STRINGD_DATA_DIR"])
    planned = imported(env, "--dry-run")
    assert not data.exists()
    assert planned == imported(env)


def test_no_key_is_shown(env: dict[str, str]) -> None:
    done = run("stringd", "import", "comma", env=env)
    assert "keys:                2 imported" in done.out
    assert "canary" not in done.out + done.err


def test_what_cannot_be_used_here_is_named_with_the_reason(
    env: dict[str, str], comma: Path
) -> None:
    write(comma / "strategies/old.yaml", "name: Old\n")
    code = {"name": "@acme/kit", "version": "1.0.0", "tools": {"x": {"path": "x.ts"}}}
    write(comma / "packages/@acme/kit/comma-project.json", code)
    write(comma / "packages/@acme/kit/x.ts", "export {}")
    write(comma / "credentials.json", {"$global": {"openai": {"type": "odd"}}})
    write(comma / "mcp.json", '{"mcpServers": {"x": {}}}')
    items = {item["name"]: item for item in imported(env, code=1)}
    assert "version: Required" in items["old.yaml"]["note"]
    assert "x.ts is not a Python module" in items["@acme/kit"]["note"]
    assert items["openai"]["outcome"] == items["mcp.json"]["outcome"] == "refused"
    assert items["whole"]["outcome"] == "imported"


def test_runs_are_found_where_commas_configuration_keeps_them(
    env: dict[str, str], comma: Path
) -> None:
    elsewhere = comma.parent / "history"
    write_run(elsewhere / "far.jsonl", started(comma))
    write(comma / "daemon.json", {"runsDir": str(elsewhere)})
    assert outcomes(imported(env, "--only", "runs")) == {"far": "imported"}


def test_a_folder_of_a_clone_is_not_taken_for_the_owners(
    env: dict[str, str], comma: Path, tmp_path: Path
) -> None:
    clone = tmp_path / "clone"
    (clone / ".git").mkdir(parents=True)
    write(clone / ".git/HEAD", "ref: refs/heads/main\n")
    comma.rename(clone / ".comma")
    done = run("stringd", "import", "comma", str(clone / ".comma"), env=env)
    assert done.code == 1
    assert f"stringd trust {clone}" in done.err


def test_without_comma_it_says_where_it_looked(env: dict[str, str], comma: Path) -> None:
    comma.rename(comma.with_name("gone"))
    done = run("stringd", "import", "comma", env=env)
    assert done.code == 1
    assert f"there is no {comma}" in done.err
