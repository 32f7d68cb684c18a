"""The daemon's feed, for programs: what happens, event by event, as it happens."""

import json
from collections.abc import Iterator
from typing import Any, Final
from urllib.parse import urlencode

from stringd.client.http import DaemonConnection, TransportError
from stringd.wire.sse import SseReader

SILENCE_SECONDS: Final = 60.0
"""The daemon sends something every 15 seconds; without it for so long it is gone."""


def overview(port: int) -> dict[str, Any]:
    """How everything is now. Raises `TransportError`."""
    with DaemonConnection(port, timeout=SILENCE_SECONDS) as connection:
        reply = connection.request("GET", "/overview")
    if reply.status != 200:
        raise TransportError(_refusal(reply.body, reply.status))
    held: dict[str, Any] = json.loads(reply.body)
    return held


def follow(port: int, types: str = "", after: str = "") -> Iterator[dict[str, Any]]:
    """Events from now on, or after the one of that id; ends with `TransportError`."""
    query = urlencode({k: v for k, v in (("types", types), ("after", after)) if v})
    path = f"/events?{query}" if query else "/events"
    with DaemonConnection(port, timeout=SILENCE_SECONDS) as connection:
        try:
            status, _, pieces = connection.stream("GET", path, None, {})
            if status != 200:
                raise TransportError(_refusal(b"".join(pieces), status))
            reader = SseReader()
            for piece in pieces:
                for _, data in reader.feed(piece):
                    yield json.loads(data)
        except ConnectionRefusedError as error:
            raise TransportError(
                f"no stringd answers on port {port}: start it with `stringd up`"
            ) from error
        except OSError as error:
            reason = error.strerror or error
            raise TransportError(f"stringd on port {port}: {reason}") from error
    raise TransportError(f"stringd on port {port} ended the feed")


def _refusal(body: bytes, status: int) -> str:
    try:
        said = json.loads(body)
    except ValueError:
        said = None
    reason = said.get("error") if isinstance(said, dict) else None
    return str(reason or f"the daemon answered {status}")
