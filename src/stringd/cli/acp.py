"""`stringd acp`: every strategy as an agent for editors, on standard input and output."""

import argparse
import asyncio
import json
import os
import sys
from collections.abc import Mapping, Sequence
from typing import Any, Final

from stringd import __version__
from stringd.client.daemon import UsageError, healthy, last_words, port_from_environment, start

_EPILOG: Final = """\
An editor that speaks the Agent Client Protocol starts this program, as in
  {"agent_servers": {"stringd": {"command": "stringd", "args": ["acp"]}}}
Its modes are the strategies found from the directory it works in. What a run asks permission for is
asked in the editor; the answer to a question is the next message.
"""


def main(name: str, argv: Sequence[str]) -> int:
    """Serve one editor until standard input ends."""
    parser = argparse.ArgumentParser(
        prog=f"stringd {name}",
        description="Offer strategies as an agent over the Agent Client Protocol. The daemon is "
        "started when it does not run.",
        epilog=_EPILOG,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("--strategy", help="begin with this one instead of the first that is found")
    args = parser.parse_args(argv)
    if sys.stdin.isatty():
        print("stringd: an editor starts this program; see stringd acp --help", file=sys.stderr)
    try:
        port = port_from_environment()
        if not healthy(port) and not start(port):
            print(f"stringd: the daemon does not start{last_words()}", file=sys.stderr)
            return 1
        return asyncio.run(_serve(port, args.strategy))
    except (UsageError, OSError) as error:
        print(f"stringd: {error}", file=sys.stderr)
        return 1


async def _serve(port: int, strategy: str | None) -> int:
    from stringd.client.acp_agent import StrategyAgent
    from stringd.client.async_runs import AsyncRuns

    loop = asyncio.get_running_loop()
    reader = asyncio.StreamReader(limit=64 * 1024 * 1024)
    await loop.connect_read_pipe(lambda: asyncio.StreamReaderProtocol(reader), sys.stdin.buffer)
    out = sys.stdout.fileno()

    async def send(message: Mapping[str, Any]) -> None:
        line = json.dumps(message, ensure_ascii=False).encode("utf-8", "replace") + b"\n"
        await asyncio.to_thread(_write, out, line)

    async with AsyncRuns(port) as runs:
        agent = StrategyAgent(runs, send, strategy, __version__)
        try:
            while line := await reader.readline():
                agent.receive(line)
        finally:
            await agent.close()
    return 0


def _write(descriptor: int, data: bytes) -> None:
    while data:
        data = data[os.write(descriptor, data) :]
