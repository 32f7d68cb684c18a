"""What agents did in a run, call by call, from the messages a viewer has seen. Prints nothing."""

from dataclasses import dataclass, field
from datetime import datetime

import msgspec

from stringd.wire.runs import messages as m
from stringd.wire.runs import stream
from stringd.wire.runs.types import McpOrigin, Usage


@dataclass
class ShownThought:
    text: str


@dataclass
class Said:
    text: str


@dataclass
class Used:
    """A tool call; `output` is None until it has ended."""

    call_id: str
    name: str
    args: str
    output: str | None = None
    ok: bool = True

    @property
    def arguments(self) -> str:
        """On one line, as a person would write them."""
        try:
            found = msgspec.json.decode(self.args)
        except msgspec.DecodeError:
            return self.args
        if not isinstance(found, dict):
            return self.args
        texts = {
            name: value if isinstance(value, str) else _json(value) for name, value in found.items()
        }
        return " ".join(f"{name}={' '.join(text.split())}" for name, text in texts.items())

    @property
    def size(self) -> str:
        """How much came back."""
        output = self.output or ""
        lines = output.count("\n") + bool(output)
        told = f"{len(output.encode('utf-8', 'replace'))} B"
        return told if lines < 2 else f"{told}, {lines} lines"

    @property
    def diff(self) -> list[str]:
        """The lines of a change that the result shows."""
        lines = (self.output or "").splitlines()
        start = next((n for n, line in enumerate(lines) if line.startswith(("--- ", "@@ "))), None)
        return [] if start is None else lines[start:]


@dataclass
class ShownCall:
    """One call of an agent. Times are the daemon's, so that they are the same for everyone."""

    agent: str
    began: float
    model: str = ""
    ended: float | None = None
    cut: bool = False
    usage: Usage = field(default_factory=Usage)
    parts: list[ShownThought | Said | Used] = field(default_factory=list)

    @property
    def text(self) -> str:
        return "".join(part.text for part in self.parts if isinstance(part, Said))


@dataclass
class Remark:
    """Something that was not said by an agent."""

    text: str


class Calls:
    """Feed it every message with `see`."""

    def __init__(self) -> None:
        self.items: list[ShownCall | Remark] = []
        self.began: float | None = None
        self.ended: float | None = None
        self._open: dict[str, ShownCall] = {}

    @property
    def open(self) -> list[ShownCall]:
        """The calls under way, the oldest first."""
        return list(self._open.values())

    def see(self, message: m.DaemonMessage) -> None:
        now = _seconds(message.ts)
        match message:
            case m.StrategyStarted():
                self.began, self.ended = self.began or now, None
            case m.AgentStreaming(event=stream.Done()):
                self._open.pop(message.agent_name, None)
            case m.AgentStreaming():
                self._stream(self._call(message, now), message.event)
            case m.AgentOutput():
                call = self._call(message, now)
                call.usage, call.ended = message.usage, now
                if not call.text and message.text:
                    call.parts.append(Said(message.text))
            case m.SteerQueued():
                self.items.append(Remark(f"↪ {message.text}"))
            case m.StrategyCompleted() | m.StrategyError():
                self.ended = now
                self.cut(now)
            case _:
                pass

    def cut(self, now: float | None = None) -> None:
        """Nothing more is heard of the calls under way."""
        for call in self._open.values():
            call.cut = call.ended is None
            call.ended = call.ended or now or call.began
        self._open = {}

    def _call(self, message: m.AgentStreaming | m.AgentOutput, now: float) -> ShownCall:
        call = self._open.get(message.agent_name)
        if call is None:
            call = ShownCall(message.agent_name, now)
            self._open[message.agent_name] = call
            self.items.append(call)
        call.model = message.model or call.model
        return call

    def _stream(self, call: ShownCall, event: stream.AgentStreamEvent) -> None:
        last = call.parts[-1] if call.parts else None
        match event:
            case stream.StepStart(note=str(note)):
                self.items.append(Remark(f"{call.agent}: {note}"))
            case stream.Text(text=text):
                if isinstance(last, Said):
                    last.text += text
                else:
                    call.parts.append(Said(text))
            case stream.Thinking(text=text):
                if isinstance(last, ShownThought):
                    last.text += text
                else:
                    call.parts.append(ShownThought(text))
            case stream.ToolCall():
                name = tool_label(event.tool_name, event.mcp)
                call.parts.append(Used(event.tool_call_id, name, event.args))
            case stream.ToolResult():
                _end(call, event)
            case _:
                pass


def tool_label(name: str, origin: McpOrigin | msgspec.UnsetType) -> str:
    """A tool as people know it: those of MCP servers have another name on the wire."""
    return f"{origin.server_id}: {origin.tool_name}" if isinstance(origin, McpOrigin) else name


def _end(call: ShownCall, event: stream.ToolResult) -> None:
    for part in call.parts:
        if isinstance(part, Used) and part.call_id == event.tool_call_id and part.output is None:
            part.output = event.error or event.output
            part.ok = event.status == "completed"
            return


def _seconds(ts: str) -> float:
    try:
        return datetime.fromisoformat(ts).timestamp()
    except ValueError:
        return 0.0


def _json(value: object) -> str:
    return msgspec.json.encode(value).decode()
