"""`GET /describe`: what this daemon is, what it offers and within which limits."""

from typing import Any, Final

from stringd import __version__
from stringd.runtime.topics.queue import MAX_WAITING
from stringd.server.http.messages import MAX_BODY_BYTES

API: Final = "stringd/v0.1"
ENDPOINTS: Final = (
    "GET /health",
    "GET /describe",
    "GET /users",
    "POST /users",
    "DELETE /users/:id",
    "GET /sessions",
    "POST /sessions",
    "DELETE /sessions/:user_id/:topic",
    "POST /exec",
    "POST /chanflow",
    "POST /mcp",
    "GET /ws",
    "POST /shutdown",
)
"""Each once: what is below `/users` is below `/agents` too."""


def describe() -> dict[str, Any]:
    """The whole answer."""
    body = {"max_request_body_bytes": MAX_BODY_BYTES}
    return {
        "name": "stringd",
        "version": __version__,
        "api": API,
        "capabilities": {
            "describe": True,
            "agents": True,
            "sessions": True,
            "exec": body,
            "chanflow": body,
            "mcp": True,
            "runs": True,
        },
        "limits": {**body, "max_queued_commands": MAX_WAITING},
        "endpoints": list(ENDPOINTS),
    }
