"""A session with a coding agent: started, asked, heard, stopped."""

import asyncio
from collections import deque
from collections.abc import Awaitable, Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any, Final, Protocol

from stringd import __version__
from stringd.net.line_process import LineProcess, start_line_process
from stringd.runs.acp.rpc import METHOD_NOT_FOUND, Params, RpcError, RpcGoneError, RpcPeer
from stringd.runs.errors import ModelError
from stringd.runs.strategy.acp_commands import missing

PROTOCOL: Final = 1
AUTH_REQUIRED: Final = -32000
STARTING_SECONDS: Final = 120.0
"""The first start may have to fetch a package."""
CANCEL_SECONDS: Final = 3.0
_PRINTED_LINES: Final = 20


class AcpHost(Protocol):
    """What an agent's session needs of the run around it."""

    async def update(self, update: Mapping[str, Any]) -> None:
        """Something the agent says or does."""

    async def permission(self, params: Params) -> Mapping[str, Any]:
        """The outcome of a permission request, as the protocol writes it."""

    async def read(self, path: str, line: int | None, limit: int | None) -> str:
        """Raises `RpcError`."""

    async def write(self, path: str, content: str) -> None:
        """Raises `RpcError`."""


class AcpSession:
    """One agent process with one session. `started` it, then `prompt` it."""

    def __init__(self, command: Sequence[str], host: AcpHost) -> None:
        self._command = command
        self._host = host
        self._printed: deque[str] = deque(maxlen=_PRINTED_LINES)
        self._process: LineProcess | None = None
        self._printing: asyncio.Task[None] | None = None
        self._peer: RpcPeer | None = None
        self._heard = False
        self.id = ""

    async def start(
        self, environment: Mapping[str, str], cwd: Path, earlier: str | None = None
    ) -> bool:
        """Start the agent; True when it took up the session `earlier`. Raises `ModelError`."""
        try:
            self._process = await start_line_process(self._command, environment, str(cwd))
        except FileNotFoundError:
            raise ModelError(missing(self._command[0])) from None
        except (OSError, ValueError) as error:
            raise ModelError(f"{self._command[0]} cannot be started: {error}") from None
        self._printing = asyncio.create_task(self._process.print_to(self._keep))
        self._peer = RpcPeer(self._process, self._answer, self._hear)
        return bool(await self._spoken("start", STARTING_SECONDS, self._open(cwd, earlier)))

    async def prompt(self, text: str) -> Mapping[str, Any]:
        """Ask, and wait until the agent is done; what it says at the end. Raises `ModelError`."""
        self._heard = True
        content = [{"type": "text", "text": text}]
        try:
            answer = await self._spoken(
                "answer",
                None,
                self._rpc.request("session/prompt", {"sessionId": self.id, "prompt": content}),
            )
        finally:
            self._heard = False
        return answer if isinstance(answer, dict) else {}

    async def cancel(self) -> None:
        """Ask the agent to stop what it does."""
        with suppress(RpcGoneError):
            await self._rpc.notify("session/cancel", {"sessionId": self.id})

    async def close(self) -> None:
        """End the agent with everything it started."""
        if self._process is None:
            return
        try:
            await self._process.end()
        finally:
            if self._peer is not None:
                await self._peer.close()
            if self._printing is not None:
                self._printing.cancel()
                await asyncio.gather(self._printing, return_exceptions=True)
            self._process.close()

    @property
    def _rpc(self) -> RpcPeer:
        assert self._peer is not None
        return self._peer

    async def _open(self, cwd: Path, earlier: str | None) -> bool:
        can = {"fs": {"readTextFile": True, "writeTextFile": True}, "terminal": False}
        told = await self._rpc.request(
            "initialize",
            {
                "protocolVersion": PROTOCOL,
                "clientCapabilities": can,
                "clientInfo": {"name": "stringd", "title": "stringd", "version": __version__},
            },
        )
        answer = told if isinstance(told, dict) else {}
        place = {"cwd": str(cwd), "mcpServers": []}
        able = (answer.get("agentCapabilities") or {}).get("loadSession", False)
        if earlier and able:
            # One that is forgotten there is begun again.
            with suppress(RpcError):
                await self._rpc.request("session/load", {"sessionId": earlier, **place})
                self.id = earlier
                return True
        try:
            made = await self._rpc.request("session/new", place)
        except RpcError as error:
            raise _refused(error, answer) from None
        self.id = str(made["sessionId"])
        return False

    async def _spoken(self, what: str, seconds: float | None, work: Awaitable[Any]) -> Any:
        """A result of the agent. Raises `ModelError` with its last words when there is none."""
        name = " ".join(self._command)
        try:
            async with asyncio.timeout(seconds):
                return await work
        except TimeoutError:
            why = f"{name} did not {what} within {seconds:g} s"
        except RpcGoneError as error:
            why = f"{name} ended: {error}"
            if self._printing is not None:
                await asyncio.wait({self._printing}, timeout=1)
        except RpcError as error:
            why = f"{name}: {error}"
        raise ModelError("\n".join([why, *self._printed]))

    async def _hear(self, method: str, params: Params) -> None:
        update = params.get("update")
        # A session that is loaded repeats what was said in it.
        if method == "session/update" and isinstance(update, dict) and self._heard:
            await self._host.update(update)

    async def _answer(self, method: str, params: Params) -> Any:
        match method:
            case "session/request_permission":
                return await self._host.permission(params)
            case "fs/read_text_file":
                line, limit = (_number(params.get(each)) for each in ("line", "limit"))
                return {"content": await self._host.read(str(params.get("path")), line, limit)}
            case "fs/write_text_file":
                await self._host.write(str(params.get("path")), str(params.get("content", "")))
                return None
            case _:
                raise RpcError(METHOD_NOT_FOUND, f"Method not found: {method}")

    def _keep(self, data: bytes) -> None:
        self._printed.extend(data.decode("utf-8", "replace").splitlines())


def _number(value: Any) -> int | None:
    return value if isinstance(value, int) and not isinstance(value, bool) else None


def _refused(error: RpcError, answer: Mapping[str, Any]) -> ModelError:
    if error.code != AUTH_REQUIRED:
        return ModelError(str(error))
    ways = [each for each in answer.get("authMethods") or [] if isinstance(each, dict)]
    told = "; ".join(str(each.get("description") or each.get("name")) for each in ways)
    return ModelError(f"Log in to the agent first ({told or error}), in a terminal of your own.")
