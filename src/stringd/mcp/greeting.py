"""What a client asks first, answered without the SDK and without a daemon.

A client lists the tools before its first request to a model, and some do not wait for a daemon
that starts. The answers are those of `mcp/server.py`, word for word; a test compares them. Only
this end announces changes of the list of resources: there are none to list before the daemon runs.
"""

from collections.abc import Collection, Mapping
from typing import Any, Final

from stringd import __version__
from stringd.mcp import catalog

NAME: Final = "string"
HANDSHAKE_VERSIONS: Final = ("2024-11-05", "2025-03-26", "2025-06-18", "2025-11-25")
"""Protocol versions that begin with `initialize`; the last is offered to whoever wants another."""
META_VERSION: Final = "io.modelcontextprotocol/protocolVersion"
"""Where requests of newer versions, which have no handshake, say which one they speak."""

_SERVER: Final = {"name": NAME, "version": __version__}
_CAPABILITIES: Final = {
    "resources": {"listChanged": True, "subscribe": False},
    "tools": {"listChanged": False},
}


def greeting(message: Mapping[str, Any], tools: Collection[str]) -> dict[str, Any] | None:
    """The result of `initialize` or `tools/list`; None for what only the daemon can answer.

    `tools` are the names of those that are offered.
    """
    params = message.get("params")
    if params is not None and not isinstance(params, dict):
        return None
    params = params or {}
    meta = params.get("_meta", {})
    if not isinstance(meta, dict) or META_VERSION in meta:
        return None
    match message.get("method"):
        case "initialize":
            return _initialized(params)
        case "tools/list" if "cursor" not in params:
            return {"tools": [_listed(t) for t in catalog.TOOLS if t.name in tools]}
    return None


def _initialized(params: dict[str, Any]) -> dict[str, Any] | None:
    wanted, client = params.get("protocolVersion"), params.get("clientInfo")
    if not isinstance(wanted, str) or not isinstance(params.get("capabilities"), dict):
        return None
    if not isinstance(client, dict) or not all(
        isinstance(client.get(field), str) for field in ("name", "version")
    ):
        return None
    return {
        "capabilities": _CAPABILITIES,
        "instructions": catalog.INSTRUCTIONS,
        "protocolVersion": wanted if wanted in HANDSHAKE_VERSIONS else HANDSHAKE_VERSIONS[-1],
        "serverInfo": _SERVER,
    }


def _listed(tool: catalog.ListedTool) -> dict[str, Any]:
    hints = {"annotations": {"readOnlyHint": True}} if tool.read_only else {}
    return {
        **hints,
        "description": tool.description,
        "inputSchema": tool.schema,
        "name": tool.name,
        "title": tool.title,
    }
