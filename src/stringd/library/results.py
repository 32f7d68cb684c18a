"""What came of a run, for the program that started it."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import NamedTuple

from stringd.wire.runs import messages as m
from stringd.wire.runs import stream
from stringd.wire.runs.types import Usage


class UsedTool(NamedTuple):
    """A call of a tool; `args` is the JSON text the model wrote."""

    agent: str
    tool: str
    args: str
    output: str
    error: str | None = None


@dataclass(frozen=True)
class RunResult:
    """The result of a run with everything it said on the way. As text it is the result."""

    run_id: str
    text: str
    usage: Usage
    events: Sequence[m.RunBroadcast]

    def __str__(self) -> str:
        return self.text

    def said(self, agent: str | None = None) -> list[str]:
        """Everything the agents answered, or one of them."""
        outputs = (each for each in self.events if isinstance(each, m.AgentOutput))
        return [each.text for each in outputs if agent in (None, each.agent_name)]

    @property
    def tools(self) -> list[UsedTool]:
        """The tool calls in the order in which they were answered."""
        return list(_tool_uses(self.events))

    def _repr_markdown_(self) -> str:
        """What a notebook shows."""
        tokens = self.usage.prompt_tokens + self.usage.completion_tokens
        used = ", ".join(dict.fromkeys(each.tool for each in self.tools))
        about = f"{tokens} tokens" + (f"; tools: {used}" if used else "")
        return f"{self.text}\n\n<sub>{about}</sub>"


def _tool_uses(events: Sequence[m.RunBroadcast]) -> Iterator[UsedTool]:
    asked: dict[tuple[str, str], stream.ToolCall] = {}
    for each in events:
        if not isinstance(each, m.AgentStreaming):
            continue
        match each.event:
            case stream.ToolCall() as call:
                asked[each.agent_name, call.tool_call_id] = call
            case stream.ToolResult() as result:
                call_of = asked.get((each.agent_name, result.tool_call_id))
                args = call_of.args if call_of else "{}"
                error = result.error or None
                yield UsedTool(each.agent_name, result.tool_name, args, result.output, error)
