"""What goes wrong in an action: one family, `code` and `message` are the reply."""


class ActionError(Exception):
    """An action cannot do what was asked."""

    def __init__(self, code: str, message: str, *, setup: bool = False) -> None:
        super().__init__(message)
        self.code = code
        self.message = message
        self.setup = setup
        """Whether the app's setup page may help: it ran, or lacks a variable."""


def payload_error(message: str) -> ActionError:
    """The caller, or a template, gave something unusable."""
    return ActionError("INVALID_PAYLOAD", message)
