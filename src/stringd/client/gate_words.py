"""How the gate's answers read to a model: what was decided, what ran, and what to do next."""

from collections.abc import Sequence
from typing import Final, NamedTuple, Unpack

from stringd import __version__
from stringd.client.gate import (
    AsyncGate,
    GateClientError,
    GateNotRunningError,
    NoAnswerError,
    RequestOptions,
    starting,
)
from stringd.wire.gate import Response, Stage, Status

DENIED: Final = (
    "Request denied by user.\n"
    "Do not retry it, rephrase it or reach the same effect another way. "
    "Ask the user how to continue."
)
TIMED_OUT: Final = (
    "Request timed out waiting for user approval.\n"
    "Nobody answered, and silence is not consent: do not try to reach the same effect another "
    "way. Tell the user what you need and continue with something else."
)
NOT_RUNNING: Final = (
    "stringd gate is not running (socket not found at {path}).\n"
    "Only the user can start it: ask them to run `{command}` in a terminal of their own. "
    "Do not try to reach the same effect another way."
)


class GateWords(NamedTuple):
    """The text parts of an answer; `is_error` when the command did not do its work."""

    parts: tuple[str, ...]
    is_error: bool = False


class GateUnusableError(Exception):
    """The gate could not be asked or did not answer; `str()` is what to tell the model."""


async def ask_in_words(
    socket: str,
    pipeline: Sequence[Sequence[str]],
    seconds: float,
    **options: Unpack[RequestOptions],
) -> GateWords:
    """Ask the human, run what was approved, and say how it ended. Raises `GateUnusableError`."""
    try:
        response = await AsyncGate(socket, timeout=seconds).run(pipeline, **options)
    except GateNotRunningError:
        raise GateUnusableError(not_running(socket)) from None
    except NoAnswerError:
        raise GateUnusableError(
            f"stringd gate did not respond within {seconds:g}s. Whether the command ran is not "
            "known: look at the state before asking again, and do not try another way."
        ) from None
    except GateClientError as error:
        raise GateUnusableError(f"stringd gate could not be asked: {error}") from None
    return gate_words(response)


def not_running(socket: str) -> str:
    """What to tell a model when no gate listens."""
    return NOT_RUNNING.format(path=socket, command=starting(socket))


def gate_words(response: Response) -> GateWords:
    """What the model reads about a response."""
    if response.status is Status.DENIED:
        note = f"\nThe user added: {response.decision_note}" if response.decision_note else ""
        return _failed(DENIED + note)
    if response.status is Status.TIMEOUT:
        return _failed(TIMED_OUT)
    if response.status is Status.ERROR:
        versions = f"{response.version or 'unknown'} (client stringd-mcp {__version__})"
        return _failed(f"Error from stringd gate {versions}: {response.message or 'unknown'}")
    return _ran(response)


def _ran(response: Response) -> GateWords:
    stages = response.stages
    parts = [*_output(response), *_remarks(response)]
    codes = [stage.exit_code for stage in stages]
    if not parts or any(codes):
        shown = ", ".join(map(str, codes)) or "0"
        parts.append(f"[exit codes: {shown}]" if len(codes) > 1 else f"[exit code: {shown}]")
    return GateWords(tuple(parts), is_error=bool(codes) and codes[-1] != 0)


def _output(response: Response) -> list[str]:
    several = len(response.stages) > 1
    parts = [_text(bytes(response.stdout))] if response.stdout and bytes(response.stdout) else []
    for index, stage in enumerate(response.stages):
        if errors := bytes(stage.stderr):
            name = f"[stderr stage {index}]" if several else "[stderr]"
            parts.append(f"{name}\n{_text(errors)}")
    return parts


def _remarks(response: Response) -> list[str]:
    """What the output alone does not show."""
    remarks = ["[stdout truncated at 16 MiB]"] if response.stdout_truncated else []
    for index, stage in enumerate(response.stages):
        remarks += [f"[stage {index}: {remark}]" for remark in _stage_remarks(stage)]
    return remarks


def _stage_remarks(stage: Stage) -> list[str]:
    remarks = ["stderr truncated at 16 MiB"] if stage.stderr_truncated else []
    if stage.signal is not None:
        remarks.append(f"ended by signal {stage.signal}")
    return remarks


def _text(data: bytes) -> str:
    return data.decode("utf-8", "replace")


def _failed(text: str) -> GateWords:
    return GateWords((text,), is_error=True)
