"""What can go wrong in this room, and the code the wire says it with.

RunServiceError
├── StrategyFileError      a strategy, manifest or prompt file is missing or wrong
│   └── UntrustedError     it came with a workspace, and its owner has not trusted it
├── PrepareError           PREPARE_FAILED
├── StartError             START_FAILED or CONTINUE_FAILED
├── PackageError           HUB_ERROR
├── RefusedError           any other refusal of a request; carries its own code
└── ExecutionError         a step, agent, hook or model failed while a run was running
    ├── CallError
    ├── StepError
    ├── ModelError
    ├── NotRecordedError   the timeline could not take an event, so what it says is not done
    ├── RejectedError      a human said no at a step that asks for approval
    └── UnansweredError    nobody answered a prompt in the time the daemon gives
"""

import errno
from typing import Final

_FULL: Final = (errno.ENOSPC, errno.EDQUOT, errno.EFBIG)


class RunServiceError(Exception):
    """Base of everything this room raises on purpose. `code` is what the wire shows."""

    code = "INTERNAL_ERROR"


class StrategyFileError(RunServiceError):
    """A file the author can repair; the text names the file, the line and the column when known."""

    code = "PREPARE_FAILED"


class UntrustedError(StrategyFileError):
    """`path` is what the owner could trust so that it works; None where nothing would help."""

    def __init__(self, message: str, path: str | None) -> None:
        super().__init__(message)
        self.path = path


class PrepareError(RunServiceError):
    code = "PREPARE_FAILED"


class StartError(RunServiceError):
    def __init__(self, code: str, message: str) -> None:
        super().__init__(message)
        self.code = code


class PackageError(RunServiceError):
    """A package of strategies could not be read, installed or used."""

    code = "HUB_ERROR"


class RefusedError(RunServiceError):
    def __init__(self, code: str, message: str) -> None:
        super().__init__(message)
        self.code = code


class ExecutionError(RunServiceError):
    code = "EXECUTION_ERROR"


class CallError(ExecutionError):
    """An agent call ended without a result."""

    def __init__(self, cause: Exception) -> None:
        super().__init__(f"LLM call failed: {_text(cause)}")
        self.code = _code(cause)


class StepError(ExecutionError):
    def __init__(self, step: str, cause: Exception) -> None:
        super().__init__(f'Step "{step}" failed: {_text(cause)}')
        self.code = _code(cause)


class ModelError(ExecutionError):
    """A model could not be found, reached or understood."""


class NotRecordedError(ExecutionError):
    """`what` is the event that is missing from the run's timeline."""

    def __init__(self, run_id: str, what: str, cause: OSError) -> None:
        self.why = "the disk is full" if cause.errno in _FULL else cause.strerror or str(cause)
        super().__init__(
            f"Not recorded, so not done: {what} ({self.why}). The run stopped there and can be "
            f"resumed: make room for its timeline, then: stringd runs resume {run_id}"
        )


class RejectedError(ExecutionError):
    code = "REJECTED"

    def __init__(self, step: str, reason: str) -> None:
        super().__init__(f'Not approved at "{step}"{": " if reason else ""}{reason}')


class UnansweredError(ExecutionError):
    def __init__(self, seconds: float) -> None:
        super().__init__(f"Nobody answered within {seconds:g} s")


def _code(cause: Exception) -> str:
    """A cause with a code of its own keeps it through every wrapping."""
    return cause.code if isinstance(cause, ExecutionError) else ExecutionError.code


def _text(cause: Exception) -> str:
    return str(cause) or type(cause).__name__
