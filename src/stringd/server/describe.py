"""`GET /describe`: what this daemon is, what it offers and within which limits."""

from typing import Any, Final

from stringd import __version__
from stringd.runtime.inbox import MAX_EVENT_BYTES
from stringd.runtime.topics.queue import MAX_WAITING
from stringd.server.http.messages import MAX_BODY_BYTES

API: Final = "stringd/v0.1"
ENDPOINTS: Final = (
    "GET /health",
    "GET /describe",
    "GET /users",
    "POST /users",
    "DELETE /users/:id",
    "GET /users/:id/webhook",
    "POST /users/:id/webhook",
    "POST /webhook/:token",
    "GET /sessions",
    "POST /sessions",
    "DELETE /sessions/:user_id/:topic",
    "POST /exec",
    "POST /chanflow",
    "GET /events",
    "GET /overview",
    "GET /metrics",
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
            "agent-webhooks": True,
            "events": {"max_webhook_text_bytes": MAX_EVENT_BYTES},
            "sessions": True,
            "exec": body,
            "chanflow": body,
            "mcp": True,
            "runs": True,
        },
        "limits": {**body, "max_queued_commands": MAX_WAITING},
        "endpoints": list(ENDPOINTS),
    }
