"""A run as lines: for pipes, logs and terminals without rich."""

import sys
from typing import Protocol

import msgspec

from stringd.cli.runs.answers import permission_choices, permission_question
from stringd.cli.runs.state import Prompt, RunState
from stringd.cli.streams import forget_typed, visible
from stringd.wire.runs import messages as m
from stringd.wire.runs import stream


class RunView(Protocol):
    """Shows a run; `see` comes after the state has taken the message in."""

    def see(self, message: m.DaemonMessage) -> None: ...

    def note(self, text: str) -> None:
        """Say something to the person, about what they typed."""

    def close(self) -> None: ...


class JsonView:
    """Every message as one line of JSON, for scripts."""

    def see(self, message: m.DaemonMessage) -> None:
        print(msgspec.json.encode(message).decode(), flush=True)

    def note(self, text: str) -> None:
        print(f"stringd: {text}", file=sys.stderr, flush=True)

    def close(self) -> None:
        return


class PlainView:
    """One line per thing that happened."""

    def __init__(self, state: RunState) -> None:
        self._state = state
        self._say(f"run {state.run_id}: {state.strategy_name}")

    def see(self, message: m.DaemonMessage) -> None:
        match message:
            case m.StepStarted():
                self._say(f"> {message.step_name}")
            case m.StepCompleted():
                usage = message.result.usage
                tokens = usage.prompt_tokens + usage.completion_tokens
                self._say(f"< {message.step_name}" + (f" ({tokens} tokens)" if tokens else ""))
            case m.AgentOutput():
                self._quote(message.agent_name, message.text)
            case m.AgentStreaming(event=stream.StepStart(note=str(note))):
                self._say(f"  {message.agent_name}: {note}")
            case m.AgentStreaming(event=stream.ToolCall() as call):
                self._say(f"  {message.agent_name} uses {call.tool_name} {call.args}")
            case m.SteerQueued():
                self._say(f"  steering queued: {message.text}")
            case m.RequestPermission():
                forget_typed()
                self._say(question(message))
            case m.RequestInput() | m.RequestQuestion():
                self._say(question(message))
            case m.StrategyCompleted():
                self._completed(message)
            case m.StrategyError():
                self._say(f"{message.error.code}: {message.error.message}")
                self._say(way_on(message))
            case _:
                pass

    def close(self) -> None:
        return

    def note(self, text: str) -> None:
        self._say(text)

    def _completed(self, message: m.StrategyCompleted) -> None:
        usage = message.usage
        self._say(f"completed: {usage.prompt_tokens} + {usage.completion_tokens} tokens")
        self._say("")
        self._say(message.result)

    def _quote(self, who: str, text: str) -> None:
        for line in text.splitlines() or [""]:
            self._say(f"  {who}: {line}")

    @staticmethod
    def _say(line: str) -> None:
        print(visible(line), flush=True)


def way_on(ended: m.StrategyError) -> str:
    """How to go on with a run that was stopped or failed."""
    return f"Go on after its last completed step: stringd runs resume {ended.run_id}"


def question(prompt: Prompt) -> str:
    """What the human is asked, in one line."""
    match prompt:
        case m.RequestQuestion():
            return f"? {prompt.agent_name} asks: {prompt.question}"
        case m.RequestPermission():
            asked = permission_question(prompt)
            return f"? {prompt.agent_name} {asked} {permission_choices(prompt)}"
        case m.RequestInput():
            return f"? {prompt.agent_name} needs input" + (
                f": {prompt.prompt}" if prompt.prompt else ""
            )
