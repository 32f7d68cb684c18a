"""Start-up is kept short by looking at what is imported, not at a clock."""

import subprocess
import sys
from pathlib import Path

import pytest

import stringd
from tests.support.daemon import WAIT_SECONDS, Daemon, free_port

SITE = "site-packages"
INSTALLED = Path(__file__).parents[2] / "scripts" / "string"
"""What an installer copies as the command `string`."""
LAZY = {
    *("mcp", "pydantic", "pydantic_ai", "openai", "anthropic", "rich", "textual", "keyring"),
    *("prompt_toolkit", "wcwidth"),
    *("html_to_markdown", "selectolax", "httpx2", "httpx", "liquid"),
}
"""Packages of models, MCP, terminal views and web pages: imported by whoever uses them."""


def imported(
    code: str, env: dict[str, str], *arguments: str, options: tuple[str, ...] = ()
) -> dict[str, str]:
    """Names and files of the modules a fresh interpreter holds after running `code`."""
    report = (
        "import atexit, sys\n"
        "atexit.register(lambda: print('\\n'.join(f'@{n} {getattr(m, \"__file__\", None)}'"
        " for n, m in list(sys.modules.items()))))\n"
    )
    done = subprocess.run(
        [sys.executable, *options, "-c", report + code, *arguments],
        env=env,
        capture_output=True,
        text=True,
        timeout=WAIT_SECONDS,
        check=True,
    )
    rows = [line[1:].partition(" ") for line in done.stdout.splitlines() if line.startswith("@")]
    assert len(rows) > 10
    return {name: file for name, _, file in rows}


def third_party(modules: dict[str, str], before: dict[str, str]) -> set[str]:
    """Packages of others, without what the interpreter itself loads at start."""
    return {
        name.partition(".")[0]
        for name, file in modules.items()
        if SITE in file and name not in before and not name.startswith("stringd")
    }


@pytest.fixture(scope="module")
def bare(daemon: Daemon) -> dict[str, str]:
    return imported("", daemon.child_environment())


def test_one_shot_string_imports_almost_nothing(
    daemon: Daemon, env: dict[str, str], bare: dict[str, str]
) -> None:
    code = INSTALLED.read_text("utf-8")
    modules = imported(code, env, "file:main", "/info")
    assert third_party(modules, bare) == set()
    slow = {
        "json",
        "typing",
        "argparse",
        "socket",
        "subprocess",
        "http",
        "pathlib",
        "re",
        "logging",
    }
    # Packages of others may load some of them whenever Python starts, which would hide ours.
    alone = {**env, "PYTHONPATH": str(Path(stringd.__file__).parents[1])}
    modules = imported(code, alone, "file:main", "/info", options=("-S",))
    assert slow & modules.keys() == set()


def test_help_imports_nothing_of_others(daemon: Daemon, bare: dict[str, str]) -> None:
    code = "from stringd.cli.main import main; main(['--help'])"
    modules = imported(code, daemon.child_environment())
    assert third_party(modules, bare) == set()
    assert "stringd.server" not in modules
    assert "asyncio" not in modules


def test_a_served_health_check_imports_no_package_it_does_not_need_yet(
    daemon: Daemon, bare: dict[str, str]
) -> None:
    code = (
        "import os, signal, sys, threading, urllib.request\n"
        "from stringd.cli import serve\n"
        "ready = serve._ready\n"
        "def ask():\n"
        "    urllib.request.urlopen(f'http://127.0.0.1:{sys.argv[1]}/health').read()\n"
        "    os.kill(os.getpid(), signal.SIGTERM)\n"
        "def then(*a, **k):\n"
        "    ready(*a, **k)\n"
        "    threading.Thread(target=ask).start()\n"
        "serve._ready = then\n"
        "assert serve.main('serve', ['--port', sys.argv[1]]) == 0\n"
    )
    env = {**daemon.child_environment(), "STRINGD_DATA_DIR": str(daemon.directory / "startup")}
    modules = imported(code, env, str(free_port()))
    assert LAZY & third_party(modules, bare) == set()
