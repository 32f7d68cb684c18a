"""What a viewer knows of a run after each message."""

from msgspec import Raw

from stringd.cli.runs.state import Node, RunState
from stringd.wire.runs import messages as m
from stringd.wire.runs import stream
from stringd.wire.runs.types import AgentCallResult, ConversationHistory, ErrorInfo, Usage

TREE = Raw(
    b'{"name":"F","type":"sequential","steps":[{"agent":"a"},'
    b'{"name":"C","type":"cycle","observer":"o","steps":[{"agent":"b"}]}]}'
)
SOME = Usage(prompt_tokens=2, completion_tokens=3)
RESULT = AgentCallResult(text="x", usage=SOME, finish_reason="stop")


def state() -> RunState:
    return RunState(
        m.RunPrepared(
            run_id="r",
            strategy_name="S",
            agents=["a", "b", "o"],
            flow_tree=TREE,
            conversation=ConversationHistory(),
        )
    )


def states(node: Node) -> list[str]:
    return [f"{node.name}:{node.state}", *(s for child in node.children for s in states(child))]


def streamed(agent: str, event: stream.AgentStreamEvent) -> m.AgentStreaming:
    return m.AgentStreaming(run_id="r", agent_name=agent, event=event)


def test_the_tree_follows_steps_and_the_agents_inside_them() -> None:
    seen = state()
    seen.see(m.StepStarted(run_id="r", step_name="a", message=""))
    assert states(seen.tree)[:2] == ["F:running", "a:running"]
    seen.see(m.StepCompleted(run_id="r", step_name="a", result=RESULT))
    seen.see(m.StepStarted(run_id="r", step_name="C", message=""))
    seen.see(streamed("b", stream.StepStart()))
    assert states(seen.tree) == ["F:running", "a:done", "C:running", "b:running", "o:waiting"]
    seen.see(m.AgentOutput(run_id="r", agent_name="b", text="x", usage=SOME))
    assert (seen.usage, seen.tree.children[1].children[0].usage) == (SOME, SOME)
    error = ErrorInfo(code="EXECUTION_ERROR", message="no")
    seen.see(m.StrategyError(run_id="r", error=error))
    assert states(seen.tree) == ["F:failed", "a:done", "C:failed", "b:done", "o:waiting"]


def test_a_resumed_run_shows_earlier_steps_as_done() -> None:
    seen = state()
    seen.see(m.StepStarted(run_id="r", step_name="C", message=""))
    assert states(seen.tree)[:3] == ["F:running", "a:done", "C:running"]


def test_text_collects_until_the_call_is_done() -> None:
    seen = state()
    seen.see(streamed("a", stream.StepStart()))
    seen.see(streamed("a", stream.Thinking(id="1", text="hm")))
    seen.see(streamed("a", stream.Text(text="o")))
    seen.see(streamed("a", stream.Text(text="k")))
    assert (seen.agent, seen.text, seen.thinking) == ("a", "ok", "hm")
    seen.see(streamed("a", stream.Done(result=RESULT)))
    assert (seen.agent, seen.text) == (None, "")


def test_a_prompt_is_open_until_it_is_answered_here_or_elsewhere() -> None:
    seen = state()
    asked = m.RequestInput(run_id="r", agent_name="a", prompt="")
    seen.see(asked)
    assert seen.prompt is asked
    seen.see(m.StepCompleted(run_id="r", step_name="a", result=RESULT))
    assert seen.prompt is None


def test_a_prompt_stays_open_while_another_call_of_its_answer_ends() -> None:
    seen = state()
    for call_id in ("1", "2"):
        seen.see(streamed("a", stream.ToolCall(tool_call_id=call_id, tool_name="x", args="{}")))
    asked = m.RequestQuestion(run_id="r", request_id="q", agent_name="a", question="?")
    seen.see(asked)
    for call_id, prompt in (("2", asked), ("1", None)):
        ended = stream.ToolResult(
            tool_call_id=call_id, tool_name="x", output="", status="completed"
        )
        seen.see(streamed("a", ended))
        assert seen.prompt is prompt


def test_prompts_of_several_agents_are_answered_one_after_the_other() -> None:
    seen = state()
    first = m.RequestInput(run_id="r", agent_name="a", prompt="")
    second = m.RequestQuestion(run_id="r", request_id="q", agent_name="b", question="?")
    seen.see(first)
    seen.see(second)
    asked = [seen.prompt]
    seen.answered(first)
    asked.append(seen.prompt)
    assert asked == [first, second]
    result = stream.ToolResult(tool_call_id="1", tool_name="x", output="", status="completed")
    seen.see(streamed("b", result))
    assert seen.prompt is None
