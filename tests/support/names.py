"""Host names with addresses of our choice."""

import asyncio
import socket
from collections.abc import Mapping, Sequence
from typing import Any

import pytest


def lead(monkeypatch: pytest.MonkeyPatch, names: Mapping[str, Sequence[str]]) -> None:
    """From now on these names lead to these addresses; all others are looked up as ever."""
    real = asyncio.BaseEventLoop.getaddrinfo

    async def found(loop: asyncio.BaseEventLoop, host: str, port: int, **more: Any) -> Any:
        if host not in names:
            return await real(loop, host, port, **more)
        return [
            answer
            for address in names[host]
            for answer in socket.getaddrinfo(address, port, type=socket.SOCK_STREAM)
        ]

    monkeypatch.setattr(asyncio.BaseEventLoop, "getaddrinfo", found)
