"""The `execute` tool: a command a human must approve at `stringd gate`."""

from pathlib import Path
from typing import Annotated, Final

import msgspec

from stringd import __version__
from stringd.client.gate import (
    AsyncGate,
    GateClientError,
    GateNotRunningError,
    NoAnswerError,
    starting,
)
from stringd.mcp.outcome import ToolError, ToolOutcome, failed
from stringd.wire.gate import Response, Stage, Status

SESSION: Final = "stringd-mcp"
DEFAULT_TIMEOUT_MS: Final = 120_000
MAX_TIMEOUT_MS: Final = 600_000

DENIED: Final = (
    "Request denied by user.\n"
    "Do not retry it, rephrase it or reach the same effect another way. "
    "Ask the user how to go on."
)
TIMED_OUT: Final = (
    "Request timed out waiting for user approval.\n"
    "Nobody answered, and silence is not consent: do not try to reach the same effect another "
    "way. Tell the user what you need and go on with something else."
)
NOT_RUNNING: Final = (
    "stringd gate is not running (socket not found at {path}).\n"
    "Only the user can start it: ask them to run `{command}` in a terminal of their own. "
    "Do not try to reach the same effect another way."
)

Words = Annotated[list[str], msgspec.Meta(min_length=1)]


class ExecuteArguments(msgspec.Struct, forbid_unknown_fields=True):
    """What the model asks for; a pipeline wins over argv."""

    argv: list[str] = []
    pipeline: list[Words] = []
    description: str = ""
    privileged: bool = True
    env: dict[str, str] = {}
    forward_agent: bool = False
    timeout: Annotated[int, msgspec.Meta(ge=1)] = DEFAULT_TIMEOUT_MS


async def execute(socket: str, arguments: ExecuteArguments) -> ToolOutcome:
    """Ask the human, run what was approved, and say how it ended. Raises `ToolError`."""
    pipeline = _pipeline(socket, arguments)
    seconds = min(arguments.timeout, MAX_TIMEOUT_MS) / 1000
    try:
        response = await AsyncGate(socket, timeout=seconds).run(
            pipeline,
            reason=arguments.description,
            session=SESSION,
            env=arguments.env,
            privileged=arguments.privileged,
            forward_agent=arguments.forward_agent,
        )
    except GateNotRunningError:
        raise _not_running(socket) from None
    except NoAnswerError:
        raise ToolError(
            f"stringd gate did not respond within {seconds:g}s. Whether the command ran is not "
            "known: look at the state before asking again, and do not try another way."
        ) from None
    except GateClientError as error:
        raise ToolError(f"stringd gate could not be asked: {error}") from None
    return outcome(response)


def _pipeline(socket: str, arguments: ExecuteArguments) -> list[list[str]]:
    if not Path(socket).exists():
        raise _not_running(socket)
    pipeline = arguments.pipeline or ([arguments.argv] if arguments.argv else [])
    if not pipeline:
        raise ToolError("Either `argv` or `pipeline` must be provided.")
    if arguments.forward_agent and arguments.privileged:
        raise ToolError("forward_agent is only allowed with privileged: false")
    return pipeline


def _not_running(socket: str) -> ToolError:
    return ToolError(NOT_RUNNING.format(path=socket, command=starting(socket)))


def outcome(response: Response) -> ToolOutcome:
    """What the model reads about a response."""
    if response.status is Status.DENIED:
        note = f"\nThe user added: {response.decision_note}" if response.decision_note else ""
        return failed(DENIED + note)
    if response.status is Status.TIMEOUT:
        return failed(TIMED_OUT)
    if response.status is Status.ERROR:
        versions = f"{response.version or 'unknown'} (client stringd-mcp {__version__})"
        return failed(f"Error from stringd gate {versions}: {response.message or 'unknown'}")
    return _ran(response)


def _ran(response: Response) -> ToolOutcome:
    stages = response.stages
    parts = [*_output(response), *_remarks(response)]
    codes = [stage.exit_code for stage in stages]
    if not parts or any(codes):
        shown = ", ".join(map(str, codes)) or "0"
        parts.append(f"[exit codes: {shown}]" if len(codes) > 1 else f"[exit code: {shown}]")
    return ToolOutcome(tuple(parts), is_error=bool(codes) and codes[-1] != 0)


def _output(response: Response) -> list[str]:
    several = len(response.stages) > 1
    parts = [_text(bytes(response.stdout))] if response.stdout and bytes(response.stdout) else []
    for index, stage in enumerate(response.stages):
        if errors := bytes(stage.stderr):
            name = f"[stderr stage {index}]" if several else "[stderr]"
            parts.append(f"{name}\n{_text(errors)}")
    return parts


def _remarks(response: Response) -> list[str]:
    """What the output alone does not tell."""
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
