"""The `execute` tool: a command a human must approve at `stringd gate`."""

from pathlib import Path
from typing import Annotated, Final, NamedTuple

import msgspec

from stringd.client.gate_words import GateUnusableError, ask_in_words, not_running
from stringd.gate.characters import cleaned
from stringd.mcp.outcome import ToolError, ToolOutcome
from stringd.mcp.ports import McpCaller
from stringd.wire.gate import HERE, RequestAction

SESSION: Final = "stringd-mcp"
DEFAULT_TIMEOUT_MS: Final = 120_000
MAX_TIMEOUT_MS: Final = 600_000

Words = Annotated[list[str], msgspec.Meta(min_length=1)]


class ExecuteArguments(msgspec.Struct, forbid_unknown_fields=True):
    """What the model asks for; a pipeline wins over argv."""

    argv: list[str] = []
    pipeline: list[Words] = []
    description: str = ""
    privileged: bool = True
    env: dict[str, str] = {}
    forward_agent: bool = False
    host: str = ""
    timeout: Annotated[int, msgspec.Meta(ge=1)] = DEFAULT_TIMEOUT_MS


class AskingFor(NamedTuple):
    """The client a command is asked for, as the question shows it."""

    client: str = ""
    directory: str = ""
    pid: int = 0


async def asking_for(caller: McpCaller) -> AskingFor:
    """Who calls: by its own name and directory, and by the process the kernel knows."""
    pid = caller.client_pid
    if not pid and caller.speaker is not None and (program := await caller.speaker.outsider()):
        pid = program.pid
    # One odd character in a name must not refuse the command.
    return AskingFor(cleaned(caller.client), cleaned(caller.cwd or ""), pid)


async def execute(socket: str, arguments: ExecuteArguments, who: AskingFor) -> ToolOutcome:
    """Ask the human, run what was approved, and say how it ended. Raises `ToolError`."""
    pipeline = _pipeline(socket, arguments)
    is_here = arguments.host in HERE
    seconds = min(arguments.timeout, MAX_TIMEOUT_MS) / 1000
    try:
        words = await ask_in_words(
            socket,
            pipeline,
            seconds,
            reason=arguments.description,
            session=SESSION,
            env=arguments.env,
            privileged=arguments.privileged,
            forward_agent=arguments.forward_agent,
            host="" if is_here else arguments.host,
            action=RequestAction.EXEC if is_here else RequestAction.REMOTE,
            client=who.client,
            directory=who.directory,
            client_pid=who.pid,
        )
    except GateUnusableError as error:
        raise ToolError(str(error)) from None
    return ToolOutcome(*words)


def _pipeline(socket: str, arguments: ExecuteArguments) -> list[list[str]]:
    if not Path(socket).exists():
        raise ToolError(not_running(socket))
    pipeline = arguments.pipeline or ([arguments.argv] if arguments.argv else [])
    if not pipeline:
        raise ToolError("Either `argv` or `pipeline` must be provided.")
    if arguments.forward_agent and arguments.privileged:
        raise ToolError("forward_agent is only allowed with privileged: false")
    return pipeline
