"""The demo provider plays its script, and says what is wrong with it."""

from pathlib import Path
from typing import Any

import pytest

from stringd.runs.errors import ModelError
from stringd.runs.models.demo import DemoProvider
from stringd.runs.models.port import (
    Finished,
    ModelEvent,
    ModelRequest,
    ModelSetup,
    Started,
    TextDelta,
    Tokens,
    ToolRequested,
)
from stringd.runs.models.resolve import Models
from stringd.runs.strategy.definition import LlmAgent

pytestmark = pytest.mark.anyio
HERE = Path(__file__).parent


async def play(turn: int = 0, model_id: str = "x", **options: Any) -> list[ModelEvent]:
    model = DemoProvider().model(ModelSetup(model_id, "a", options, HERE))
    request = ModelRequest("a", "be kind", [{"role": "user", "content": "two words"}], turn=turn)
    return [event async for event in model.stream(request)]


async def test_without_a_script_it_echoes_or_answers_about_the_message() -> None:
    assert await play(model_id="echo") == [
        Started(),
        TextDelta("two "),
        TextDelta("words"),
        Finished(Tokens(input=4, output=2), "stop"),
    ]
    assert TextDelta("Demo ") in await play(model_id="anything")


async def test_each_turn_plays_its_entry_and_the_last_repeats() -> None:
    script = [
        "one",
        {"chunks": ["t", "wo"], "usage": {"promptTokens": 1}, "finishReason": "length"},
    ]
    assert TextDelta("one") in await play(0, script=script)
    for turn in (1, 2, 9):
        events = await play(turn, script=script)
        assert events[1:] == [
            TextDelta("t"),
            TextDelta("wo"),
            Finished(Tokens(input=1, output=2), "length"),
        ]


async def test_tools_carry_ids_that_depend_on_the_turn_alone() -> None:
    script = [{"tools": [{"name": "x", "args": {"a": 1}}, {"name": "y"}]}]
    assert (await play(0, script=script))[1:3] == [
        ToolRequested("demo-0-0", "x", '{"a":1}'),
        ToolRequested("demo-0-1", "y", "{}"),
    ]


async def test_errors_come_before_or_after_what_was_said() -> None:
    with pytest.raises(ModelError, match="no"):
        await play(script=[{"error": "no"}])
    assert await play(script=[{"empty": True}]) == []


async def test_a_side_file_may_hold_a_script_per_agent(tmp_path: Path) -> None:
    (tmp_path / "s.yaml").write_text("a: [from file]\n", "utf-8")
    setup = ModelSetup("x", "a", {"script": "s.yaml"}, tmp_path)
    assert DemoProvider().model(setup).replies == [{"text": "from file"}]
    for wrong in (setup.__class__("x", "b", {"script": "s.yaml"}, tmp_path),):
        with pytest.raises(ModelError, match='no entry for agent "b"'):
            DemoProvider().model(wrong)
    with pytest.raises(ModelError, match="file not found"):
        DemoProvider().model(ModelSetup("x", "a", {"script": "none.yaml"}, tmp_path))


@pytest.mark.parametrize(
    ("options", "told"),
    [
        ({"script": []}, "Array must contain at least 1 element"),
        ({"script": [{"txt": "x"}]}, "Unrecognized key(s) in object: 'txt'"),
        ({"colour": 1}, "Unrecognized key(s) in object: 'colour'"),
        ({"delayMs": -1}, "Number must be greater than or equal to 0"),
    ],
)
async def test_mistakes_in_a_script_are_told(options: dict[str, Any], told: str) -> None:
    with pytest.raises(ModelError) as caught:
        await play(**options)
    assert told in str(caught.value)


@pytest.mark.parametrize("name", ["", "  ", "/x", "demo/", "nobody/x", "bare"])
async def test_names_that_lead_nowhere_are_model_errors(name: str) -> None:
    with pytest.raises(ModelError):
        Models().resolve(name, LlmAgent("a", name))
