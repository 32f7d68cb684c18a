"""What can go wrong with a shell.

ShellError
├── ShellUnavailableError   no shell could be started
├── ShellBusyError          a command is still running, so no new one may start
├── NothingRunningError     there is no command to continue
├── UnusableInputError      text a shell cannot take
├── UnknownKeyError         a key name that means nothing
└── BadRangeError           a range of output that means nothing
"""


class ShellError(Exception):
    """The shell room's family."""


class ShellUnavailableError(ShellError):
    """No shell could be started; the text says why."""


class ShellBusyError(ShellError):
    """A command is still running."""

    def __init__(self, command: str) -> None:
        super().__init__(command)
        self.command = command


class NothingRunningError(ShellError):
    """No command is running."""


class UnusableInputError(ShellError):
    """The text cannot be given to a shell."""


class UnknownKeyError(ShellError):
    """No key has this name."""

    def __init__(self, name: str) -> None:
        super().__init__(name)
        self.name = name


class BadRangeError(ShellError):
    """Not a range of lines or bytes."""
