"""JSON-RPC with a coding agent: requests in both directions over the lines of its process."""

import asyncio
from collections.abc import Awaitable, Callable, Mapping
from itertools import count
from typing import Any, Final

import msgspec

from stringd.net.line_process import LineProcess
from stringd.net.mcp_budget import FloodError, check_message

METHOD_NOT_FOUND: Final = -32601
INTERNAL_ERROR: Final = -32603
MAX_REQUESTS: Final = 64
"""Of the other side that wait for an answer: each may be a question to the person."""

Params = Mapping[str, Any]


class RpcError(Exception):
    """The other side refused a request, or ours refuses its."""

    def __init__(self, code: int, message: str, data: Any = None) -> None:
        super().__init__(message)
        self.code = code
        self.data = data


class RpcGoneError(Exception):
    """The other side has ended; the text says why as far as that is known."""


class RpcPeer:
    """One connection. `answer` takes the other side's requests, `hear` its notifications."""

    def __init__(
        self,
        process: LineProcess,
        answer: Callable[[str, Params], Awaitable[Any]],
        hear: Callable[[str, Params], Awaitable[None]],
    ) -> None:
        self._process = process
        self._answer = answer
        self._hear = hear
        self._ids = count(1)
        self._waiting: dict[int, asyncio.Future[Any]] = {}
        self._working: set[asyncio.Task[None]] = set()
        self._why = ""
        self._reading = asyncio.create_task(self._read())

    async def request(self, method: str, params: Params) -> Any:
        """The result. Raises `RpcError`, `RpcGoneError`."""
        number = next(self._ids)
        future: asyncio.Future[Any] = asyncio.get_running_loop().create_future()
        self._waiting[number] = future
        try:
            await self._send({"id": number, "method": method, "params": params})
            return await future
        finally:
            del self._waiting[number]

    async def notify(self, method: str, params: Params) -> None:
        """Raises `RpcGoneError`."""
        await self._send({"method": method, "params": params})

    async def close(self) -> None:
        """Take nothing more."""
        tasks = [self._reading, *self._working]
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)

    async def _send(self, message: dict[str, Any]) -> None:
        if self._reading.done():
            raise RpcGoneError(self._why or "it has ended")
        try:
            await self._process.send(msgspec.json.encode({"jsonrpc": "2.0", **message}))
        except OSError as error:
            raise RpcGoneError(str(error)) from None

    async def _read(self) -> None:
        try:
            async for line in self._process.lines():
                check_message(line)
                try:
                    message = msgspec.json.decode(line)
                except (msgspec.DecodeError, UnicodeDecodeError):
                    # Some agents print a greeting first.
                    continue
                if isinstance(message, dict):
                    await self._take(message)
        except (FloodError, OSError, RpcGoneError) as error:
            self._why = str(error)
        finally:
            for future in self._waiting.values():
                if not future.done():
                    future.set_exception(RpcGoneError(self._why or "it has ended"))

    async def _take(self, message: dict[str, Any]) -> None:
        method, number = message.get("method"), message.get("id")
        params = message.get("params")
        given: Params = params if isinstance(params, dict) else {}
        if isinstance(method, str) and number is None:
            # In order: what an agent says must not be shuffled.
            await self._hear(method, given)
        elif isinstance(method, str) and len(self._working) >= MAX_REQUESTS:
            error = {
                "code": INTERNAL_ERROR,
                "message": f"more than {MAX_REQUESTS} requests at once",
            }
            await self._send({"id": number, "error": error})
        elif isinstance(method, str):
            task = asyncio.create_task(self._reply(number, method, given))
            self._working.add(task)
            task.add_done_callback(self._working.discard)
        elif isinstance(number, int) and number in self._waiting:
            _settle(self._waiting[number], message)

    async def _reply(self, number: Any, method: str, params: Params) -> None:
        try:
            message: dict[str, Any] = {"result": await self._answer(method, params)}
        except RpcError as error:
            message = {"error": {"code": error.code, "message": str(error)}}
        except Exception as error:  # noqa: BLE001  # the other side is told, whatever happened
            message = {"error": {"code": INTERNAL_ERROR, "message": str(error)}}
        try:
            await self._send({"id": number, **message})
        except RpcGoneError:
            return


def _settle(future: "asyncio.Future[Any]", message: dict[str, Any]) -> None:
    if future.done():
        return
    error = message.get("error")
    if isinstance(error, dict):
        text, code = str(error.get("message", "")), error.get("code", INTERNAL_ERROR)
        future.set_exception(RpcError(int(code), text, error.get("data")))
    else:
        future.set_result(message.get("result"))
