"""The run around a coding agent, as the agent's session sees it: permissions and files."""

import asyncio
from collections.abc import Mapping, Sequence
from typing import Any, Final, Literal

from stringd.runs.acp.rpc import INTERNAL_ERROR, Params, RpcError
from stringd.runs.agents.acp_turn import AcpTurn, shown_content, tool_name
from stringd.runs.guard.errors import Denied
from stringd.runs.tools.context import ToolContext
from stringd.runs.tools.files import disk, text
from stringd.runs.tools.files.changes import recorded
from stringd.runs.tools.output import ToolFailure

_KINDS: Final[Mapping[str, Literal["read", "write"]]] = {
    "read": "read",
    "search": "read",
    "fetch": "read",
    "edit": "write",
    "delete": "write",
    "move": "write",
}


class RunHost:
    """Answers what the agent asks; `turn` is the message it works on."""

    def __init__(self, context: ToolContext) -> None:
        self._context = context
        self.turn: AcpTurn | None = None
        # An agent that asked for a change makes it next; that is not asked again.
        self._granted: set[str] = set()

    async def update(self, update: Mapping[str, Any]) -> None:
        if self.turn is not None:
            await self.turn.take(update)

    async def permission(self, params: Params) -> Mapping[str, Any]:
        asked = params.get("toolCall")
        call: Mapping[str, Any] = asked if isinstance(asked, dict) else {}
        options = [each for each in params.get("options") or () if isinstance(each, dict)]
        direction, resource = _wanted(call)
        if self.turn is not None:
            await self.turn.tool(call)
        title, changes = str(call.get("title") or resource), shown_content(call.get("content"))
        details = {"title": title, **({"changes": changes} if changes else {})}
        agent, permissions = self._context.agent_name, self._context.desk.permissions
        try:
            await permissions.asked(
                agent,
                tool_name(call),
                direction,
                resource,
                details,
            )
        except Denied as denied:
            _, told, reason = str(denied).partition("was denied by the user: ")
            if told and self.turn is not None:
                self.turn.reasons.append(f'The user denied "{title}" and says: {reason}')
            return _chosen(options, "reject_once", "reject_always")
        if direction == "write":
            self._granted.add(resource)
        return _chosen(options, "allow_once", "allow_always")

    async def read(self, path: str, line: int | None, limit: int | None) -> str:
        try:
            place = await self._context.desk.permissions.path(
                self._context.agent_name, "read_file", "read", path
            )
            content = await asyncio.to_thread(disk.read, place)
        except (Denied, ToolFailure, OSError) as error:
            raise RpcError(INTERNAL_ERROR, str(error)) from None
        whole = text.decode(content.data).text
        if line is None and limit is None:
            return whole
        first = max(1, line or 1) - 1
        return "\n".join(whole.split("\n")[first : None if limit is None else first + limit])

    async def write(self, path: str, content: str) -> None:
        context = self._context
        try:
            place = await context.desk.permissions.path(
                context.agent_name, "write_file", "write", path, granted=path in self._granted
            )
            self._granted.discard(path)
            new = not disk.is_there(place)
            with recorded(context, "write_file", "create" if new else "update", place) as event:
                data = content.encode()
                if new:
                    await asyncio.to_thread(disk.make_parents, place)
                    await asyncio.to_thread(disk.create, place, data)
                    before = ""
                else:
                    found = await asyncio.to_thread(disk.read, place)
                    event.before_sha256, before = found.sha256, text.decode(found.data).text
                    await asyncio.to_thread(disk.replace, place, data, found.mode)
                event.after_sha256 = disk.sha256(data)
                event.diff = await asyncio.to_thread(text.diff, before, content, place.shown)
        except (Denied, ToolFailure, OSError) as error:
            raise RpcError(INTERNAL_ERROR, str(error)) from None


def _wanted(call: Mapping[str, Any]) -> tuple[Literal["read", "write", "exec"], str]:
    """What a tool call would do, and to what."""
    kind = str(call.get("kind") or "other")
    given = call.get("rawInput")
    raw: Mapping[str, Any] = given if isinstance(given, dict) else {}
    command = raw.get("command")
    if isinstance(command, list):
        command = " ".join(map(str, command))
    places = [each.get("path") for each in call.get("locations") or () if isinstance(each, dict)]
    title = str(call.get("title") or kind)
    if kind in _KINDS:
        path = next((str(each) for each in places if each), None)
        return _KINDS[kind], path or str(raw.get("file_path") or raw.get("path") or title)
    return "exec", str(command) if command else title


def _chosen(options: Sequence[Mapping[str, Any]], *kinds: str) -> Mapping[str, Any]:
    for kind in kinds:
        for each in options:
            if each.get("kind") == kind:
                return {"outcome": {"outcome": "selected", "optionId": each.get("optionId")}}
    return {"outcome": {"outcome": "cancelled"}}
