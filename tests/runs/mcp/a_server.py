"""A small MCP server, run as a program: `python a_server.py [stdio | http PORT | sse PORT]`."""

import sys
import time
from pathlib import Path

from mcp.server import MCPServer

server = MCPServer("test")


@server.tool()
def add(a: int, b: int) -> str:
    """Add two numbers."""
    return str(a + b)


@server.tool()
def where() -> str:
    """The working directory."""
    return str(Path.cwd())


@server.tool()
def slow() -> str:
    """Takes longer than anybody waits."""
    time.sleep(3600)
    return "late"


@server.tool()
def fail() -> str:
    """Always fails."""
    raise ValueError("it broke")


if __name__ == "__main__":
    if sys.argv[1:] and sys.argv[1] == "http":
        server.run("streamable-http", port=int(sys.argv[2]))
    elif sys.argv[1:] and sys.argv[1] == "sse":
        server.run("sse", port=int(sys.argv[2]))
    else:
        server.run("stdio")
