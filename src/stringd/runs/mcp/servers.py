"""The MCP servers of a run, and of a daemon."""

import asyncio
from collections.abc import Collection, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Final

from msgspec import UNSET

from stringd.runs.errors import PrepareError, UntrustedError
from stringd.runs.mcp.connection import Connection
from stringd.runs.mcp.definitions import ServerDefinition, assigned
from stringd.runs.mcp.tool import McpTool
from stringd.runs.strategy.definition import LlmAgent, Strategy
from stringd.runs.tools.tool import Tool
from stringd.wire.runs.types import McpServerStatus

if TYPE_CHECKING:
    from stringd.net.fetch import Fetcher

_CLOSE_SECONDS: Final = 5.0


class RunServers:
    """The servers a prepared run is connected to."""

    def __init__(
        self,
        known: Mapping[str, ServerDefinition],
        strategy: Strategy,
        cwd: Path,
        enabled: Collection[str],
        connections: Mapping[str, Connection],
    ) -> None:
        self.cwd = cwd
        self.known = known
        self.strategy = strategy
        self.enabled = enabled
        self._connections = connections
        self._tools: dict[str, list[Tool]] = {
            server_id: [McpTool(connection, tool) for tool in connection.tools]
            for server_id, connection in connections.items()
        }

    def tools(self, server_ids: Sequence[str]) -> Sequence[Tool]:
        """What an agent gets of these servers; one that is not connected gives nothing."""
        return [tool for each in server_ids for tool in self._tools.get(each, ())]

    def statuses(self, *, every: bool = False) -> list[McpServerStatus]:
        """Servers some agent uses, or every known one."""
        return [
            status(each, self.strategy, self.enabled, self._connections.get(name))
            for name, each in self.known.items()
            if every or assigned(self.strategy, name)
        ]

    def close(self) -> None:
        """Hang up; the connections end by themselves."""
        for connection in self._connections.values():
            connection.close()


def status(
    definition: ServerDefinition,
    strategy: Strategy | None,
    enabled: Collection[str],
    connection: Connection | None = None,
) -> McpServerStatus:
    return McpServerStatus(
        id=definition.id,
        source=definition.source,
        transport=definition.transport,
        enabled=definition.id in enabled,
        enabled_by_default=definition.enabled_by_default,
        connected=UNSET if connection is None else connection.connected,
        tool_count=len(connection.tools) if connection else 0,
        assigned_agents=assigned(strategy, definition.id) if strategy else [],
        error=(connection.error if connection else _text(definition.refusal)) or UNSET,
        trusted=not isinstance(definition.refusal, UntrustedError),
    )


def _text(error: Exception | None) -> str | None:
    return None if error is None else str(error)


def wanted_servers(strategy: Strategy) -> list[str]:
    """Every server some agent names, once."""
    named = [
        server
        for agent in strategy.agents.values()
        if isinstance(agent, LlmAgent)
        for server in agent.mcp_servers
    ]
    return list(dict.fromkeys(named))


def check_servers(strategy: Strategy, known: Mapping[str, ServerDefinition]) -> None:
    """Raises `PrepareError` when an agent names a server nobody defined, or one that is refused."""
    for agent in strategy.agents.values():
        for server in agent.mcp_servers if isinstance(agent, LlmAgent) else ():
            definition = known.get(server)
            if definition is None:
                raise PrepareError(
                    f'Agent "{agent.name}" references unknown MCP server "{server}".'
                )
            if definition.refusal is not None:
                raise definition.refusal


class McpPool:
    """Every connection of a daemon, so that none outlives it.

    Servers do not see what is `hide`; `fetcher` says which addresses may be asked.
    """

    def __init__(self, hide: Sequence[Path] = (), fetcher: "Fetcher | None" = None) -> None:
        self._hide = hide
        self._fetcher = fetcher
        self._tasks: set[asyncio.Task[None]] = set()
        self._opening: set[Connection] = set()
        self._closed = False

    async def connect(
        self,
        known: Mapping[str, ServerDefinition],
        strategy: Strategy,
        cwd: Path,
        selection: Collection[str] | None,
    ) -> RunServers:
        """Connect to what a run's agents need. Failures to connect are told, not raised."""
        enabled = default_selection(known) if selection is None else list(selection)
        connections = {
            name: Connection(known[name], cwd, self._tasks, self._hide, self._fetcher)
            for name in wanted_servers(strategy)
            if name in enabled and known[name].refusal is None
        }
        await asyncio.gather(*(self._open(each) for each in connections.values()))
        return RunServers(known, strategy, cwd, enabled, connections)

    async def _open(self, connection: Connection) -> None:
        self._opening.add(connection)
        if self._closed:
            connection.close()
        try:
            await connection.open()
        finally:
            self._opening.discard(connection)

    def stop_opening(self) -> None:
        """Give up on servers that have not answered yet, and on all that are asked for later."""
        self._closed = True
        for connection in self._opening:
            connection.close()

    async def close(self) -> None:
        """Wait for connections that are being closed; end those that do not."""
        if self._tasks:
            _, late = await asyncio.wait(set(self._tasks), timeout=_CLOSE_SECONDS)
            for task in late:
                task.cancel()
            await asyncio.gather(*late, return_exceptions=True)


def default_selection(known: Mapping[str, ServerDefinition]) -> list[str]:
    return [name for name, each in known.items() if each.enabled_by_default]
