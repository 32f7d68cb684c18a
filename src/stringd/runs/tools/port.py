"""What a tool is to the agent loop."""

from collections.abc import Callable, Coroutine, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, Protocol

from stringd.runs.tools.outcome import ToolOutput

if TYPE_CHECKING:
    from stringd.runs.ledger import Ledger
    from stringd.runs.tools.desk import Desk

# Names a strategy may use. `lsp_request` is known so that files naming it load; no language
# service is ever present, and it says so.
BUILT_IN_TOOLS: Final = (
    "read_file",
    "list_directory",
    "search_files",
    "glob",
    "create_file",
    "write_file",
    "edit_file",
    "delete_file",
    "restore_file",
    "move_file",
    "run_command",
    "webfetch",
    "list_skills",
    "load_skill",
    "list_strategy",
    "launch_strategy",
    "todo_add",
    "todo_complete",
    "todo_get",
    "todo_get_next",
    "todo_remove",
    "todo_clear",
    "ask_question",
    "lsp_request",
    "string",
    "request_privileged",
)


@dataclass(frozen=True)
class ToolContext:
    """Who calls, where, and how to reach the human. `ask` returns the answer to a question."""

    run_id: str
    agent_name: str
    cwd: Path
    ask: Callable[[str, str], Coroutine[Any, Any, str]]
    desk: "Desk"
    ledger: "Ledger"


class Tool(Protocol):
    """`parameters` is a JSON Schema object; `guidance` is added to the agent's prompt.

    A tool may also have `repeatable` (True when calling it twice does no harm) and `origin` (the
    MCP server it comes from).
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
