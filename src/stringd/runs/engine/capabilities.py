"""What the agents of a run may use, and what a strategy they launch would add to it.

An agent that can write files can write a strategy, or the project around one. What such a file can
do beyond the run that launches it is for the human to allow.
"""

from collections.abc import Mapping
from typing import NamedTuple

from stringd.runs.agents.extensions import Registry
from stringd.runs.mcp.definitions import ServerDefinition
from stringd.runs.strategy import definition as d
from stringd.runs.tools.tool import effect


class Abilities(NamedTuple):
    """Tools that reach beyond the run, and MCP servers, by name.

    `write` is whether they may put files where strategies are found; of MCP servers nobody knows.
    """

    tools: frozenset[str] = frozenset()
    servers: frozenset[str] = frozenset()
    write: bool = False

    def with_those_of(self, strategy: d.Strategy, registry: Registry) -> "Abilities":
        agents = [each for each in strategy.agents.values() if isinstance(each, d.LlmAgent)]
        named = {name for agent in agents for name in agent.tools}
        effects = {name: effect(registry.find_tool(name)) for name in named}
        servers = self.servers.union(*(agent.mcp_servers for agent in agents))
        return Abilities(
            self.tools | {name for name, reach in effects.items() if reach != "inward"},
            servers,
            self.write or bool(servers) or "writes" in effects.values(),
        )

    def lacking(
        self, strategy: d.Strategy, registry: Registry, servers: Mapping[str, ServerDefinition]
    ) -> list[str]:
        """What the strategy uses beyond them. A server defined beside it may be another one."""
        theirs = Abilities().with_those_of(strategy, registry)
        known = {each for each in self.servers & servers.keys() if servers[each].source == "global"}
        tools = sorted(theirs.tools - self.tools)
        return [*tools, *(f"the MCP server {each}" for each in sorted(theirs.servers - known))]
