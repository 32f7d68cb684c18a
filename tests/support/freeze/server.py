"""An MCP server whose tool and resource are the text of a file."""

import json
import sys
from pathlib import Path
from typing import Any


def answer(asked: dict[str, Any], path: Path) -> dict[str, Any]:
    method = asked["method"]
    if method == "initialize":
        version = asked["params"]["protocolVersion"]
        about = {"name": "Hostile", "version": "1"}
        able: dict[str, Any] = {"tools": {}, "resources": {}}
        return {"protocolVersion": version, "capabilities": able, "serverInfo": about}
    text = path.read_bytes().decode("utf-8", "replace")
    match method:
        case "tools/list":
            tool = {"name": "read", "description": "", "inputSchema": {"type": "object"}}
            return {"tools": [tool]}
        case "tools/call":
            return {"content": [{"type": "text", "text": text}]}
        case "resources/list":
            page = {"uri": "hostile://one", "name": "One", "mimeType": "text/markdown"}
            return {"resources": [page]}
        case "resources/read":
            part = {"uri": "hostile://one", "mimeType": "text/markdown", "text": text}
            return {"contents": [part]}
    return {}


def main(path: Path) -> None:
    for line in sys.stdin:
        asked = json.loads(line)
        if "id" in asked:
            reply = {"jsonrpc": "2.0", "id": asked["id"], "result": answer(asked, path)}
            print(json.dumps(reply), flush=True)


if __name__ == "__main__":
    main(Path(sys.argv[1]))
