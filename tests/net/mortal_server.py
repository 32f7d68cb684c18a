"""An MCP server that can die or fail when it is asked to.

It writes its messages itself: a program that loads the SDK takes a second to start.
"""

import json
import os
import secrets
import sys
from typing import Any

NUMBER = secrets.token_hex(8)
"""Another one in every process; in a sandbox their ids are the same."""
TOOLS = ("number", "die", "fail")


def answer(method: str, params: dict[str, Any]) -> dict[str, Any]:
    match method, params.get("name"):
        case "initialize", _:
            return {
                "result": {
                    "protocolVersion": params["protocolVersion"],
                    "capabilities": {"tools": {}},
                    "serverInfo": {"name": "Mortal", "version": "1"},
                }
            }
        case "tools/list", _:
            tools = [{"name": name, "inputSchema": {"type": "object"}} for name in TOOLS]
            return {"result": {"tools": tools}}
        case "tools/call", "number":
            return {"result": {"content": [{"type": "text", "text": NUMBER}]}}
        case "tools/call", "die":
            os._exit(3)
        case "tools/call", "fail":
            # A number the SDK has a meaning for.
            return {"error": {"code": -32000, "message": "own failure"}}
    return {"error": {"code": -32601, "message": "Method not found"}}


def main() -> None:
    for line in sys.stdin:
        asked = json.loads(line)
        if "id" in asked:
            said = answer(asked["method"], asked.get("params") or {})
            print(json.dumps({"jsonrpc": "2.0", "id": asked["id"], **said}), flush=True)


if __name__ == "__main__":
    main()
