"""An MCP server that sends without end once it is asked to."""

import json
import os
import sys
import threading
from collections.abc import Callable
from typing import Any, Final

_NOTE: Final = (
    b'{"jsonrpc":"2.0","method":"notifications/message","params":{"level":"info","data":"x"}}\n'
)


def _write(descriptor: int, data: bytes) -> None:
    while data:
        data = data[os.write(descriptor, data) :]


def _messages() -> None:
    while True:
        _write(1, _NOTE * 100)


def _nonsense() -> None:
    while True:
        _write(1, b"not a message\n" * 100)


def _line() -> None:
    while True:
        _write(1, b"x" * 65536)


def _values() -> None:
    _write(1, b'{"jsonrpc":"2.0","id":1,"result":{"a":[' + b"{}," * 200_000 + b"{}]}}\n")


def _printed() -> None:
    while True:
        _write(2, b"a log line\n" * 1000)


FLOODS: Final[dict[str, Callable[[], None]]] = {
    "messages": _messages,
    "nonsense": _nonsense,
    "line": _line,
    "values": _values,
    "printed": _printed,
}


def answer(asked: dict[str, Any]) -> dict[str, Any]:
    """As little of the protocol as a client needs to call `flood` and `number`."""
    if asked["method"] == "initialize":
        about = {"name": "Flooding", "version": "1"}
        version = asked["params"]["protocolVersion"]
        capabilities: dict[str, Any] = {"tools": {}}
        result = {"protocolVersion": version, "capabilities": capabilities, "serverInfo": about}
        return {"result": result}
    if asked["method"] == "tools/list":
        tools = [
            {
                "name": name,
                "inputSchema": {"type": "object", "properties": {"kind": {"type": "string"}}},
            }
            for name in ("flood", "number")
        ]
        return {"result": {"tools": tools}}
    if asked["method"] != "tools/call":
        return {"error": {"code": -32601, "message": "Method not found"}}
    kind = asked["params"].get("arguments", {}).get("kind")
    if kind is not None:
        threading.Thread(target=FLOODS[kind], daemon=True).start()
    return {"result": {"content": [{"type": "text", "text": "1"}]}}


def main() -> None:
    for line in sys.stdin.buffer:
        asked = json.loads(line)
        if "id" in asked:
            told = {"jsonrpc": "2.0", "id": asked["id"], **answer(asked)}
            _write(1, json.dumps(told).encode() + b"\n")


if __name__ == "__main__":
    main()
