"""What a viewer knows of a run, from the messages it has seen. Prints nothing."""

from collections import Counter
from dataclasses import dataclass, field
from typing import Any, Literal

import msgspec

from stringd.cli.runs.calls import Calls
from stringd.wire.runs import messages as m
from stringd.wire.runs import stream
from stringd.wire.runs.types import Usage

State = Literal["waiting", "running", "done", "failed", "lost"]
Prompt = m.RequestInput | m.RequestQuestion | m.RequestPermission


@dataclass
class Node:
    """A step of the flow, or a flow with its steps."""

    name: str
    kind: str
    children: list["Node"] = field(default_factory=list)
    state: State = "waiting"
    times: int = 0
    usage: Usage = field(default_factory=Usage)
    rounds: int | None = None
    """Of a cycle: how many there are at most, when that is known."""

    @property
    def shown_state(self) -> State:
        """A flow is at work while one of its steps is."""
        inside = any(child.shown_state == "running" for child in self.children)
        return "running" if inside else self.state

    @property
    def round(self) -> int:
        """Of a cycle: the one it is in, by how often its first step began."""
        first = self.children[0] if self.children else None
        while first is not None and first.kind != "cycle" and not first.times and first.children:
            first = first.children[0]
        return first.times if first is not None else 0

    def agents(self, name: str) -> "list[Node]":
        own = [self] if self.kind in ("agent", "observer") and self.name == name else []
        return own + [node for child in self.children for node in child.agents(name)]


def flow_node(raw: dict[str, Any]) -> Node:
    """The tree of a `flowTree`."""
    if "agent" in raw:
        return Node(raw["agent"], "agent")
    if "steps" not in raw:
        return Node(raw.get("name", "approve"), "approve")
    children = [flow_node(step) for step in raw["steps"]]
    if "observer" in raw:
        children.append(Node(raw["observer"], "observer"))
    rounds = raw.get("cycles", 1) if raw["type"] == "cycle" else None
    return Node(
        raw["name"], raw["type"], children, rounds=rounds if isinstance(rounds, int) else None
    )


class RunState:
    """Feed it every message with `see`."""

    def __init__(self, prepared: m.RunPrepared, *, whole: bool = False) -> None:
        """`whole` when the run is heard from its first broadcast on."""
        self.run_id = prepared.run_id
        self.strategy_name = prepared.strategy_name
        self.tree = flow_node(msgspec.json.decode(prepared.flow_tree))
        self.agent: str | None = None
        self.text = ""
        self.thinking = ""
        self.tool: str | None = None
        self.usage = Usage()
        self._prompts: list[Prompt] = []
        self.ending: m.StrategyCompleted | m.StrategyError | None = None
        self._calls = Counter[str]()
        self.calls = Calls()
        self.seq = 0 if whole else prepared.last_seq or 0
        """The number of the last broadcast seen."""

    def see(self, message: m.DaemonMessage) -> None:
        if isinstance(message, m.RunBroadcast) and isinstance(message.seq, int):
            self.seq = max(self.seq, message.seq)
        self.calls.see(message)
        match message:
            case m.StrategyStarted():
                self._begin()
            case m.StepStarted():
                self._mark_step(message.step_name, "running")
            case m.StepCompleted():
                self._mark_step(message.step_name, "done", message.result.usage)
            case m.AgentStreaming():
                self._stream(message.agent_name, message.event)
            case m.AgentOutput():
                self.usage += message.usage
                self._mark_agent(message.agent_name, "done", message.usage)
            case m.RequestInput() | m.RequestQuestion() | m.RequestPermission():
                if not self._is_open(message):
                    self._prompts.append(message)
            case m.StrategyCompleted():
                self._end(message, "done")
            case m.StrategyError():
                self._end(message, "failed")
            case _:
                pass

    @property
    def prompts(self) -> list[Prompt]:
        """Every prompt that waits, the next to answer first."""
        return list(self._prompts)

    @property
    def prompt(self) -> Prompt | None:
        """The prompt to answer next; several agents may ask at once."""
        return self._prompts[0] if self._prompts else None

    def answered(self, prompt: Prompt) -> None:
        """A prompt got its answer."""
        self._prompts = [each for each in self._prompts if each is not prompt]

    def _settled(self, agent: str) -> None:
        """The agent went on, so someone has answered it, here or elsewhere."""
        self._prompts = [prompt for prompt in self._prompts if prompt.agent_name != agent]

    def _is_open(self, prompt: Prompt) -> bool:
        return any(isinstance(x.seq, int) and x.seq == prompt.seq for x in self._prompts)

    def lose(self) -> None:
        """The connection is gone; what waits is said again by whoever answers next."""
        self._prompts = []
        self.calls.cut()
        for node in _all(self.tree):
            if node.state == "running":
                node.state = "lost"

    def _begin(self) -> None:
        """A segment begins; what others have completed stays so, unless all of it was."""
        again = isinstance(self.ending, m.StrategyCompleted)
        self.ending = None
        self._prompts = []
        self._calls.clear()
        for node in _all(self.tree):
            if again or node.state != "done":
                node.state = "waiting"

    def _end(self, message: m.StrategyCompleted | m.StrategyError, state: State) -> None:
        self.ending = message
        self.tree.state = state
        if isinstance(message, m.StrategyCompleted):
            self.usage = message.usage
        for node in _all(self.tree):
            if node.state == "running":
                node.state = state

    def _mark_step(self, name: str, state: State, usage: Usage | None = None) -> None:
        node = next((each for each in self._steps(name, state)), None)
        self.tree.state = "running"
        if node is not None and self.tree.kind == "sequential":
            # What is before a started step and never showed was done in an earlier segment.
            for earlier in self.tree.children[: self.tree.children.index(node)]:
                earlier.state = "done"
        if node is not None:
            node.state = state
            node.times += state == "running"
            if usage is not None and node.kind != "agent":
                node.usage += usage
        if state == "done":
            self._settled(name)

    def _steps(self, name: str, state: State) -> list[Node]:
        named = [node for node in self.tree.children if node.name == name]
        before = "running" if state == "done" else "waiting"
        return [node for node in named if node.state == before] or named

    def _mark_agent(self, name: str, state: State, usage: Usage | None = None) -> None:
        nodes = self.tree.agents(name)
        node = next((n for n in nodes if n.state == "running"), None)
        node = node or next((n for n in nodes if n.state == "waiting"), None)
        node = node or (nodes[0] if nodes else None)
        if node is not None:
            node.times += state == "running" and node.state != "running"
            node.state = state
            node.usage += usage or Usage()

    def _stream(self, agent: str, event: stream.AgentStreamEvent) -> None:
        match event:
            case stream.StepStart():
                if agent != self.agent:
                    self.agent, self.text, self.thinking = agent, "", ""
                self._mark_agent(agent, "running")
            case stream.Text(text=text):
                self.agent = agent
                self.text += text
            case stream.Thinking(text=text):
                self.thinking += text
            case stream.ToolCall(tool_name=name):
                self.tool = name
                self._calls[agent] += 1
            case stream.ToolResult():
                self.tool = None
                self._calls[agent] -= 1
                if self._calls[agent] <= 0:
                    # Before that, another call of the same answer may be the one that asks.
                    self._calls[agent] = 0
                    self._settled(agent)
            case stream.Done():
                self.agent, self.text, self.thinking = None, "", ""
            case _:
                pass


def _all(node: Node) -> list[Node]:
    return [node, *(each for child in node.children for each in _all(child))]
