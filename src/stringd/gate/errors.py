"""What can go wrong in the gate, translated to the wire in `requests.py` and `case.py`.

GateError
├── RefusalError         the request is answered with `error` and this text
│   ├── BusyError        there is no room for it now
│   ├── TroubleError     the machine failed: terminal, audit log, program
│   ├── AbortedError     the person at the terminal ended the command
│   └── StoppingError    the gate is going down
└── CallerGoneError      nobody is left to answer
"""

import os


class GateError(Exception):
    pass


class RefusalError(GateError):
    """Answered with status `error`; the text goes to the caller unchanged."""


class BusyError(RefusalError):
    """Told before anything is known of the request, so its answer carries no id."""

    def __init__(self) -> None:
        super().__init__("server busy: too many in-flight requests")


class TroubleError(RefusalError):
    """The machine, not the request, is at fault."""


class AbortedError(RefusalError):
    """The person at the terminal ended the command while it ran, or sudo while it asked."""

    def __init__(self) -> None:
        super().__init__("command ended by the person at the terminal")


class StoppingError(RefusalError):
    def __init__(self) -> None:
        super().__init__("daemon shutting down")


class CallerGoneError(GateError):
    """The caller hung up before its command started; nothing may run."""


def os_text(error: OSError) -> str:
    """An operating-system error the way peers of this protocol write it."""
    number = error.errno or 0
    return f"{os.strerror(number)} (os error {number})"
