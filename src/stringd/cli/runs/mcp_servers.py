"""`stringd mcp-servers`: the MCP servers that runs of a directory could use."""

import argparse
from collections.abc import Sequence
from pathlib import Path

import msgspec

from stringd.cli.runs.common import add_port, ask_daemon, fail
from stringd.cli.streams import visible
from stringd.client.daemon import UsageError
from stringd.wire.runs import messages as m
from stringd.wire.runs import requests as r
from stringd.wire.runs.types import McpServerStatus

_WHERE = {"global": "data directory", "workspace": "workspace", "strategy": "strategy"}


def main(name: str, argv: Sequence[str]) -> int:
    """Run `stringd mcp-servers`."""
    parser = argparse.ArgumentParser(
        prog=f"stringd {name}",
        description="List the MCP servers of the data directory (mcp.json) and of a workspace "
        "(.stringd/mcp.json), and say whether runs may start them.",
    )
    parser.add_argument("--cwd", metavar="DIR", help="the workspace, by default this directory")
    parser.add_argument("--strategy", metavar="FILE", help="those of a strategy file too")
    parser.add_argument("--json", action="store_true", help="print JSON")
    add_port(parser)
    args = parser.parse_args(argv)
    strategy = {"strategy_path": str(Path(args.strategy).absolute())} if args.strategy else {}
    cwd = str(Path(args.cwd or ".").absolute())
    try:
        answer = ask_daemon(args, r.ListMcpServers(cwd=cwd, **strategy))
    except UsageError as error:
        return fail(error)
    servers = answer.servers if isinstance(answer, m.McpServerList) else []
    if args.json:
        print(msgspec.json.encode(servers).decode())
        return 0
    if not servers:
        print("no MCP servers; define them in mcp.json of the data directory or of .stringd/ here")
    width = max((len(each.id) for each in servers), default=0)
    for each in servers:
        print(visible(f"{each.id:<{width}}  {_line(each)}"))
        if each.error:
            print(visible(f"{'':<{width}}  → {each.error}"))
    return 0


def _line(server: McpServerStatus) -> str:
    state = "refused" if server.error and server.trusted else "not trusted"
    usable = "trusted" if server.trusted and not server.error else state
    enabled = "on by default" if server.enabled_by_default else "off by default"
    return f"{_WHERE[server.source]:<14}  {server.transport:<5}  {usable:<11}  {enabled}"
