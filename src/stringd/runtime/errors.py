"""What goes wrong in the runtime.

CommandError        a command cannot do what was asked; becomes the reply
NotSavedError       what a topic remembers could not be written
StorageError        a file of the data directory cannot be used
UnknownUserError    no such user
QueueFullError      a topic has no waiting slot left
QueueTimeoutError   a request waited too long for its topic
TopicClosedError    a request waited for a topic that was closed
CallerLeftError     whoever sent a waiting request does not wait for it any more
"""

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pathlib import Path


class RuntimeRoomError(Exception):
    """The family of this room's errors."""


class CommandError(RuntimeRoomError):
    """A command failed; `code` and `message` are its reply."""

    def __init__(self, code: str | None, message: str) -> None:
        super().__init__(message)
        self.code = code
        self.message = message


class NotSavedError(CommandError):
    """A command changed what a topic remembers, and that is in memory alone."""

    def __init__(self, why: str) -> None:
        super().__init__(
            "INTERNAL_ERROR",
            f"Not saved: {why}. What the command did outside this topic is done; what the topic "
            "remembers of it would be lost by a restart. Make room in the data directory, or end "
            "what holds sessions.db; the next command of the topic saves it.",
        )


class StorageError(RuntimeRoomError):
    """A daemon cannot start on this data directory as it is."""

    def __init__(self, path: "Path", cause: Exception) -> None:
        super().__init__(
            f"cannot use {path}: {cause}. Make room on its disk, end what holds the file, or "
            "choose another directory with STRINGD_DATA_DIR."
        )


class UnknownUserError(RuntimeRoomError):
    """No user has this id."""

    def __init__(self, user_id: str) -> None:
        super().__init__(f"Unknown user: {user_id}")


class QueueFullError(RuntimeRoomError):
    """Every waiting slot of the topic is taken."""


class QueueTimeoutError(RuntimeRoomError):
    """The wait for the topic's turn took too long."""

    def __init__(self) -> None:
        super().__init__("Timed out waiting in queue.")


class TopicClosedError(RuntimeRoomError):
    """The topic was closed before the turn came."""

    def __init__(self) -> None:
        super().__init__("Not run: the topic was closed before its turn came.")


class CallerLeftError(RuntimeRoomError):
    """The caller left before the topic's turn came."""
