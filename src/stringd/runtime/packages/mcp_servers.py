"""Mounted MCP servers in the words of the runtime: what they offer, answer and fail with."""

import asyncio
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from stringd.actions.errors import ActionError
from stringd.net.mcp_client import (
    MAX_LISTED,
    START_SECONDS,
    McpAnswerError,
    McpCallError,
    McpError,
    McpFloodError,
    McpMissingError,
    McpRefusedError,
    McpServers,
    McpStartError,
    McpTimeoutError,
    list_tools,
)
from stringd.runtime.packages.mcp_app import ResourceInfo, ToolInfo

if TYPE_CHECKING:
    from mcp import Client

_REASON_SHOWN: Final = 300


class ServerKey(NamedTuple):
    """One running server per user, app and configuration."""

    home: str
    topic_name: str


async def stop_app(servers: McpServers[tuple[str, str]], home: str, name: str) -> None:
    """Stop every configuration of an app."""
    keys = [key for key in servers.keys if key[0] == home and key[1].split(":")[0] == name]
    await asyncio.gather(*(servers.stop(key) for key in keys))


async def describe_server(client: "Client") -> tuple[list[ToolInfo], list[ResourceInfo]]:
    """What a server offers."""
    tools = [
        ToolInfo(tool.name, tool.description or tool.title or "", dict(tool.input_schema))
        for tool in await list_tools(client)
    ]
    resources: list[ResourceInfo] = []
    if client.server_capabilities.resources is not None:
        listed = await client.list_resources()
        resources = [
            ResourceInfo(str(each.uri), each.title or each.name, each.description or "")
            for each in listed.resources[:MAX_LISTED]
        ]
    return tools, resources


async def call_tool(client: "Client", name: str, arguments: dict[str, Any]) -> str:
    """A tool's answer as text. Raises `McpAnswerError` when the tool reports a failure."""
    import msgspec

    result = await client.call_tool(name, arguments)
    text = "\n".join(_part(part) for part in result.content)
    if not text and result.structured_content is not None:
        text = msgspec.json.encode(result.structured_content).decode()
    if result.is_error:
        raise McpAnswerError(text or f"The tool {name} failed.")
    return text


async def read_resource(client: "Client", uri: str) -> str:
    """A resource as text."""
    result = await client.read_resource(uri)
    return "\n".join(_part(part) for part in result.contents)


def _part(part: Any) -> str:
    """One piece of an answer; what is not text is described."""
    text = getattr(part, "text", None)
    if isinstance(text, str):
        return text
    inner = getattr(part, "resource", None)
    if inner is not None:
        return _part(inner)
    kind = getattr(part, "mime_type", None) or getattr(part, "type", "data")
    data = getattr(part, "data", None) or getattr(part, "blob", None)
    if isinstance(data, str):
        return f"[{kind}, {len(data) * 3 // 4} bytes]"
    return f"[{kind}: {getattr(part, 'uri', '')}]"


def action_error(error: McpError, limit: float) -> ActionError:
    """A server's failure as an action reports it."""
    match error:
        case McpMissingError():
            text = "MCP apps need the package mcp: pip install mcp"
        case McpRefusedError():
            text = f"Cannot reach the MCP server: {error}"
        case McpFloodError():
            text = f"The MCP server was ended: it {error}."
        case McpTimeoutError():
            text = f"The MCP server did not answer within {limit:g} s."
        case McpAnswerError():
            text = str(error)
        case McpStartError():
            text = f"The MCP server could not be started: {_start_reason(error.cause)}"
            text += f"\n{error.printed}" if error.printed else ""
        case McpCallError(lost=True):
            after = "It is restarted with the next call."
            text = f"The MCP server failed: {_first_line(error)}. {after}"
        case _:
            text = f"The MCP server failed: {_first_line(error)}"
    return ActionError("LOAD_ERROR", text)


def _start_reason(cause: BaseException) -> str:
    match cause:
        case TimeoutError():
            return f"no answer within {START_SECONDS:g} s"
        case NotADirectoryError():
            return f"{cause}, where it was installed from, is gone"
        case FileNotFoundError():
            return "there is no such program"
    return _first_line(cause)


def _first_line(error: BaseException) -> str:
    first, *_ = str(error).splitlines() or [""]
    return first[:_REASON_SHOWN] or type(error).__name__
