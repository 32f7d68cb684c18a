"""Public MCP servers from npm and PyPI, started here and mounted in a real daemon.

Their texts stay in a temporary folder; only counts are printed. `STRINGD_BENCH_SERVERS` names a
folder that keeps the packages for the next time.
"""

import base64
import json
import os
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from importlib import import_module
from pathlib import Path
from typing import Any, Final, NamedTuple

import msgspec

from bench.arms import Count, RealTask, RealTool, Step, Turn, string_call, string_command
from stringd.client import String
from stringd.runtime.packages.mcp_app import Mount
from tests.mcp.support import answer_of
from tests.support.daemon import Daemon
from tests.support.http import request

INSTALL_SECONDS: Final = 600
ROOT: Final = "/work/project"
"""What the counts read where the temporary folder's name is."""


class PublicServer(NamedTuple):
    name: str
    package: str
    program: str
    arguments: tuple[str, ...] = ()
    environment: tuple[str, ...] = ()
    """Credentials that are not real: enough to start and to list tools."""
    npm: bool = True


SERVERS: Final = (
    PublicServer(
        "files", "@modelcontextprotocol/server-filesystem", "mcp-server-filesystem", ("{root}",)
    ),
    PublicServer(
        "memory",
        "@modelcontextprotocol/server-memory",
        "mcp-server-memory",
        (),
        ("MEMORY_FILE_PATH={root}/../memory.json",),
    ),
    PublicServer(
        "everything", "@modelcontextprotocol/server-everything", "mcp-server-everything", ("stdio",)
    ),
    PublicServer(
        "thinking",
        "@modelcontextprotocol/server-sequential-thinking",
        "mcp-server-sequential-thinking",
    ),
    PublicServer("github", "@modelcontextprotocol/server-github", "mcp-server-github"),
    PublicServer(
        "gitlab",
        "@modelcontextprotocol/server-gitlab",
        "mcp-server-gitlab",
        (),
        ("GITLAB_PERSONAL_ACCESS_TOKEN=none",),
    ),
    PublicServer(
        "slack",
        "@modelcontextprotocol/server-slack",
        "mcp-server-slack",
        (),
        ("SLACK_BOT_TOKEN=none", "SLACK_TEAM_ID=none"),
    ),
    PublicServer(
        "postgres",
        "@modelcontextprotocol/server-postgres",
        "mcp-server-postgres",
        ("postgresql://127.0.0.1:1/none",),
    ),
    PublicServer("playwright", "@playwright/mcp", "playwright-mcp"),
    PublicServer(
        "notion", "@notionhq/notion-mcp-server", "notion-mcp-server", (), ("NOTION_TOKEN=none",)
    ),
    PublicServer(
        "sentry",
        "@sentry/mcp-server",
        "sentry-mcp",
        ("--access-token=none",),
    ),
    PublicServer("git", "mcp-server-git", "mcp-server-git", npm=False),
    PublicServer("time", "mcp-server-time", "mcp-server-time", npm=False),
    PublicServer("fetch", "mcp-server-fetch", "mcp-server-fetch", npm=False),
)
VOCABULARY: Final = "@anthropic-ai/tokenizer"


class Recorded(NamedTuple):
    """What the servers offer, and ten tasks done with them through `string`."""

    versions: dict[str, str]
    """Server → package and version."""
    missing: dict[str, str]
    """Server → why it could not be mounted."""
    tools: list[RealTool]
    tasks: list[RealTask]
    discoveries: dict[str, list[Turn]]
    vocabulary: Count | None
    """The one that npm gave, if it did."""


@contextmanager
def packages() -> Iterator[Path]:
    """A folder with the packages in it. Raises `OSError` or `CalledProcessError`."""
    kept = os.environ.get("STRINGD_BENCH_SERVERS")
    with tempfile.TemporaryDirectory() as fresh:
        folder = Path(kept or fresh)
        folder.mkdir(parents=True, exist_ok=True)
        if not (folder / "node_modules").exists():
            named = [each.package for each in SERVERS if each.npm]
            _run("npm", "install", "--no-audit", "--no-fund", "--ignore-scripts", "--prefix")(
                str(folder), *named, VOCABULARY
            )
        if not (folder / "venv").exists():
            _run(sys.executable, "-m", "venv")(str(folder / "venv"))
            named = [each.package for each in SERVERS if not each.npm]
            _run(str(folder / "venv/bin/pip"), "install", "-q")(*named)
        yield folder


def record(folder: Path, tasks: list[dict[str, Any]]) -> Recorded:
    """Mount every server that starts, and do the tasks."""
    with tempfile.TemporaryDirectory() as place, Daemon(Path(place, "daemon")) as daemon:
        root = _project(Path(place, "project"))
        home = Path(place, "home")
        versions, missing = dict[str, str](), dict[str, str]()
        tools: list[RealTool] = []
        with String("bench", home=home, port=daemon.port, cwd=root) as string:
            for server in SERVERS:
                done = string.exec("file:main", _install(folder, server, root))
                if not done.ok:
                    missing[server.name] = done.content.splitlines()[0][:120]
                    continue
                versions[server.name] = f"{server.package} {_version(folder, server)}"
                tools += _tools(home, server.name)
            asked = [_task(each, str(root)) for each in tasks]
            usable = [task for task in asked if all(step.server in versions for step in task.steps)]
            say = _Speaker(daemon.port, str(root))
            discoveries = {task.words: _discover(say, task) for task in usable}
            performed = [_performed(say, task, str(root)) for task in usable]
        vocabulary = folder / "node_modules" / VOCABULARY / "claude.json"
        found = published_vocabulary(vocabulary) if vocabulary.exists() else None
        return Recorded(versions, missing, tools, performed, discoveries, found)


def published_vocabulary(path: Path) -> Count:
    """The vocabulary that a vendor published as ranks of byte sequences."""
    held = json.loads(path.read_text("utf-8"))
    ranks: dict[bytes, int] = {}
    for line in held["bpe_ranks"].splitlines():
        _, offset, *words = line.split(" ")
        ranks |= {base64.b64decode(word): int(offset) + at for at, word in enumerate(words)}
    encoding = import_module("tiktoken").Encoding(
        "published",
        pat_str=held["pat_str"],
        mergeable_ranks=ranks,
        special_tokens=held["special_tokens"],
    )
    return lambda text: len(encoding.encode_ordinary(text))


class _Speaker:
    """Calls `string` over MCP; the temporary folder has a short name in what is counted."""

    def __init__(self, port: int, root: str) -> None:
        self._port = port
        self._root = root

    def __call__(self, command: str) -> Turn:
        asked = {"name": "string", "arguments": {"cmd": command}}
        message = {"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": asked}
        headers = {"Accept": "application/json, text/event-stream", "X-User-Id": "bench"}
        result = answer_of(request(self._port, "POST", "/mcp", message, headers))["result"]
        answer = "\n".join(part["text"] for part in result["content"])
        assert not result["isError"], f"{command}: {answer}"
        return Turn(*(each.replace(self._root, ROOT) for each in (string_call(command), answer)))


def _discover(say: _Speaker, task: RealTask) -> list[Turn]:
    """Ask for the words; an action that is not among the answers is opened by its name."""
    turns = [say(f"/find {task.words} --apps")]
    for step in task.steps:
        call = f"{step.server}.{step.tool}"
        lines = turns[0].result.splitlines()
        shown = next((line for line in lines if line.startswith(f"{call} ")), None)
        nested = any(isinstance(value, list | dict) for value in step.arguments.values())
        if shown is None or nested or any(f"<{name}" not in shown for name in step.arguments):
            turns.append(say(f"app:{step.server}#{step.tool}"))
    return turns


def _performed(say: _Speaker, task: RealTask, root: str) -> RealTask:
    done = [step._replace(answer=say(string_command(step)).result) for step in task.steps]
    shown = (
        step._replace(arguments=json.loads(json.dumps(step.arguments).replace(root, ROOT)))
        for step in done
    )
    return task._replace(steps=tuple(shown))


def _task(task: dict[str, Any], root: str) -> RealTask:
    filled = json.loads(json.dumps(task).replace("{root}", root))
    return RealTask(filled["words"], tuple(Step(**each) for each in filled["steps"]))


def _tools(home: Path, name: str) -> list[RealTool]:
    mount = msgspec.json.decode((home / "packages" / name / "mcp.json").read_bytes(), type=Mount)
    return [
        RealTool(name, each.name, each.description, each.schema) for each in mount.tools.values()
    ]


def _install(folder: Path, server: PublicServer, root: Path) -> str:
    place = "node_modules/.bin" if server.npm else "venv/bin"
    words = ["env", *server.environment, str(folder / place / server.program), *server.arguments]
    command = " ".join(word.replace("{root}", str(root)) for word in words)
    return f"/install --mcp {server.name} --sandbox open -- {command}"


def _version(folder: Path, server: PublicServer) -> str:
    if server.npm:
        described = folder / "node_modules" / server.package / "package.json"
        return str(json.loads(described.read_text("utf-8"))["version"])
    shown = _run(str(folder / "venv/bin/pip"), "show")(server.package)
    return next(line.split()[1] for line in shown.splitlines() if line.startswith("Version:"))


def _project(root: Path) -> Path:
    """A small repository, the same every time."""
    root.mkdir(parents=True)
    (root / "README.md").write_text("# Project\n\nA small one, with notes and a plan.\n", "utf-8")
    (root / "plan.md").write_text("# Plan\n\n- measure\n- write\n", "utf-8")
    day = "2026-01-02T03:04:05+0000"
    dates = {"GIT_AUTHOR_DATE": day, "GIT_COMMITTER_DATE": day}
    _run("git", "init", "-q")(str(root))
    _run("git", "-C", str(root))("add", ".")
    person = ("-c", "user.name=Ada", "-c", "user.email=ada@example.org")
    _run("git", "-C", str(root), *person, **dates)("commit", "-qm", "Begin")
    return root


def _run(*begin: str, **environment: str) -> Callable[..., str]:
    def run(*rest: str) -> str:
        return subprocess.run(
            [*begin, *rest],
            check=True,
            capture_output=True,
            text=True,
            timeout=INSTALL_SECONDS,
            env={**os.environ, **environment},
        ).stdout

    return run
