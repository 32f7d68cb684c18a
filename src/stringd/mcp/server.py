"""The server itself, on the official SDK. Importing this module imports the SDK: do it late."""

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import mcp_types as types
from mcp.server.lowlevel.server import Server
from mcp.server.streamable_http_manager import StreamableHTTPSessionManager
from mcp.shared.exceptions import MCPError

from stringd import __version__
from stringd.mcp import catalog
from stringd.mcp.outcome import ToolOutcome, shortened
from stringd.mcp.ports import McpCaller, McpPorts
from stringd.mcp.resources import TEMPLATES, Resources, UnknownResourceError
from stringd.mcp.tools import Tools

if TYPE_CHECKING:
    from mcp.server.context import ServerRequestContext

    Context = ServerRequestContext[Any, Any]

MAX_BODY_BYTES = 10 * 1024 * 1024

WhoCalls = Callable[[Any], McpCaller]
"""The caller a request comes from; it is handed the HTTP request."""


class McpServer:
    """Our tools and resources as an ASGI application: `manager.handle_request`."""

    def __init__(self, ports: McpPorts, who_calls: WhoCalls) -> None:
        self._tools = Tools(ports)
        self._resources = Resources(ports, self._tools.runs)
        self._who_calls = who_calls
        server: Server[Any] = Server(
            "string",
            version=__version__,
            instructions=catalog.INSTRUCTIONS,
            on_list_tools=self._list_tools,
            on_call_tool=self._call_tool,
            on_list_resources=self._list_resources,
            on_list_resource_templates=self._list_resource_templates,
            on_read_resource=self._read_resource,
        )
        # Stateless: a restarted daemon serves every client on as if nothing had happened.
        self.manager = StreamableHTTPSessionManager(
            server, stateless=True, max_request_body_size=MAX_BODY_BYTES
        )

    async def close(self) -> None:
        """End the calls that continue without their callers."""
        await self._tools.close()

    async def _list_tools(
        self, ctx: "Context", _params: types.PaginatedRequestParams | None
    ) -> types.ListToolsResult:
        wanted = self._who_calls(ctx.request).tools
        tools = [tool for tool in catalog.TOOLS if wanted is None or tool.name in wanted]
        return types.ListToolsResult(tools=[_listed(tool) for tool in tools])

    async def _call_tool(
        self, ctx: "Context", params: types.CallToolRequestParams
    ) -> types.CallToolResult:
        caller = _named(self._who_calls(ctx.request), ctx)
        offered = catalog.NAMES if caller.tools is None else caller.tools
        if params.name not in offered:
            raise MCPError(types.INVALID_PARAMS, f"Unknown tool: {params.name}")

        async def report(seconds: float, message: str) -> None:
            await ctx.session.report_progress(seconds, message=message)

        outcome = await self._tools.call(caller, params.name, params.arguments or {}, report)
        return _result(outcome)

    async def _list_resources(
        self, ctx: "Context", _params: types.PaginatedRequestParams | None
    ) -> types.ListResourcesResult:
        found = await self._resources.list(self._who_calls(ctx.request))
        return types.ListResourcesResult(
            resources=[types.Resource(**each._asdict()) for each in found]
        )

    async def _list_resource_templates(
        self, _ctx: "Context", _params: types.PaginatedRequestParams | None
    ) -> types.ListResourceTemplatesResult:
        return types.ListResourceTemplatesResult(
            resource_templates=[types.ResourceTemplate(**each._asdict()) for each in TEMPLATES]
        )

    async def _read_resource(
        self, ctx: "Context", params: types.ReadResourceRequestParams
    ) -> types.ReadResourceResult:
        uri = str(params.uri)
        try:
            text, kind = await self._resources.read(self._who_calls(ctx.request), uri)
        except UnknownResourceError:
            raise MCPError(types.INVALID_PARAMS, f"Resource not found: {uri}") from None
        contents = types.TextResourceContents(uri=uri, mime_type=kind, text=shortened(text))
        return types.ReadResourceResult(contents=[contents])


def _named(caller: McpCaller, ctx: "Context") -> McpCaller:
    """The caller with the name its client gave in this very message, where it gave one."""
    said = ctx.session.client_params
    if said is None:
        return caller
    info = said.client_info
    return caller._replace(client=f"{info.name} {info.version}".strip())


def _listed(tool: catalog.ListedTool) -> types.Tool:
    hints = types.ToolAnnotations(read_only_hint=True) if tool.read_only else None
    return types.Tool(
        name=tool.name,
        title=tool.title,
        description=tool.description,
        input_schema=tool.schema,
        annotations=hints,
    )


def _result(outcome: ToolOutcome) -> types.CallToolResult:
    parts: list[types.ContentBlock] = [
        types.TextContent(text=shortened(part)) for part in outcome.parts
    ]
    return types.CallToolResult(content=parts, is_error=outcome.is_error)
