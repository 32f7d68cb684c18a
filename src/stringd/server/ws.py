"""`/ws`: frames between a WebSocket and a runs client, nothing else."""

import asyncio
from contextlib import suppress
from typing import TYPE_CHECKING, Final

from stringd.server.http import encode_json

if TYPE_CHECKING:
    from stringd.runs.audience import Client
    from stringd.runs.service import RunService
    from stringd.server.guard import Guard
    from stringd.server.http import Receive, Scope, Send

PATH: Final = "/ws"
GOING_AWAY: Final = 1001
# After this many frames the transport gets a turn to say that it is full.
_BURST: Final = 64


class WebSocketEndpoint:
    """ASGI for scopes of type `websocket`. Refuses whom the guard refuses, before the upgrade."""

    def __init__(self, runs: "RunService", guard: "Guard") -> None:
        self._runs = runs
        self._guard = guard

    async def __call__(self, scope: "Scope", receive: "Receive", send: "Send") -> None:
        await receive()
        refusal = self._guard.refusal(scope["headers"])
        if refusal is not None:
            await _refuse(send, 403, refusal)
        elif scope["path"] != PATH:
            await _refuse(send, 404, f"Not found: GET {scope['path']}")
        else:
            await send({"type": "websocket.accept"})
            await self._serve(receive, send)

    async def _serve(self, receive: "Receive", send: "Send") -> None:
        client = self._runs.connect()
        writer = asyncio.create_task(_write(client, send))
        try:
            await _read(client, receive)
        finally:
            client.gone()
            await writer


async def _read(client: "Client", receive: "Receive") -> None:
    while (event := await receive())["type"] == "websocket.receive":
        text = event.get("text")
        client.receive(event["bytes"] if text is None else text)
        await client.room()


async def _write(client: "Client", send: "Send") -> None:
    # The connection may end under any send; the reader hears of it too and cleans up.
    with suppress(OSError):
        while frames := await client.take():
            for number, frame in enumerate(frames, 1):
                await send({"type": "websocket.send", "text": frame})
                if number % _BURST == 0:
                    await asyncio.sleep(0)
        if not client.finished.is_set():
            close = {"type": "websocket.close", "code": GOING_AWAY}
            await send({**close, "reason": "Server shutting down"})
        return
    client.gone()


async def _refuse(send: "Send", status: int, reason: str) -> None:
    headers = [(b"content-type", b"application/json")]
    await send({"type": "websocket.http.response.start", "status": status, "headers": headers})
    await send({"type": "websocket.http.response.body", "body": encode_json({"error": reason})})
