"""`list_strategy` and `launch_strategy`: other strategies, run inside a tool call."""

import asyncio

from stringd.runs.errors import RunServiceError
from stringd.runs.guard.budget import BudgetError
from stringd.runs.tools.base import Arguments, BuiltInTool
from stringd.runs.tools.context import ToolContext
from stringd.runs.tools.output import ToolFailure, ToolOutput, ToolProblem
from stringd.runs.tools.todos import NoArguments


class ListStrategy(BuiltInTool[NoArguments]):
    name = "list_strategy"
    description = "List the strategies that can be launched."
    takes = NoArguments
    repeatable = True
    effect = "inward"

    async def run(self, args: NoArguments, context: ToolContext) -> ToolOutput:  # noqa: ARG002
        found = await asyncio.to_thread(context.desk.discover)
        strategies = [
            {
                "name": each.name,
                "label": each.label,
                "description": each.description,
                "path": str(each.path),
                "origin": each.origin,
            }
            for each in found.strategies
        ]
        warnings = [{"path": str(each.path), "reason": each.reason} for each in found.warnings]
        lines = [
            f"- {each.name}" + (f": {each.description}" if each.description else "")
            for each in found.strategies
        ] or ["No strategies are at hand."]
        lines += [f"(left out {each.path.name}: {each.reason})" for each in found.warnings]
        return ToolOutput("\n".join(lines), data={"strategies": strategies, "warnings": warnings})


class LaunchArguments(Arguments, frozen=True):
    name: str
    input: str
    model_override: str | None = None


class LaunchStrategy(BuiltInTool[LaunchArguments]):
    name = "launch_strategy"
    description = "Run another strategy to its end and get its result."
    takes = LaunchArguments
    effect = "inward"

    async def run(self, args: LaunchArguments, context: ToolContext) -> ToolOutput:
        launch = context.desk.launch
        if launch is None:
            raise ToolFailure("unknown", "Nothing can be launched here", recoverable=False)
        try:
            done = await launch(context.agent_name, args.name, args.input, args.model_override)
        except RunServiceError as error:
            if error.code == BudgetError.code:
                raise
            text = f"launch_strategy failed: {error}"
            return ToolOutput(text, ok=False, error=ToolProblem("unknown", text))
        return ToolOutput(
            f'Launched "{done.name}" → {done.text}',
            data={
                "strategyName": done.name,
                "path": str(done.path),
                "result": done.text,
                "finishReason": done.finish_reason,
            },
        )
