"""What a tool is, and what can be known about one without calling it."""

from collections.abc import Mapping
from typing import Any, Literal, Protocol

from stringd.runs.tools.context import ToolContext
from stringd.runs.tools.output import ToolOutput

Effect = Literal["inward", "reads", "writes"]
"""`inward` reaches nothing outside the run, `reads` puts no file anywhere, `writes` may."""


class Tool(Protocol):
    """`parameters` is a JSON Schema object; `guidance` is added to the agent's prompt.

    A tool may also have these; without them the cautious answer holds:
    `effect` says how far it reaches (see `Effect`), `repeatable` whether calling it twice does no
    harm, `runs_shell` whether it hands command lines to a shell, `rebuilds_state` whether what it
    does is in memory alone, so that a resumed run calls it again, and `origin` is the MCP server
    it comes from. Calls of one answer are made side by side; `reads_paths` and `writes_paths` name
    the arguments that are paths, so that calls that use the same file take turns, and
    `shared_state(args)` names anything else that calls use in the order they were asked for.
    """

    @property
    def name(self) -> str: ...

    @property
    def description(self) -> str: ...

    @property
    def parameters(self) -> Mapping[str, Any]: ...

    @property
    def guidance(self) -> str | None: ...

    async def call(self, args: Mapping[str, Any], context: ToolContext) -> ToolOutput: ...


def effect(tool: Tool | None) -> Effect:
    """How far a tool reaches; one that does not say so may do anything."""
    found: Effect = getattr(tool, "effect", "writes")
    return found
