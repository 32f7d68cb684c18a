"""`@tool`: a function becomes a tool that agents can call, with a schema from its type hints."""

import asyncio
import inspect
import re
from collections.abc import Callable, Iterator, Mapping
from typing import (
    Annotated,
    Any,
    Final,
    Generic,
    Literal,
    ParamSpec,
    TypeVar,
    get_args,
    get_origin,
    get_type_hints,
    overload,
)

import msgspec

from stringd.client.tools import ToolAnswerText
from stringd.runs import schema_of

P = ParamSpec("P")
R = TypeVar("R")
Effect = Literal["inward", "reads", "writes"]
_PARAMETERS: Final = re.compile(r"^\s*(?:Args|Arguments|Parameters):\s*$")
_PARAMETER: Final = re.compile(r"^\s+(\w+)(?:\s*\([^)]*\))?:\s*(.+)$")
_NAMED: Final = (inspect.Parameter.POSITIONAL_OR_KEYWORD, inspect.Parameter.KEYWORD_ONLY)


class FunctionTool(Generic[P, R]):
    """A function that agents can call; a program calls it as before.

    `repeatable` says that calling it twice does no harm, so that a resumed run may repeat it.
    `effect` is how far it reaches: `inward`, `reads` or `writes`.
    """

    def __init__(
        self,
        function: Callable[P, R],
        *,
        name: str | None = None,
        description: str | None = None,
        guidance: str | None = None,
        repeatable: bool = False,
        effect: Effect = "writes",
    ) -> None:
        """Raises `TypeError` for a function whose parameters a model cannot be told of."""
        self.function = function
        self.name = name or function.__name__
        about, parameters = _documented(inspect.getdoc(function) or "")
        self.description = description or about
        self.guidance = guidance
        self.repeatable = repeatable
        self.effect = effect
        self._takes = _arguments(function, self.name, parameters)
        self.parameters: Mapping[str, Any] = schema_of(self._takes)
        self.__doc__ = function.__doc__

    def __call__(self, *args: P.args, **kwargs: P.kwargs) -> R:
        return self.function(*args, **kwargs)

    def __repr__(self) -> str:
        return f"<tool {self.name}({', '.join(self._takes.__struct_fields__)})>"

    async def answer(self, args: Mapping[str, Any]) -> ToolAnswerText:
        """Call it as an agent does. What it raises becomes a text for the agent."""
        try:
            given = msgspec.convert(args, self._takes)
        except msgspec.ValidationError as error:
            return ToolAnswerText(f"Invalid arguments for `{self.name}`: {error}", ok=False)
        named = {name: getattr(given, name) for name in self._takes.__struct_fields__}
        call: Callable[..., Any] = self.function
        try:
            if inspect.iscoroutinefunction(call):
                return _as_text(await call(**named))
            return _as_text(await asyncio.to_thread(call, **named))
        except Exception as error:  # noqa: BLE001  # the model is told, whatever a tool raises
            return ToolAnswerText(f"Tool `{self.name}` threw: {error}", ok=False)


@overload
def tool(function: Callable[P, R], /) -> FunctionTool[P, R]: ...


@overload
def tool(
    *,
    name: str | None = None,
    description: str | None = None,
    guidance: str | None = None,
    repeatable: bool = False,
    effect: Effect = "writes",
) -> Callable[[Callable[P, R]], FunctionTool[P, R]]: ...


def tool(function: Callable[P, R] | None = None, /, **about: Any) -> Any:
    """Make a function a tool: `@tool`, or `@tool(name=…, repeatable=True)`.

    The schema comes from the type hints, the description from the docstring, what each parameter
    means from `Annotated[str, "…"]` or from an `Args:` section.
    """
    if function is not None:
        return FunctionTool(function)
    return lambda decorated: FunctionTool(decorated, **about)


def _as_text(value: Any) -> ToolAnswerText:
    match value:
        case ToolAnswerText():
            return value
        case None:
            return ToolAnswerText("")
        case str():
            return ToolAnswerText(value)
        case _:
            return ToolAnswerText(msgspec.json.encode(value, enc_hook=str).decode())


def _arguments(
    function: Callable[..., Any], name: str, meanings: Mapping[str, str]
) -> type[msgspec.Struct]:
    hints = get_type_hints(function, include_extras=True)
    fields: list[tuple[str, Any] | tuple[str, Any, Any]] = []
    for each in inspect.signature(function).parameters.values():
        if each.kind not in _NAMED:
            raise TypeError(f"tool {name!r}: {each} has no name a model could use")
        if each.name not in hints:
            raise TypeError(f"tool {name!r}: parameter {each.name!r} needs a type hint")
        hint = _described(hints[each.name], meanings.get(each.name))
        if each.default is each.empty:
            fields.append((each.name, hint))
        else:
            fields.append((each.name, hint, _default(each.default)))
    try:
        made = msgspec.defstruct(f"{name}_arguments", fields, kw_only=True)
        schema_of(made)
    except TypeError as error:
        raise TypeError(f"tool {name!r}: {error}") from None
    return made


def _default(value: Any) -> Any:
    if isinstance(value, list | dict | set):
        return msgspec.field(default_factory=lambda: type(value)(value))
    return value


def _described(hint: Any, meaning: str | None) -> Any:
    """A hint with what its parameter means; a plain text in `Annotated` is that too."""
    if get_origin(hint) is Annotated:
        inner, *extras = get_args(hint)
        texts = [each for each in extras if isinstance(each, str)]
        metas = [each for each in extras if isinstance(each, msgspec.Meta)]
        for meta in metas:
            inner = Annotated[inner, meta]
        meaning = texts[0] if texts else meaning
        hint = inner
    return hint if meaning is None else Annotated[hint, msgspec.Meta(description=meaning)]


def _documented(text: str) -> tuple[str, dict[str, str]]:
    """What a docstring says about a function, and about its parameters in an `Args:` section."""
    lines = text.splitlines()
    start = next((at for at, line in enumerate(lines) if _PARAMETERS.match(line)), len(lines))
    return "\n".join(lines[:start]).strip(), dict(_entries(lines[start + 1 :]))


def _entries(lines: list[str]) -> Iterator[tuple[str, str]]:
    for line in lines:
        found = _PARAMETER.match(line)
        if found is None:
            return
        yield found[1], found[2]
