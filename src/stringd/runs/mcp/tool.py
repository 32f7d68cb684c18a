"""A tool of an MCP server, under a name no other tool can have."""

from base64 import urlsafe_b64encode
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import msgspec

from stringd.net.mcp_client import McpCallError, McpError
from stringd.runs.mcp.connection import Connection
from stringd.runs.tools.context import ToolContext
from stringd.runs.tools.output import ToolBrokenError, ToolOutput
from stringd.wire.runs.types import McpOrigin

if TYPE_CHECKING:
    from mcp.types import Tool as TheirTool


def tool_name(server_id: str, name: str) -> str:
    return f"mcp__{_plain(server_id)}__{_plain(name)}"


def _plain(text: str) -> str:
    return urlsafe_b64encode(text.encode()).decode("ascii").rstrip("=")


class McpTool:
    guidance: str | None = None

    def __init__(self, connection: Connection, tool: "TheirTool") -> None:
        server_id = connection.definition.id
        self.name = tool_name(server_id, tool.name)
        self.description = f"{tool.description or tool.name} (from MCP server {server_id})"
        self.parameters: Mapping[str, Any] = tool.input_schema
        self.origin = McpOrigin(server_id=server_id, tool_name=tool.name)
        hints = tool.annotations
        self.repeatable = bool(hints and (hints.read_only_hint or hints.idempotent_hint))
        self._connection = connection

    async def call(self, args: Mapping[str, Any], context: ToolContext) -> ToolOutput:  # noqa: ARG002
        try:
            result = await self._connection.call(self.origin.tool_name, dict(args))
        except McpError as error:
            lost = isinstance(error, McpCallError) and error.lost
            after = ". The server is started again with the next call." if lost else ""
            raise ToolBrokenError(
                f"MCP tool {self.origin.tool_name} failed: {error}{after}"
            ) from error
        text = "\n".join(_text(part) for part in result.content)
        if not text and getattr(result, "structured_content", None) is not None:
            text = msgspec.json.encode(result.structured_content).decode()
        if result.is_error:
            raise ToolBrokenError(text or f"MCP tool {self.origin.tool_name} failed")
        return ToolOutput(text)


def _text(part: Any) -> str:
    if part.type == "text":
        return str(part.text)
    if part.type == "resource":
        return str(getattr(part.resource, "text", f"[resource {part.resource.uri}]"))
    if part.type == "resource_link":
        return f"[resource {part.uri}]"
    return f"[{part.type}: {getattr(part, 'mime_type', 'unknown')}]"
