"""`@tool`: what a model is told about a function, and what becomes of its calls."""

from dataclasses import dataclass
from typing import Annotated, Any, Literal

import pytest

from stringd import tool
from stringd.client.tools import ToolAnswerText

pytestmark = pytest.mark.anyio


@dataclass
class Point:
    x: int
    y: int = 0


@tool
def plain(text: str, most: int = 10, mode: Literal["a", "b"] = "a") -> str:
    """Do it.

    More about it.

    Args:
        text: what to do
        most (int): how often
    """
    return f"{text} {most} {mode}"


def test_the_schema_comes_from_the_type_hints() -> None:
    properties = plain.parameters["properties"]
    assert plain.parameters["required"] == ["text"]
    assert properties["text"] == {"type": "string", "description": "what to do"}
    assert properties["most"] == {"type": "integer", "default": 10, "description": "how often"}
    assert properties["mode"] == {"enum": ["a", "b"], "default": "a"}


def test_name_and_description_come_from_the_function() -> None:
    assert (plain.name, plain.description) == ("plain", "Do it.\n\nMore about it.")
    named = tool(name="other", description="Else.")(lambda: "x")
    assert (named.name, named.description) == ("other", "Else.")


def test_a_decorated_function_is_called_as_before() -> None:
    assert plain("x", most=2) == "x 2 a"


def test_a_text_in_annotated_is_what_a_parameter_means() -> None:
    @tool
    def find(words: Annotated[str, "what to find"]) -> None: ...

    assert find.parameters["properties"]["words"]["description"] == "what to find"


async def test_arguments_become_values_of_the_hinted_types() -> None:
    seen: list[Any] = []

    @tool
    def take(point: Point, tags: list[str] = []) -> None:  # noqa: B006 - a tool must bear it
        seen.append((point, tags))
        tags.append("own")

    await take.answer({"point": {"x": 1}})
    await take.answer({"point": {"x": 1, "y": 2}, "tags": ["t"]})
    assert [each[0] for each in seen] == [Point(1), Point(1, 2)]
    assert [each[1] for each in seen] == [["own"], ["t", "own"]]


@pytest.mark.parametrize(
    ("value", "text"),
    [("as it is", "as it is"), (None, ""), (3, "3"), ({"a": [1]}, '{"a":[1]}'), (Point(1), "")],
)
async def test_what_it_returns_becomes_text(value: Any, text: str) -> None:
    @tool
    def give() -> Any:
        return value

    wanted = text or '{"x":1,"y":0}' if value is not None else ""
    assert await give.answer({}) == ToolAnswerText(wanted)


async def test_asynchronous_functions_are_awaited() -> None:
    @tool
    async def later(text: str) -> str:
        return text.upper()

    assert await later.answer({"text": "x"}) == ToolAnswerText("X")


async def test_what_it_raises_is_told_and_not_raised() -> None:
    @tool
    def broken() -> str:
        raise OSError("no disk")

    assert await broken.answer({}) == ToolAnswerText("Tool `broken` threw: no disk", ok=False)


async def test_wrong_arguments_are_told_and_not_raised() -> None:
    answer = await plain.answer({"text": 5})
    assert not answer.ok
    assert answer.text.startswith("Invalid arguments for `plain`: Expected `str`")


def test_parameters_a_model_cannot_be_told_of_are_refused() -> None:
    def many(*words: str) -> None: ...
    def bare(text) -> None: ...  # type: ignore[no-untyped-def]
    def strange(what: object, other: "type[int]") -> None: ...

    functions: list[Any] = [many, bare, strange]
    reasons = ["no name", "needs a type hint", "tool 'strange'"]
    for function, why in zip(functions, reasons, strict=True):
        with pytest.raises(TypeError, match=why):
            tool(function)
