"""What code that extends strategies uses: a project's entry module, or a program around runs.

def register(registry: Registry) -> None:
    registry.tool(MyTool())
"""

from stringd.runs.agents.extensions import AgentCode, FlowCode, FlowSteps, Registry
from stringd.runs.agents.hooks import CallInfo, Hooks
from stringd.runs.tools.context import ToolContext
from stringd.runs.tools.output import ToolFailure, ToolOutput
from stringd.runs.tools.tool import Tool

__all__ = [
    "AgentCode",
    "CallInfo",
    "FlowCode",
    "FlowSteps",
    "Hooks",
    "Registry",
    "Tool",
    "ToolContext",
    "ToolFailure",
    "ToolOutput",
]
