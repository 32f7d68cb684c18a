"""What the String clients return."""

import re
from typing import Any, NamedTuple

from stringd.client.errors import command_failure


class OpenDocument(NamedTuple):
    """The document a topic shows."""

    uri: str
    title: str | None
    current_block: str | None


class ExecResult(NamedTuple):
    """What a command answered.

    `content` has no `re:` line. `code` is None on success; besides the daemon's own codes it is
    `QUEUE_FULL`, `QUEUE_TIMEOUT`, `STREAM_INCOMPLETE` or `HTTP_ERROR`. `meta` is the head event's,
    None when the topic shows no document.
    """

    ok: bool
    code: str | None
    content: str
    meta: dict[str, Any] | None = None
    topic: str | None = None
    request_id: str | None = None

    @property
    def document(self) -> OpenDocument | None:
        """The document the topic shows now."""
        return None if self.meta is None else _document(self.meta)

    def _repr_markdown_(self) -> str:
        """What notebooks show: the page itself, or what went wrong as plain text."""
        if self.ok:
            return self.content
        longest = max((len(run) for run in re.findall("`+", self.content)), default=0)
        fence = "`" * max(3, longest + 1)
        return f"{fence}text\n{self.content}\n{fence}"

    def unwrap(self) -> str:
        """The content. Raises `CommandFailed`, or one of its kinds, when the command failed."""
        if not self.ok:
            raise command_failure(self.code, self.content)
        return self.content


class RegisteredUser(NamedTuple):
    """A registered user."""

    id: str
    home: str
    allowed_paths: tuple[str, ...] = ()
    created_at: str = ""


class TopicState(NamedTuple):
    """An open topic."""

    user_id: str
    topic: str
    topic_type: str
    executing: bool = False
    queue_length: int = 0
    document: OpenDocument | None = None


class Health(NamedTuple):
    """What the daemon says about itself; `uptime` is milliseconds."""

    ok: bool
    users: int
    sessions: int
    status: str = ""
    uptime: int = 0
    active_runs: int = 0
    connected_clients: int = 0


def user(fields: dict[str, Any]) -> RegisteredUser:
    """A user from its JSON object."""
    allowed = tuple(fields.get("allowedPaths") or ())
    return RegisteredUser(fields["id"], fields["home"], allowed, fields.get("createdAt", ""))


def topic_state(fields: dict[str, Any]) -> TopicState:
    """An open topic from its JSON object."""
    doc = fields.get("doc")
    return TopicState(
        fields["user_id"],
        fields["topic"],
        fields.get("topic_type", ""),
        fields.get("executing", False),
        fields.get("queue_length", 0),
        _document(doc) if doc else None,
    )


def health(fields: dict[str, Any]) -> Health:
    """The daemon's health from its JSON object."""
    return Health(
        fields["ok"],
        fields["users"],
        fields["sessions"],
        fields.get("status", ""),
        fields.get("uptime", 0),
        fields.get("activeRuns", 0),
        fields.get("connectedClients", 0),
    )


def _document(fields: dict[str, Any]) -> OpenDocument:
    return OpenDocument(fields["uri"], fields.get("title"), fields.get("current_block"))
