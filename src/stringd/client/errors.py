"""What the String clients raise.

StringClientError
  TransportError        the daemon cannot be reached, does not answer in time or not in HTTP
    StrangerError       another account of this machine has the port; nothing was sent
  RequestRefusedError   the daemon refused a request about users or topics
  CommandFailed         `ExecResult.unwrap()` of a command that did not succeed
    QueueFull           the topic has no waiting place left; nothing ran
    QueueTimeout        the topic stayed busy; nothing ran
    StreamIncomplete    the answer broke off; the command may have run
"""

from stringd.client.http import StrangerError, StringClientError, TransportError

__all__ = [
    "CommandFailed",
    "QueueFull",
    "QueueTimeout",
    "RequestRefusedError",
    "StrangerError",
    "StreamIncomplete",
    "StringClientError",
    "TransportError",
]


class RequestRefusedError(StringClientError):
    """The daemon answered, but not with what was asked for."""

    def __init__(self, status: int, reason: str) -> None:
        super().__init__(f"{reason} ({status})")
        self.status = status
        self.reason = reason


class CommandFailed(StringClientError):  # noqa: N818 - an outcome, not a fault of the client
    """A command's answer is an error; `code` and `content` are those of its result."""

    def __init__(self, code: str | None, content: str) -> None:
        super().__init__(content)
        self.code = code
        self.content = content


class QueueFull(CommandFailed):
    """16 commands already wait for the topic. Nothing ran; try again later."""


class QueueTimeout(CommandFailed):
    """The topic stayed busy for the whole waiting time. Nothing ran; try again later."""


class StreamIncomplete(CommandFailed):
    """The answer broke off before its end. The command may have run: look before repeating it."""


_BY_CODE = {
    "QUEUE_FULL": QueueFull,
    "QUEUE_TIMEOUT": QueueTimeout,
    "STREAM_INCOMPLETE": StreamIncomplete,
}


def command_failure(code: str | None, content: str) -> CommandFailed:
    """The exception an unsuccessful result stands for."""
    return _BY_CODE.get(code or "", CommandFailed)(code, content)
