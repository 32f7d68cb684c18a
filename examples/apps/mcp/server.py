"""A small MCP server over stdio: sums, dice and a page about itself.

Mount it with `/install --mcp sums -- python3 <path to this file>`, or start it with
`python3 server.py --http 8700` and mount `/install --mcp sums http://127.0.0.1:8700/mcp`.
"""

import asyncio
import os
import random
import sys

from mcp.server import MCPServer

server = MCPServer(
    "Sums", instructions="Adds numbers and throws dice.\nNothing leaves the machine."
)


@server.tool()
def add(numbers: list[float], label: str = "sum") -> str:
    """Add numbers up."""
    return f"{label}: {sum(numbers):g}"


@server.tool()
def dice(sides: int = 6, seed: int | None = None) -> dict[str, int]:
    """Throw one die."""
    return {"thrown": random.Random(seed).randint(1, sides)}


@server.tool()
def owner() -> str:
    """Who this server works for: the variable OWNER of its app."""
    return os.environ.get("OWNER", "nobody")


@server.tool()
def divide(a: float, b: float) -> float:
    """Divide a by b."""
    return a / b


@server.resource("sums://about", title="About sums")
def about() -> str:
    """What these tools do."""
    return "# Sums\n\nNumbers in, one number out.\n"


if __name__ == "__main__":
    if sys.argv[1:2] == ["--http"]:
        asyncio.run(server.run_streamable_http_async(host="127.0.0.1", port=int(sys.argv[2])))
    else:
        asyncio.run(server.run_stdio_async())
