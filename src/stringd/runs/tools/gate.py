"""The tool that asks the gate to run a command with privileges."""

import shlex

from stringd.runs.tools.base import BuiltInTool
from stringd.runs.tools.context import ToolContext
from stringd.runs.tools.output import ToolFailure, ToolOutput
from stringd.runs.tools.string import PrivilegedArguments


class RequestPrivileged(BuiltInTool[PrivilegedArguments]):
    name = "request_privileged"
    description = (
        "Ask the human at the gate to run a command for you, as root unless privileged is false. "
        "Waits for the decision and returns the output."
    )
    takes = PrivilegedArguments

    async def run(self, args: PrivilegedArguments, context: ToolContext) -> ToolOutput:
        port = context.desk.ports.privileged
        if port is None:
            raise ToolFailure("unknown", "No gate is at hand here", recoverable=False)
        line = " | ".join(shlex.join(stage) for stage in args.pipeline)
        permissions = context.desk.permissions
        await permissions.command(context.agent_name, self.name, line, {"command": line})
        privileged = args.privileged is not False
        text = await port(args.pipeline, args.reason, context.cwd, privileged=privileged)
        return ToolOutput(text)
