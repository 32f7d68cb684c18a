"""The door to a CLI action's command: composed, judged, and refused before anything is started."""

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Final

from stringd.actions.errors import payload_error
from stringd.actions.holes.check import SHORT_COMMAND, Judgement, judge, judge_ahead
from stringd.actions.holes.refusals import HoleRefusal
from stringd.actions.place import ActionContext, Names, text_of
from stringd.actions.shell_text import ComposedCommand, compose_command
from stringd.actions.templates import ALL_ARGUMENTS, Hole, Inputs, cut
from stringd.documents import Action, Field

CONTEXT_NAMES: Final = (
    "HOME",
    "CWD",
    "CURRENT_FILE",
    "CURRENT_URI",
    "CURRENT_TARGET",
    "CURRENT_BLOCK",
    "ARGS",
    "STRING_APP_DIR",
    "STRING_CALLER_DIR",
    "STRING_WORK_DIR",
)
# Any text will do that is not a number; `$ARGS` may be several words, and a flag may be any.
_SAMPLE: Final = "text"
_SAMPLE_WORDS: Final = (_SAMPLE, _SAMPLE)
_ANY_FLAG: Final = "any-flag"


async def read_ahead(action: Action, inputs: Inputs, words: tuple[str, ...]) -> None:
    """Judge a long command in a worker, so that `command_for` need not wait for it."""
    if len(action.target) <= SHORT_COMMAND:
        return
    # Composing uses values up; these are only looked at.
    looked_at = Inputs(inputs.values, inputs.place)
    names = {*inputs.values, *inputs.place.names.session}
    composed = compose_command(action.target, looked_at, words, action.fields)
    for command in (_sample(action, inputs.place, names), composed):
        await judge_ahead(command.text, command.sources)


def command_for(action: Action, inputs: Inputs, words: tuple[str, ...]) -> ComposedCommand:
    """The command of a call. Raises `ActionError` when a value would not be data in it."""
    names = {*inputs.values, *inputs.place.names.session}
    general = _judged(_sample(action, inputs.place, names))
    command = compose_command(action.target, inputs, words, action.fields)
    exposed = general.exposed | _judged(command).exposed
    for piece in cut(action.target):
        if isinstance(piece, Hole) and piece.raw in exposed:
            _check_dash(action, inputs, piece)
    return command


def unsafe_holes(
    action: Action, stored: Mapping[str, str] | None = None
) -> tuple[HoleRefusal, ...]:
    """What an author must change in an action; `stored` are the `$NAMES` its document uses."""
    if action.method != "CLI":
        return ()
    place = ActionContext(
        f"/act.{action.id}",
        "file:///",
        Path("/"),
        names=Names(context=dict.fromkeys(CONTEXT_NAMES, _SAMPLE), stored=stored or {}),
    )
    command = _sample(action, place, set())
    return judge(command.text, command.sources).refusals


def _judged(command: ComposedCommand) -> Judgement:
    judgement = judge(command.text, command.sources)
    if judgement.refusals:
        problems = "\n".join(f"  {each}" for each in judgement.refusals)
        raise payload_error(
            f"Nothing was run: a value could become a command here.\n{problems}\n"
            "Its author has to change the action; `stringd sfmd validate <file>` names the line."
        )
    return judgement


def _sample(action: Action, place: ActionContext, names: set[str]) -> ComposedCommand:
    """The command as it is for every call: with text in each hole that a caller can fill."""
    values = {
        **dict.fromkeys((*names, _ANY_FLAG), _SAMPLE),
        **{field.name: _sample_of(field) for field in action.fields},
    }
    return compose_command(action.target, Inputs(values, place), _SAMPLE_WORDS, action.fields)


def _sample_of(field: Field) -> str:
    if field.choices:
        return field.choices[0]
    if field.type in ("number", "float", "integer", "int"):
        return "7"
    return "true" if field.type in ("boolean", "bool") else _SAMPLE


def _check_dash(action: Action, inputs: Inputs, hole: Hole) -> None:
    """Refuse a value that a program would take for an option."""
    for name, value in _values(inputs, hole):
        field = action.field(name)
        if not value.startswith("-") or (field is not None and _may_begin_so(field, value)):
            continue
        shown = value if len(value) <= 80 else f"{value[:77]}..."
        way_on = (
            f"Write ./{shown} for the file of that name."
            if field is not None and field.type == "path"
            else "The author of the action can allow it with `dash: true` on the field."
        )
        raise payload_error(
            f'--{name} must not begin with "-", which the command could take for an option; '
            f'got "{shown}".\n{way_on}'
        )


def _values(inputs: Inputs, hole: Hole) -> Iterator[tuple[str, str]]:
    if hole.name != ALL_ARGUMENTS:
        value = inputs.peek(hole)
        yield from [] if value is None else [(hole.name, value)]
    else:
        yield from ((name, text_of(value)) for name, value in inputs.values.items())


def _may_begin_so(field: Field, value: str) -> bool:
    typed = field.choices or field.type in ("number", "float", "integer", "int")
    return field.dash or bool(typed) or value == field.default
