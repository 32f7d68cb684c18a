"""The frame around every built-in tool: arguments checked, refusals and failures put in words."""

import os
from abc import abstractmethod
from collections.abc import Mapping
from pathlib import Path
from typing import Any, ClassVar, Generic, Literal, TypeVar

import msgspec

from stringd.runs.guard.errors import Denied
from stringd.runs.guard.workspace import WorkspacePath
from stringd.runs.tools.context import ToolContext
from stringd.runs.tools.output import ToolFailure, ToolOutput, ToolProblem
from stringd.runs.tools.schema import counted, problems, schema_of
from stringd.runs.tools.tool import Effect


class Arguments(msgspec.Struct, rename="camel", frozen=True):
    """Base of the arguments of tools: snake case here, camel case for the model."""


A = TypeVar("A", bound=Arguments)


class BuiltInTool(Generic[A]):
    """A built-in tool. Subclasses say what they take and what they do with it."""

    name: ClassVar[str]
    description: ClassVar[str]
    takes: ClassVar[type[Any]]
    guidance: str | None = None
    effect: ClassVar[Effect] = "writes"
    repeatable: ClassVar[bool] = False
    offered: ClassVar[bool] = True
    runs_shell: ClassVar[bool] = False
    rebuilds_state: ClassVar[bool] = False
    reads_paths: ClassVar[tuple[str, ...]] = ()
    writes_paths: ClassVar[tuple[str, ...]] = ()

    def __init__(self) -> None:
        self.parameters: Mapping[str, Any] = schema_of(self.takes)

    def shared_state(self, _args: Mapping[str, Any]) -> str | None:
        """What calls of one answer use in the order they were asked for, besides files."""
        return None

    async def call(self, args: Mapping[str, Any], context: ToolContext) -> ToolOutput:
        issues = list(problems(self.parameters, args))
        if issues:
            lines = "\n".join(f"- `{issue.path}`: {issue.problem}" for issue in issues)
            return self._invalid(lines, args)
        try:
            return await self.run(msgspec.convert(counted(args), self.takes), context)
        except msgspec.ValidationError as error:
            return self._invalid(f"- `arguments`: {error}", args)
        except Denied as denied:
            return failed(ToolProblem("permission_denied", str(denied), recoverable=False))
        except ToolFailure as failure:
            return failed(failure.problem)
        except OSError as error:
            return failed(_os_problem(error))

    @abstractmethod
    async def run(self, args: A, context: ToolContext) -> ToolOutput:
        """Do it. Raises `Denied`, `ToolFailure` or `OSError`."""

    async def place(
        self,
        context: ToolContext,
        direction: Literal["read", "write"],
        text: str,
        changes: str = "",
    ) -> WorkspacePath:
        """Where a path leads, once this tool may go there. Raises `Denied`.

        Whoever is asked sees the `changes` it would make there, as a diff.
        """
        permissions, details = context.desk.permissions, {"changes": changes} if changes else None
        return await permissions.path(context.agent_name, self.name, direction, text, details)

    def _invalid(self, lines: str, args: Mapping[str, Any]) -> ToolOutput:
        received = msgspec.json.encode(args, enc_hook=str).decode()
        shown = received if len(received) <= 2000 else received[:2000] + "…"
        text = (
            f"Invalid arguments for `{self.name}`:\n{lines}\n\nReceived: {shown}\n\n"
            "Next step: call it again with corrected arguments."
        )
        return ToolOutput(text, ok=False, error=ToolProblem("unknown", text))


def failed(problem: ToolProblem) -> ToolOutput:
    """A failure as the model reads it."""
    text = f"Error ({problem.kind}): {problem.message}"
    if problem.recoverable and problem.next_step:
        text += f"\n\nNext step: {problem.next_step}"
    return ToolOutput(text, ok=False, error=problem)


def _os_problem(error: OSError) -> ToolProblem:
    kind = "unknown"
    if isinstance(error, FileNotFoundError | NotADirectoryError):
        kind = "not_found"
    elif isinstance(error, PermissionError):
        kind = "permission_denied"
    elif isinstance(error, FileExistsError):
        kind = "already_exists"
    path = os.fsdecode(error.filename) if isinstance(error.filename, str | bytes | Path) else None
    return ToolProblem(kind, f"{error.strerror or error}: {path}" if path else str(error), path)
