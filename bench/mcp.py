"""MCP: how soon `stringd mcp` answers, and what a call through it costs."""

import json
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path
from statistics import median
from time import perf_counter
from typing import Any

from bench.table import Row
from stringd.client import String
from tests.mcp.support import Pipe
from tests.support.daemon import Daemon

TITLE = "MCP: the bridge on standard input and output"

SDK_SERVER = """
import anyio
from mcp.server.lowlevel.server import Server
from mcp.server.stdio import stdio_server
server = Server("peer")
async def main():
    async with stdio_server() as (read, write):
        await server.run(read, write, server.create_initialization_options())
anyio.run(main)
"""
PING = json.dumps({"jsonrpc": "2.0", "id": 1, "method": "ping"}).encode() + b"\n"


def rows() -> Iterator[Row]:
    with tempfile.TemporaryDirectory() as folder, Daemon(Path(folder)) as daemon:
        with Pipe(daemon) as pipe:
            pipe.call("ping")
        environment = daemon.child_environment()
        ours = _time(lambda: _first_answer(["-m", "stringd", "mcp"], environment))
        sdk = _time(lambda: _first_answer(["-c", SDK_SERVER], environment))
        bare = _time(lambda: _first_answer(["-c", "print(input())"], environment))
        yield _row("start to first answer, against an SDK server", ours, sdk, "≤ 0.2")
        yield _row("start to first answer, against Python echoing a line", ours, bare, "≤ 8")
        yield _row("call of string, against the same over /exec", *_calls(daemon), "")


def _first_answer(arguments: list[str], environment: dict[str, str]) -> None:
    subprocess.run(
        [sys.executable, *arguments], input=PING, env=environment, capture_output=True, check=False
    )


def _calls(daemon: Daemon) -> tuple[float, float]:
    asked: dict[str, Any] = {"name": "string", "arguments": {"topic": "main", "cmd": "/info"}}
    with Pipe(daemon) as pipe, String("default", port=daemon.port) as string:
        through = _time(lambda: pipe.call("tools/call", **asked), 50)
        direct = _time(lambda: string.exec("file:main", "/info"), 50)
    return through, direct


def _time(work: Callable[[], object], times: int = 7) -> float:
    taken = []
    for _ in range(times):
        started = perf_counter()
        work()
        taken.append(perf_counter() - started)
    return median(taken)


def _row(what: str, ours: float, peer: float, target: str) -> Row:
    return Row(what, f"{ours * 1000:.1f} ms", f"{peer * 1000:.1f} ms", ours / peer, target)
