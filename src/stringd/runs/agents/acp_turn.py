"""What a coding agent says and does in answer to one message, as events of the run."""

from collections.abc import Mapping
from typing import Any

import msgspec

from stringd.runs.agents.agent import AgentTurn
from stringd.runs.tools.files import text
from stringd.wire.runs import stream


class AcpTurn:
    """One message and everything that follows. `reasons` are words of the user for the agent."""

    def __init__(self, call: AgentTurn) -> None:
        self.call = call
        self.reasons: list[str] = []
        self._texts: list[str] = []
        self._thought = ""
        self._thoughts = 0
        self._plans = 0
        self._tools: dict[str, dict[str, Any]] = {}

    @property
    def text(self) -> str:
        return "".join(self._texts)

    async def take(self, update: Mapping[str, Any]) -> None:
        match update.get("sessionUpdate"):
            case "agent_message_chunk":
                await self.say(_plain(update.get("content")))
            case "agent_thought_chunk":
                await self._think(_plain(update.get("content")))
            case "tool_call" | "tool_call_update":
                await self.tool(update)
            case "plan":
                await self._plan(update)
            case _:
                # Modes and commands of the agent's own are for its user interface.
                return

    async def say(self, said: str) -> None:
        """A piece of the answer."""
        await self.end_thought()
        self._texts.append(said)
        await self.call.emit(stream.Text(text=said))

    async def end_thought(self) -> None:
        if self._thought:
            ended, self._thought = self._thought, ""
            await self.call.emit(stream.ThinkingEnd(id=ended))

    async def _think(self, said: str) -> None:
        if not self._thought:
            self._thoughts += 1
            self._thought = f"thought-{self._thoughts}"
            await self.call.emit(stream.ThinkingStart(id=self._thought))
        await self.call.emit(stream.Thinking(id=self._thought, text=said))

    async def tool(self, update: Mapping[str, Any]) -> None:
        """What is known of a tool call now."""
        await self.end_thought()
        ident = str(update.get("toolCallId", ""))
        known = self._tools.get(ident)
        if known is None:
            known = self._tools[ident] = {}
        known.update({key: value for key, value in update.items() if value is not None})
        # Agents announce a call first and say what it is for a moment later.
        vague = not known.get("rawInput") and known.get("status", "pending") == "pending"
        if "announced" not in known and not vague:
            known["announced"] = True
            await self.call.emit(
                stream.ToolCall(
                    tool_call_id=ident, tool_name=tool_name(known), args=_arguments(known)
                )
            )
        status = known.get("status")
        if status in ("completed", "failed") and "ended" not in known:
            known["ended"] = True
            await self.call.emit(
                stream.ToolResult(
                    tool_call_id=ident,
                    tool_name=tool_name(known),
                    output=shown_content(known.get("content")),
                    status="completed",
                )
            )

    async def _plan(self, update: Mapping[str, Any]) -> None:
        self._plans += 1
        ident = f"plan-{self._plans}"
        entries = [each for each in update.get("entries") or () if isinstance(each, dict)]
        marks = {"completed": "x", "in_progress": "~"}
        lines = [
            f"- [{marks.get(str(each.get('status')), ' ')}] {each.get('content', '')}"
            for each in entries
        ]
        args = msgspec.json.encode({"entries": entries}).decode()
        call = stream.ToolCall(tool_call_id=ident, tool_name="plan", args=args)
        await self.call.emit(call)
        output = "\n".join(lines)
        await self.call.emit(
            stream.ToolResult(
                tool_call_id=ident, tool_name="plan", output=output, status="completed"
            )
        )


def tool_name(call: Mapping[str, Any]) -> str:
    """What kind of tool a call uses; agents name kinds, not tools."""
    return str(call.get("kind") or "tool")


def _arguments(call: Mapping[str, Any]) -> str:
    raw = call.get("rawInput")
    given = {"title": call.get("title")} | (raw if isinstance(raw, dict) else {})
    return msgspec.json.encode(
        {key: each for key, each in given.items() if each is not None}
    ).decode()


def _plain(content: Any) -> str:
    """The text of one block of content; what is not text is named."""
    if not isinstance(content, dict):
        return ""
    if content.get("type") == "text":
        return str(content.get("text", ""))
    return f"[{content.get('type', 'something')}]"


def shown_content(content: Any) -> str:
    """What a tool call shows: texts, and changes of files as differences."""
    parts = []
    for each in content if isinstance(content, list) else ():
        if not isinstance(each, dict):
            continue
        if each.get("type") == "diff":
            before, after = str(each.get("oldText") or ""), str(each.get("newText") or "")
            parts.append(text.diff(before, after, str(each.get("path", ""))))
        else:
            parts.append(_plain(each.get("content")))
    return "\n".join(filter(None, parts))
