"""What the agents of a run may use, and what a strategy they launch would add to it.

An agent that can write files can write a strategy, or the project around one. What such a file can
do beyond the run that launches it is for the human to allow.
"""

from collections.abc import Mapping
from typing import Final, NamedTuple

from stringd.runs.mcp.definitions import ServerDefinition
from stringd.runs.strategy import definition as d

# These reach nothing outside the run itself.
_INWARD: Final = frozenset(
    (
        "ask_question",
        "launch_strategy",
        "list_skills",
        "list_strategy",
        "load_skill",
        "lsp_request",
        "todo_add",
        "todo_clear",
        "todo_complete",
        "todo_get",
        "todo_get_next",
        "todo_remove",
    )
)
_READING: Final = frozenset(
    ("delete_file", "glob", "list_directory", "read_file", "search_files", "webfetch")
)


class Abilities(NamedTuple):
    """Tools and MCP servers, by name."""

    tools: frozenset[str] = frozenset()
    servers: frozenset[str] = frozenset()

    def with_those_of(self, strategy: d.Strategy) -> "Abilities":
        agents = [each for each in strategy.agents.values() if isinstance(each, d.LlmAgent)]
        return Abilities(
            self.tools.union(*(agent.tools for agent in agents)),
            self.servers.union(*(agent.mcp_servers for agent in agents)),
        )

    @property
    def write(self) -> bool:
        """Whether they may put files where strategies are found; of MCP servers nobody knows."""
        return bool(self.servers or self.tools - _INWARD - _READING)

    def lacking(self, strategy: d.Strategy, servers: Mapping[str, ServerDefinition]) -> list[str]:
        """What the strategy uses beyond them. A server defined beside it may be another one."""
        theirs = Abilities().with_those_of(strategy)
        known = {each for each in self.servers & servers.keys() if servers[each].source == "global"}
        tools = sorted(theirs.tools - self.tools - _INWARD)
        return [*tools, *(f"the MCP server {each}" for each in sorted(theirs.servers - known))]
