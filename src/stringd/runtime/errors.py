"""What goes wrong in the runtime.

CommandError        a command cannot do what was asked; becomes the reply
UnknownUserError    no such user
QueueFullError      a topic has no waiting slot left
QueueTimeoutError   a request waited too long for its topic
CallerLeftError     whoever sent a waiting request does not wait for it any more
"""


class RuntimeRoomError(Exception):
    """The family of this room's errors."""


class CommandError(RuntimeRoomError):
    """A command failed; `code` and `message` are its reply."""

    def __init__(self, code: str | None, message: str) -> None:
        super().__init__(message)
        self.code = code
        self.message = message


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


class CallerLeftError(RuntimeRoomError):
    """The caller left before the topic's turn came."""
