"""Flows and agents as objects, and the strategies they make."""

from pathlib import Path

import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st

from stringd import Agent, Broadcast, Cycle, Person, Sequential, read_strategy, tool
from stringd.library.flows import Flow, Step
from stringd.runs import check_source, check_strategy

A, B, C = (Agent(name, model="demo/echo") for name in "abc")
NAMES = st.text("abcdefgh", min_size=1, max_size=3)


@st.composite
def agents(draw: st.DrawFn) -> Agent | Person:
    name = draw(NAMES)
    if draw(st.booleans()):
        return Person(f"u-{name}", message=draw(st.none() | st.text(max_size=5)))
    # The same name is the same agent.
    return Agent(f"a-{name}", model="demo/echo", prompt=f"Be {name}.", tools=("read_file",))


def flows(steps: st.SearchStrategy[Step]) -> st.SearchStrategy[Flow]:
    several = st.lists(steps, min_size=1, max_size=3)
    return st.one_of(
        several.map(lambda each: Sequential(*each)),
        several.map(lambda each: Broadcast(*each, separator="--")),
        st.tuples(several, agents()).map(
            lambda both: Cycle(*both[0], observer=both[1], until=("x",), rounds=None)
        ),
    )


TREES: st.SearchStrategy[Flow] = flows(st.recursive(agents(), flows, max_leaves=4))


@given(TREES)
def test_what_a_flow_says_is_a_strategy_and_reads_back_as_the_flow(flow: Flow) -> None:
    try:
        said = flow.to_dict()
    except ValueError:
        # Two users of one name said different things.
        return
    assert check_source(said) == said
    assert read_strategy(said) == flow


def test_a_saved_flow_is_a_strategy_file(tmp_path: Path) -> None:
    path = Cycle(A, B, until="OK", rounds=2, name="Judge").save(tmp_path / "judge.yaml")
    assert check_strategy(path).name == "Judge"
    assert yaml.safe_load(path.read_text())["flow"]["observer"] == "b"
    assert read_strategy(path).agents == {"a": A, "b": B}


def test_prompts_in_files_are_read_with_the_strategy(tmp_path: Path) -> None:
    (tmp_path / "long.md").write_text("Be good.")
    path = Sequential(Agent("a", model="demo/echo", prompt="long.md")).save(tmp_path / "s.yaml")
    found = read_strategy(path).agents["a"]
    assert isinstance(found, Agent)
    assert found.prompt == "Be good."


def test_the_last_agent_of_a_cycle_with_until_reads_each_round() -> None:
    cycle = Cycle(A, B, C, until=["OK", "DONE"])
    assert [each.name for each in cycle.steps] == ["a", "b"]
    assert cycle.observer is C
    with pytest.raises(ValueError, match="needs an agent that reads"):
        Cycle(A, until="OK")
    with pytest.raises(ValueError, match="needs an agent that reads"):
        Cycle(A, Sequential(B), until="OK")


def test_what_would_be_ambiguous_is_refused() -> None:
    with pytest.raises(ValueError, match="two different agents are called 'a'"):
        Sequential(A, Agent("a", model="demo/other")).to_dict()
    with pytest.raises(ValueError, match="at least one step"):
        Sequential()
    one, other = tool(name="t")(lambda: "1"), tool(name="t")(lambda: "2")
    with pytest.raises(ValueError, match="two different tools are called 't'"):
        _ = Sequential(Agent("x", tools=[one]), Agent("y", tools=[other])).tools


@pytest.mark.parametrize(
    ("source", "why"),
    [
        ({"name": "x"}, "version: Required"),
        ("no-such-file.yaml", "not found"),
        (
            Sequential(A).to_dict() | {"agents": {"a": {"type": "shout"}}},
            "cannot be made an object",
        ),
    ],
)
def test_what_is_not_a_strategy_is_refused_with_the_reason(
    source: str | dict[str, object], why: str
) -> None:
    with pytest.raises(ValueError, match=why):
        read_strategy(source)
