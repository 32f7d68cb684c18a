"""Answers of one loop turn, written together at its end.

While requests are answered one after the other, the interpreter stays warm in the processor's
caches; a system call between two of them costs more than the call itself.
"""

import asyncio


class Outbox:
    """What all connections have to send in this turn."""

    __slots__ = ("_loop", "_pending")

    def __init__(self, loop: asyncio.AbstractEventLoop) -> None:
        self._loop = loop
        self._pending: list[tuple[asyncio.Transport, bytes]] = []

    def put(self, transport: asyncio.Transport, data: bytes) -> None:
        """Send this at the end of the turn, or with the next `flush`."""
        if not self._pending:
            self._loop.call_soon(self.flush)
        self._pending.append((transport, data))

    def flush(self) -> None:
        """Send everything now; whoever writes or closes by itself calls this first."""
        if self._pending:
            pending, self._pending = self._pending, []
            for transport, data in pending:
                if not transport.is_closing():
                    transport.write(data)
