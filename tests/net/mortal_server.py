"""An MCP server that can die or fail when it is asked to."""

import os
import secrets

from mcp.server import MCPServer
from mcp.shared.exceptions import MCPError

server = MCPServer("Mortal")
NUMBER = secrets.token_hex(8)


@server.tool()
def number() -> str:
    """Another one in every process; in a sandbox their ids are the same."""
    return NUMBER


@server.tool()
def die() -> str:
    """Never answers."""
    os._exit(3)


@server.tool()
def fail() -> str:
    """Uses a number the SDK has a meaning for."""
    raise MCPError(-32000, "own failure")


if __name__ == "__main__":
    server.run()
