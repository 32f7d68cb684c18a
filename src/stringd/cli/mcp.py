"""`stringd mcp`: the daemon as an MCP server on standard input and output."""

import argparse
import os
import sys
from collections.abc import Sequence
from typing import Final

from stringd.client.daemon import UsageError, parse_port
from stringd.client.identity import identity, working_directory
from stringd.client.mcp import Bridge
from stringd.mcp.catalog import NAMES
from stringd.mcp.greeting import greeting
from stringd.system.vouched import vouched

_TOOLS: Final = ",".join(NAMES)
_EXAMPLES: Final = """\
one line for each client:
  Claude Code   claude mcp add string -- stringd mcp
  Codex         codex mcp add string -- stringd mcp
  Cursor        {"mcpServers": {"string": {"command": "stringd", "args": ["mcp"]}}}
  inspector     npx @modelcontextprotocol/inspector stringd mcp

Clients that speak HTTP can use http://127.0.0.1:3100/mcp of a running daemon as it is.
"""


def main(name: str, argv: Sequence[str]) -> int:
    """Carry messages until standard input ends."""
    parser = argparse.ArgumentParser(
        prog=f"stringd {name}",
        description="Serve MCP on standard input and output. The daemon is started when it does "
        "not run. Files under the working directory are accessible.",
        epilog=_EXAMPLES,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument(
        "--user", help="act as this user (STRINGD_USER, else the one in use, else default)"
    )
    parser.add_argument("--port", help="port of the daemon (STRINGD_PORT, else 3100)")
    parser.add_argument("--tools", metavar="A,B", help=f"offer only these of {_TOOLS}")
    args = parser.parse_args(argv)
    try:
        who = identity(args.user, port=parse_port("--port", args.port) if args.port else None)
        offered = args.tools.split(",") if args.tools else NAMES
        unknown = set(offered) - set(NAMES)
        if unknown:
            raise UsageError(f"unknown tool {', '.join(sorted(unknown))}; there are {_TOOLS}")
    except (UsageError, ValueError) as error:
        print(f"stringd: {error}", file=sys.stderr)
        return 1
    if sys.stdin.isatty():
        print("stringd: an MCP client starts this program; see stringd mcp --help", file=sys.stderr)
    bridge = Bridge(
        who,
        sys.stdout.buffer,
        lambda message: greeting(message, offered),
        cwd=_project(),
        environment=vouched(os.environ),
        gate_socket=os.environ.get("STRINGD_GATE_SOCKET"),
        tools=args.tools,
    )
    bridge.run(iter(sys.stdin.buffer.readline, b""))
    return 0


def _project() -> str | None:
    """The directory to vouch for. Desktop clients start us in the root, which nobody chose."""
    directory = working_directory()
    return None if directory == "/" else directory
