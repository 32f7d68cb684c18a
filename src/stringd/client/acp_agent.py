"""Every strategy as an agent for editors that speak the Agent Client Protocol.

A session is a run: its first prompt starts it, the next ones continue it, or answer what it asked.
"""

import asyncio
import json
from collections.abc import Awaitable, Callable, Mapping
from contextlib import suppress
from itertools import count
from typing import Any, Final, Protocol

import msgspec

from stringd.client.acp_updates import Updates
from stringd.client.async_runs import AsyncRuns, Decision, RunHandle
from stringd.client.runs import RunsError
from stringd.wire.runs import messages as m

PROTOCOL: Final = 1
METHOD_NOT_FOUND, INVALID_PARAMS, INTERNAL_ERROR = -32601, -32602, -32603
_OPTIONS: Final[tuple[tuple[Decision, str, str], ...]] = (
    ("allow", "Allow", "allow_once"),
    ("allow-session", "Allow for this session", "allow_always"),
    ("deny", "Deny", "reject_once"),
    ("deny-session", "Deny for this session", "reject_always"),
)
Send = Callable[[Mapping[str, Any]], Awaitable[None]]
Params = Mapping[str, Any]


class RefusedRequest(Exception):  # noqa: N818 - an answer of the protocol
    """A request that cannot be done as asked."""

    def __init__(self, code: int, message: str) -> None:
        super().__init__(message)
        self.code = code


class Editor(Protocol):
    """The other side."""

    async def notify(self, method: str, params: Params) -> None: ...

    async def request(self, method: str, params: Params) -> Any: ...


class EditorSession:
    """One conversation of the editor's."""

    def __init__(self, name: str, cwd: str, strategy: str, editor: Editor, runs: AsyncRuns) -> None:
        self.name = name
        self.strategy = strategy
        self._cwd = cwd
        self._editor = editor
        self._runs = runs
        self._run_id = ""
        self._handle: RunHandle | None = None
        self._asked: m.RequestInput | m.RequestQuestion | None = None
        self._cancelled = False

    async def prompt(self, text: str) -> str:
        """Why the turn ended. Raises `RefusedRequest`, `RunsError`."""
        self._cancelled = False
        handle = await self._begun(text)
        updates = Updates(self.name, self._editor.notify)
        async for event in handle:
            match event:
                case m.RequestPermission():
                    await self._decide(event)
                case m.RequestInput() | m.RequestQuestion():
                    # The protocol has no questions: the next prompt is the answer.
                    self._asked = event
                    await updates.say(_question(event))
                    return "end_turn"
                case m.StrategyError(error=error):
                    self._handle = None
                    if self._cancelled or error.code == "CANCELLED":
                        return "cancelled"
                    raise RefusedRequest(INTERNAL_ERROR, error.message)
                case m.StrategyCompleted(result=result):
                    self._handle = None
                    await updates.result(result)
                case _:
                    await updates.take(event)
        return "end_turn"

    async def cancel(self) -> None:
        """Stop what the session works on."""
        self._cancelled = True
        self._asked = None
        if self._handle is not None:
            with suppress(RunsError):
                await self._handle.stop()

    async def _begun(self, text: str) -> RunHandle:
        asked, self._asked = self._asked, None
        if asked is not None and self._handle is not None:
            await self._runs.answer(asked, text)
            return self._handle
        if self._run_id:
            self._handle = await self._runs.continue_run(self._run_id, text)
        else:
            self._handle = await self._runs.run(self.strategy, text, cwd=self._cwd)
            self._run_id = self._handle.run_id
        return self._handle

    async def _decide(self, prompt: m.RequestPermission) -> None:
        kinds = {"fs.read": "read", "fs.write": "edit", "fs.exec": "execute"}
        call = {
            "toolCallId": f"permission-{prompt.request_id}",
            "title": prompt.resource,
            "kind": kinds[prompt.operation],
            "rawInput": {"resource": prompt.resource, **(prompt.details or {})},
        }
        options = [{"optionId": each, "name": name, "kind": kind} for each, name, kind in _OPTIONS]
        asked = {"sessionId": self.name, "toolCall": call, "options": options}
        answer = await self._editor.request("session/request_permission", asked)
        outcome = (answer or {}).get("outcome", {})
        chosen = outcome.get("optionId")
        decision: Decision = next((each for each, *_ in _OPTIONS if each == chosen), "deny")
        await self._runs.decide(prompt, decision)


def _question(prompt: m.RequestInput | m.RequestQuestion) -> str:
    if isinstance(prompt, m.RequestQuestion):
        return f"\n\n**{prompt.agent_name} asks:** {prompt.question}\n"
    return f"\n\n**{prompt.agent_name} waits for a text from you.**\n"


class StrategyAgent:
    """Answers an editor's requests, a line each. `send` writes a message to it."""

    def __init__(self, runs: AsyncRuns, send: Send, strategy: str | None, version: str) -> None:
        self._runs = runs
        self._send = send
        self._strategy = strategy
        self._version = version
        self._sessions: dict[str, EditorSession] = {}
        self._ids = count(1)
        self._waiting: dict[str, asyncio.Future[Any]] = {}
        self._working: set[asyncio.Task[None]] = set()

    def receive(self, line: bytes) -> None:
        """Take one message; answers are sent when there are any."""
        try:
            message = json.loads(line)
        except ValueError:
            return
        if not isinstance(message, dict):
            return
        if "method" in message:
            task = asyncio.get_running_loop().create_task(self._take(message))
            self._working.add(task)
            task.add_done_callback(self._working.discard)
        else:
            waiting = self._waiting.get(str(message.get("id")))
            if waiting is not None and not waiting.done():
                waiting.set_result(message.get("result"))

    async def close(self) -> None:
        """Stop what was begun for the editor."""
        for session in self._sessions.values():
            await session.cancel()
        for task in list(self._working):
            task.cancel()
        await asyncio.gather(*self._working, return_exceptions=True)

    async def notify(self, method: str, params: Params) -> None:
        await self._send({"jsonrpc": "2.0", "method": method, "params": params})

    async def request(self, method: str, params: Params) -> Any:
        number = f"stringd-{next(self._ids)}"
        future: asyncio.Future[Any] = asyncio.get_running_loop().create_future()
        self._waiting[number] = future
        try:
            asked = {"jsonrpc": "2.0", "id": number, "method": method, "params": params}
            await self._send(asked)
            return await future
        finally:
            del self._waiting[number]

    async def _take(self, message: Mapping[str, Any]) -> None:
        params = message.get("params")
        given: Params = params if isinstance(params, dict) else {}
        answer: dict[str, Any]
        try:
            answer = {"result": await self._answer(str(message["method"]), given)}
        except RefusedRequest as error:
            answer = {"error": {"code": error.code, "message": str(error)}}
        except (RunsError, KeyError, TypeError, msgspec.ValidationError) as error:
            answer = {"error": {"code": INTERNAL_ERROR, "message": str(error)}}
        if "id" in message:
            await self._send({"jsonrpc": "2.0", "id": message["id"], **answer})

    async def _answer(self, method: str, params: Params) -> Any:
        match method:
            case "initialize":
                return {
                    "protocolVersion": PROTOCOL,
                    "agentCapabilities": {"loadSession": False},
                    "agentInfo": {
                        "name": "stringd",
                        "title": "stringd",
                        "version": self._version,
                    },
                    "authMethods": [],
                }
            case "authenticate":
                return {}
            case "session/new":
                return await self._new(str(params["cwd"]))
            case "session/set_mode":
                self._session(params).strategy = str(params["modeId"])
                return {}
            case "session/prompt":
                text = "\n\n".join(filter(None, map(_text_of, params["prompt"])))
                return {"stopReason": await self._session(params).prompt(text)}
            case "session/cancel":
                await self._session(params).cancel()
                return None
            case _:
                raise RefusedRequest(METHOD_NOT_FOUND, f"Method not found: {method}")

    async def _new(self, cwd: str) -> Mapping[str, Any]:
        found = await self._runs.strategies(cwd)
        names = [each.name for each in found]
        chosen = self._strategy or (names[0] if names else "hello")
        name = f"stringd-{next(self._ids)}"
        self._sessions[name] = EditorSession(name, cwd, chosen, self, self._runs)
        modes = [
            {"id": each.name, "name": each.label, "description": each.description or ""}
            for each in found
        ]
        if chosen not in names:
            modes.insert(0, {"id": chosen, "name": chosen, "description": ""})
        return {
            "sessionId": name,
            "modes": {"currentModeId": chosen, "availableModes": modes},
        }

    def _session(self, params: Params) -> EditorSession:
        found = self._sessions.get(str(params.get("sessionId")))
        if found is None:
            raise RefusedRequest(INVALID_PARAMS, f"Unknown session: {params.get('sessionId')}")
        return found


def _text_of(block: Any) -> str:
    """The text of a part of a prompt; a file that is mentioned becomes its address."""
    if not isinstance(block, dict):
        return ""
    match block.get("type"):
        case "text":
            return str(block.get("text", ""))
        case "resource":
            inner = block.get("resource", {})
            return f"{inner.get('uri', '')}\n{inner.get('text', '')}"
        case "resource_link":
            return str(block.get("uri", ""))
        case _:
            return ""
