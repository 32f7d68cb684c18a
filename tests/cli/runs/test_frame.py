"""What a person sees of a run, screen by screen; the screens are kept beside this file.

`STRINGD_KEEP_SCREENS=1` writes them again.
"""

import io
import json
import os
from collections.abc import Callable
from pathlib import Path

import pytest
from msgspec import Raw
from rich.console import Console

from stringd.cli.runs.frame import Frame, FrameShape
from stringd.cli.runs.state import RunState
from stringd.wire.runs import messages as m
from stringd.wire.runs import stream
from stringd.wire.runs.types import AgentCallResult, ConversationHistory, McpOrigin, Usage
from tests.runs.support import Json

SCREENS = Path(__file__).parent / "screens"
SIZES = [(80, 24), (120, 40), (40, 10)]
USED = Usage(prompt_tokens=20, completion_tokens=30)
DIFF = "changed a.py\n--- a/a.py\n+++ b/a.py\n@@ -1 +1 @@\n-x = 1\n+x = 2"
ANSWER = "# Plan\n\nFirst **this**, then:\n\n- one\n- two\n\n| a | b |\n|---|---|\n| 1 | 2 |\n"


class Watched:
    """A state, fed message by message, half a second apart."""

    def __init__(self, flow: Json) -> None:
        tree = Raw(json.dumps(flow).encode())
        prepared = m.RunPrepared(
            run_id="r-1",
            strategy_name="Team",
            agents=[],
            flow_tree=tree,
            conversation=ConversationHistory(),
        )
        self.state = RunState(prepared)
        self._count = 0
        self.see(m.StrategyStarted(run_id="r-1", strategy_name="Team", agents=[], flow_tree=tree))

    def see(self, message: m.RunBroadcast) -> None:
        self._count += 1
        message.seq = self._count
        message.ts = f"2026-01-01T00:00:{self._count // 2:02}.{self._count % 2 * 5}00+00:00"
        assert isinstance(message, m.DaemonMessage)
        self.state.see(message)

    def streams(self, agent: str, *events: stream.AgentStreamEvent) -> None:
        for event in events:
            self.see(m.AgentStreaming(run_id="r-1", agent_name=agent, model="demo/m", event=event))

    def step(self, name: str) -> None:
        self.see(m.StepStarted(run_id="r-1", step_name=name, message=""))

    def ends(self, agent: str, text: str, *, step: bool = True) -> None:
        result = AgentCallResult(text=text, usage=USED, finish_reason="stop")
        self.see(
            m.AgentOutput(run_id="r-1", agent_name=agent, model="demo/m", text=text, usage=USED)
        )
        self.streams(agent, stream.Done(result=result))
        if step:
            self.see(m.StepCompleted(run_id="r-1", step_name=agent, result=result))

    def asks(self, agent: str) -> None:
        self.see(
            m.RequestPermission(
                run_id="r-1",
                request_id=f"p{self._count}",
                agent_name=agent,
                operation="fs.exec",
                resource="make deploy",
            )
        )

    def screen(self, width: int, height: int, typed: str = "", *, opened: bool = False) -> str:
        console = Console(
            file=io.StringIO(), force_terminal=True, color_system=None, legacy_windows=False
        )
        shape = FrameShape(width, height, opened=opened)
        lines = Frame(self.state, console).lines(shape, typed, now=1767225660.0)
        assert len(lines) == height
        return "".join(f"{line.rstrip()}\n" for line in lines)


def flow(kind: str, *steps: Json, **more: object) -> Json:
    return {"name": "F", "type": kind, "steps": list(steps), **more}


def thirty_agents() -> Watched:
    names = [f"agent{n:02}" for n in range(1, 31)]
    seen = Watched(flow("sequential", *({"agent": name} for name in names)))
    for name in names[:14]:
        seen.step(name)
        seen.ends(name, f"{name} is done")
    seen.step(names[14])
    seen.streams(names[14], stream.StepStart(), stream.Text(text="I would like to deploy."))
    seen.asks(names[14])
    return seen


def two_together() -> Watched:
    seen = Watched(flow("broadcast", {"agent": "left"}, {"agent": "right"}))
    for name in ("left", "right"):
        seen.step(name)
        seen.streams(name, stream.StepStart())
    for word in range(30):
        seen.streams("left", stream.Text(text=f"left line {word}\n\n"))
        seen.streams("right", stream.Text(text=f"right line {word}\n\n"))
    return seen


def everything() -> Watched:
    cycle = flow("cycle", {"agent": "writer"}, cycles=3, observer="critic")
    seen = Watched(cycle)
    seen.step("writer")
    seen.streams(
        "writer",
        stream.StepStart(),
        stream.Thinking(id="t", text="Which file is it? Perhaps a.py."),
        stream.ToolCall(tool_call_id="1", tool_name="edit_file", args='{"path":"a.py"}'),
        stream.ToolResult(tool_call_id="1", tool_name="edit_file", output=DIFF, status="completed"),
        stream.ToolCall(
            tool_call_id="2",
            tool_name="mcp__ZG9jcw__c2VhcmNo",
            args='{"query":"heat pumps","limit":3}',
            mcp=McpOrigin(server_id="docs", tool_name="search"),
        ),
        stream.ToolResult(tool_call_id="2", tool_name="x", output="no", status="error", error="no"),
        stream.Text(text=ANSWER),
    )
    seen.ends("writer", ANSWER)
    seen.streams("critic", stream.StepStart())
    seen.ends("critic", "Again, please.", step=False)
    seen.step("writer")
    seen.streams("writer", stream.StepStart(), stream.Thinking(id="t", text="Shorter, then."))
    return seen


@pytest.mark.parametrize(("width", "height"), SIZES)
@pytest.mark.parametrize("run", [thirty_agents, two_together, everything])
def test_a_screen_is_as_it_is_kept(run: Callable[[], Watched], width: int, height: int) -> None:
    kept = SCREENS / f"{run.__name__}-{width}x{height}.txt"
    shown = run().screen(width, height, "be brief")
    if os.environ.get("STRINGD_KEEP_SCREENS"):
        kept.parent.mkdir(exist_ok=True)
        kept.write_text(shown, "utf-8")
    assert shown == kept.read_text("utf-8")


@pytest.mark.parametrize("height", [4, 6, 10, 24])
def test_the_question_and_the_line_to_answer_it_are_always_there(height: int) -> None:
    lines = thirty_agents().screen(80, height, "no, not").splitlines()
    assert any("agent15 wants to run make deploy" in line for line in lines)
    assert lines[-2:] == ["1 once · 2 always · 3 no, why? · 4 never", "› no, not"]


def test_thirty_agents_at_work_together_leave_room_for_the_question() -> None:
    names = [f"agent{n:02}" for n in range(30)]
    seen = Watched(flow("broadcast", *({"agent": name} for name in names)))
    for name in names:
        seen.step(name)
        seen.streams(name, stream.StepStart(), stream.Text(text=f"{name} speaks"))
    seen.asks("agent07")
    shown = seen.screen(80, 24)
    assert "agent07 wants to run make deploy" in shown
    assert "more at work" in shown


def test_what_is_folded_is_kept_and_can_be_opened() -> None:
    run = everything()
    assert "Which file is it?" not in run.screen(120, 60)
    assert "Which file is it? Perhaps a.py." in run.screen(120, 60, opened=True)


def test_nothing_spins_after_the_connection_is_lost() -> None:
    seen = two_together()
    assert any(c in seen.screen(80, 24) for c in "⠋⠙⠹⠸⠼⠴⠦⠧⠇⠏")
    seen.state.lose()
    assert not any(c in seen.screen(80, 24) for c in "⠋⠙⠹⠸⠼⠴⠦⠧⠇⠏")


def test_text_of_agents_cannot_drive_the_terminal() -> None:
    seen = Watched(flow("sequential", {"agent": "a"}))
    evil = "\x1b]0;owned\x07 [x](javascript:y) \x1b[2J\u202e"
    call = stream.ToolCall(tool_call_id="1", tool_name=evil, args=evil)
    seen.streams("a", stream.StepStart(), stream.Thinking(id="t", text=evil), call)
    seen.streams("a", stream.Text(text=evil))
    shown = seen.screen(80, 24, opened=True)
    assert not {"\x1b", "\x07", "\u202e"} & set(shown)
