"""Events of a run as an editor shows them: messages, thoughts, tool calls and a plan."""

from collections.abc import Awaitable, Callable, Mapping
from typing import Any, Final

import msgspec

from stringd.wire.runs import messages as m
from stringd.wire.runs import stream

_KINDS: Final = {
    "read_file": "read",
    "list_directory": "read",
    "glob": "search",
    "grep": "search",
    "create_file": "edit",
    "write_file": "edit",
    "edit_file": "edit",
    "apply_patch": "edit",
    "move_file": "move",
    "delete_file": "delete",
    "run_command": "execute",
    "web_fetch": "fetch",
}
Notify = Callable[[str, Mapping[str, Any]], Awaitable[None]]


class Updates:
    """What one turn of a session shows."""

    def __init__(self, session: str, notify: Notify) -> None:
        self._session = session
        self._notify = notify
        self._speaker = ""
        self._last = ""
        self._several = False
        self._plan: dict[str, str] = {}

    async def take(self, event: m.RunBroadcast) -> None:
        """Show one event, if an editor has a place for it."""
        match event:
            case m.StrategyStarted():
                await self._start(event)
            case m.StepStarted(step_name=name):
                await self._mark(name, "in_progress")
            case m.StepCompleted(step_name=name):
                await self._mark(name, "completed")
            case m.AgentStreaming(agent_name=agent, event=inner):
                await self._stream(agent, inner)
            case m.AgentOutput(text=text):
                self._last = text
            case _:
                return

    async def say(self, text: str) -> None:
        """A piece of an answer."""
        await self._update("agent_message_chunk", content={"type": "text", "text": text})

    async def result(self, text: str) -> None:
        """What the run came to, unless that is what was said last."""
        if text and text != self._last:
            await self.say(f"\n\n{text}")

    async def _start(self, event: m.StrategyStarted) -> None:
        self._several = len(event.agents) > 1
        tree = msgspec.json.decode(event.flow_tree)
        steps = tree.get("steps", []) if isinstance(tree, dict) else []
        names = [str(each.get("agent") or each.get("name")) for each in steps]
        self._plan = dict.fromkeys(names, "pending") if len(names) > 1 else {}
        await self._show_plan()

    async def _mark(self, step: str, status: str) -> None:
        if step in self._plan:
            self._plan[step] = status
            await self._show_plan()

    async def _show_plan(self) -> None:
        if self._plan:
            entries = [
                {"content": name, "priority": "medium", "status": status}
                for name, status in self._plan.items()
            ]
            await self._update("plan", entries=entries)

    async def _stream(self, agent: str, event: stream.AgentStreamEvent) -> None:
        match event:
            case stream.Text(text=text):
                if self._several and agent != self._speaker:
                    self._speaker = agent
                    await self.say(f"\n\n**{agent}**\n\n")
                await self.say(text)
            case stream.Thinking(text=text):
                await self._update("agent_thought_chunk", content={"type": "text", "text": text})
            case stream.ToolCall():
                await self._update(
                    "tool_call",
                    toolCallId=f"{agent}/{event.tool_call_id}",
                    title=event.tool_name,
                    kind=_KINDS.get(event.tool_name, "other"),
                    status="in_progress",
                    rawInput=_decoded(event.args),
                )
            case stream.ToolResult():
                text = event.error or event.output
                shown = [{"type": "content", "content": {"type": "text", "text": text}}]
                await self._update(
                    "tool_call_update",
                    toolCallId=f"{agent}/{event.tool_call_id}",
                    status="completed" if event.status == "completed" else "failed",
                    content=shown,
                )
            case _:
                return

    async def _update(self, what: str, /, **fields: Any) -> None:
        update = {"sessionUpdate": what, **fields}
        await self._notify("session/update", {"sessionId": self._session, "update": update})


def _decoded(args: str) -> Any:
    try:
        return msgspec.json.decode(args)
    except msgspec.DecodeError:
        return {"arguments": args}
