"""A caller's argument text → the values an action runs with, or the reason why not."""

import os
import re
from collections.abc import Mapping
from pathlib import Path
from typing import Final, NamedTuple

from stringd.actions.errors import ActionError, payload_error
from stringd.actions.known_flags import FILE_SUFFIX, check_flags
from stringd.actions.listed import LIST_TYPES, check_parts, is_json, listed, with_parts
from stringd.actions.place import ActionContext, ListValue, Value, set_hint, text_of
from stringd.actions.templates import PLACEHOLDER, Variable, cut
from stringd.documents import Action, Field, Flags, flags_of, words

MAX_FIELD_FILE: Final = 1024 * 1024
NAMES_SHOWN: Final = 12
_SHORTCUT: Final = re.compile(r"@[A-Za-z_][\w-]*", re.ASCII)
_NUMBER: Final = re.compile(r"[+-]?(\d+(\.\d*)?|\.\d+)([eE][+-]?\d+)?", re.ASCII)
_INTEGER: Final = re.compile(r"[+-]?\d+", re.ASCII)
_SHAPED: Final = LIST_TYPES | {"json"}
"""Types whose values from a file are looked at too."""
_BOOLEANS: Final = frozenset({"true", "false", "yes", "no", "on", "off", "1", "0"})


class CallArguments(NamedTuple):
    """What a caller typed after an action's name, taken apart."""

    text: str
    flags: Flags
    words: tuple[str, ...]
    """Everything typed, word by word."""
    names_variable: bool = False
    """Whether a `$variable` is among them that is not in single quotes."""

    @property
    def typed(self) -> frozenset[str]:
        """Every text the caller wrote as a value."""
        return frozenset((*self.flags.values.values(), *self.flags.positional))


class Bound(NamedTuple):
    """A call whose arguments were understood."""

    values: Mapping[str, Value]
    """What was typed, in its order, then defaults."""
    words: tuple[str, ...]
    """Everything typed, word by word: what `$ARGS` stands for."""


def needs_arguments(action: Action) -> bool:
    """Whether a bare call can only show what the action takes."""
    return any(field.required and field.default is None for field in action.fields)


def bind(action: Action, arguments: CallArguments, place: ActionContext) -> Bound:
    """Bind a caller's arguments to an action's fields. Raises `ActionError`."""
    flags = arguments.flags
    check_flags(action, flags, place.label)
    given: dict[str, str] = dict(flags.values)
    files = _files(action, given, flags, place)
    _positional(action, given, files, flags, place)
    _check_bare(action, flags, place)
    _check_variables(arguments)
    values: dict[str, Value] = {name: _meant(text, place) for name, text in given.items()}
    for name, value in values.items():
        field = action.field(name)
        if field is not None:
            values[name] = _checked(field, value, place.label)
    if action.method == "CLI":
        values |= _paths(action, values, place)
    for name, value in files.items():
        field = action.field(name)
        shaped = field is not None and field.type in _SHAPED
        values[name] = (
            _checked(field, value, place.label) if field is not None and shaped else value
        )
    check_parts(action, values, place)
    for field in action.fields:
        if field.name not in values and field.default is not None:
            default = _default(field, place)
            shaped = field.type in LIST_TYPES
            values[field.name] = _checked(field, default, place.label) if shaped else default
            if action.method == "CLI" and field.type == "path" and default.startswith("~"):
                values[field.name] = _from_caller(default, place)
    return Bound(values, tuple(_plain(word, place) for word in arguments.words))


def read_arguments(action: Action, text: str) -> CallArguments:
    """Take a caller's argument text apart; aliases are replaced by the names they stand for."""
    given = words(text)
    return CallArguments(
        text,
        flags_of(given, action.aliases),
        tuple(word.text for word in given),
        any(word.variable for word in given),
    )


def _files(
    action: Action, given: dict[str, str], flags: Flags, place: ActionContext
) -> dict[str, Value]:
    """Take `--<field>-file` flags out of `given` and read what they name."""
    found: dict[str, Value] = {}
    for field in action.fields:
        flag = f"{field.name}{FILE_SUFFIX}"
        if flag not in given:
            continue
        if field.name in given:
            raise payload_error(f"Pass either --{field.name} or --{flag}, not both.")
        path = given.pop(flag)
        if flag in flags.bare or not path:
            raise payload_error(f"--{flag} requires a file path.")
        found[field.name] = _file_text(flag, path, place)
    return found


def _file_text(flag: str, path: str, place: ActionContext) -> str:
    try:
        data = place.topic.read_file(path, MAX_FIELD_FILE)
    except ActionError as error:
        raise payload_error(f"--{flag}: {error.message}") from error
    try:
        return data.decode("utf-8")
    except UnicodeDecodeError as error:
        raise payload_error(f"--{flag}: cannot read {path}: it is not UTF-8 text") from error


def _positional(
    action: Action,
    given: dict[str, str],
    files: Mapping[str, Value],
    flags: Flags,
    place: ActionContext,
) -> None:
    """Give positional words to the fields without a value; without fields they are `$ARGS`."""
    if not action.fields:
        return
    free = [each.name for each in action.fields if each.name not in {*given, *files}]
    if len(flags.positional) > len(free):
        values = "value" if len(free) == 1 else "values"
        fields = "field" if len(action.fields) == 1 else "fields"
        names = ", ".join(each.name for each in action.fields)
        raise payload_error(
            f"Too many positional arguments for {place.label}.\n"
            f"Expected up to {len(free)} positional {values} ({fields}: {names}), "
            f"got {len(flags.positional)}.\n"
            "Use -- to pass values that start with '-'."
        )
    given.update(zip(free, flags.positional, strict=False))


def _check_bare(action: Action, flags: Flags, place: ActionContext) -> None:
    for name in flags.values:
        field = action.field(name)
        if name in flags.bare and field is not None and field.type != "boolean":
            raise payload_error(
                f"Flag --{name} requires a value (declared type: {field.type}).\n"
                f"Usage: {place.label} --{name} <{field.type}>"
            )


def _check_variables(arguments: CallArguments) -> None:
    if arguments.names_variable:
        raise payload_error(
            "$var cannot be used in command arguments. "
            "Use {var} for session variables, $var in action definitions.\n"
            "In single quotes it is text: '$NAME'."
        )


def _plain(text: str, place: ActionContext) -> str:
    """A caller's text with session variables filled in."""
    return PLACEHOLDER.sub(lambda match: place.names.session.get(match[1], match[0]), text)


def _meant(text: str, place: ActionContext) -> Value:
    """What a caller's text stands for."""
    plain = _plain(text, place)
    if plain.startswith("@@") and _SHORTCUT.fullmatch(plain, 1):
        return plain[1:]
    if not _SHORTCUT.fullmatch(plain):
        return plain
    value = place.topic.shortcut(plain[1:])
    if value is not None:
        return value
    if plain != text:
        return plain
    names = [f"@{name}" for name in place.topic.shortcut_names()]
    shown = ", ".join(names[:NAMES_SHOWN]) + (", ..." if len(names) > NAMES_SHOWN else "")
    known = f"Available: {shown}" if names else "(no shortcuts available yet)"
    raise ActionError("NOT_FOUND", f"Unknown shortcut: {plain}\n{known}")


def _paths(action: Action, values: Mapping[str, Value], place: ActionContext) -> dict[str, Value]:
    """Relative names of files, as the caller means them: a command may run elsewhere."""
    named = (
        (field.name, values.get(field.name)) for field in action.fields if field.type == "path"
    )
    return {
        name: _from_caller(value, place)
        for name, value in named
        if isinstance(value, str) and value
    }


def _from_caller(value: str, place: ActionContext) -> str:
    """A file of the caller's, unless the name can only mean one where the command runs."""
    if value == "~" or value.startswith("~/"):
        # The shell would do so with a word of its own, but not with a value.
        return os.path.normpath(os.path.expanduser(value))  # noqa: PTH111 - text in, text out
    if place.caller is None or value.startswith(("/", "~", "-")):
        return value
    meant = place.caller / value
    here = not value.startswith(("./", "../")) and _exists(place.directory / value)
    return value if here and not _exists(meant) else os.path.normpath(meant)


def _exists(path: Path) -> bool:
    try:
        path.stat()
    except (OSError, ValueError):
        return False
    return True


def _default(field: Field, place: ActionContext) -> str:
    """A field's default with its variables filled in, each once."""
    missing: list[str] = []
    pieces: list[str] = []
    for piece in cut(field.default or ""):
        if isinstance(piece, str):
            pieces.append(piece)
        elif isinstance(piece, Variable):
            known = place.names.variable(piece.name)
            if known is None and piece.must_resolve:
                missing.append(piece.name)
            pieces.append(piece.raw if known is None else known)
        else:
            pieces.append(place.names.session.get(piece.name, piece.raw))
    if missing:
        names = ", ".join(f"${name}" for name in dict.fromkeys(missing))
        raise payload_error(
            f"Unresolved environment variable(s) in field default:\n  {names}\n\n"
            f"{set_hint(place, list(dict.fromkeys(missing)))}\n"
            f"Or pass the field explicitly: {place.label} --{field.name} <value>"
        )
    return "".join(pieces)


def fits(field: Field, value: str) -> None:
    """Raises `ActionError` for a value that a field does not admit."""
    _checked(field, value, f"--{field.name}")


def _checked(field: Field, value: Value, label: str) -> Value:
    """A value in the shape its field has. Raises `ActionError` for one it does not admit."""
    value = with_parts(field, value)
    shaped = listed(field, value) if field.type in LIST_TYPES else value
    if shaped is None:
        problem: str | None = 'must be a list: a, b or ["a", "b"]'
    elif isinstance(shaped, ListValue):
        problem = _list_problem(field, shaped)
    elif isinstance(shaped, tuple):
        problem = None
    else:
        problem = _type_problem(field, shaped) or _range_problem(field, shaped)
        if problem is None and field.choices and shaped not in field.choices:
            problem = f"must be one of: {', '.join(field.choices)}"
    if problem is not None or shaped is None:
        text = text_of(value)
        shown = text if len(text) <= 80 else f"{text[:77]}..."
        raise payload_error(
            f'--{field.name} {problem}; got "{shown}".\n'
            f"Usage: {label} --{field.name} <{'|'.join(field.choices) or field.type}>"
        )
    return shaped


def _list_problem(field: Field, value: ListValue) -> str | None:
    """What is wrong with a list; limits bound how many items it has."""
    low, high = field.minimum, field.maximum
    if field.choices and any(item not in field.choices for item in value):
        return f"may have only: {', '.join(field.choices)}"
    if low is not None and len(value) < low:
        return f"must have at least {low:g} item{'' if low == 1 else 's'}"
    if high is not None and len(value) > high:
        return f"must have at most {high:g} item{'' if high == 1 else 's'}"
    return None


def fits_type(field: Field, value: str) -> bool:
    """Whether a field's type or list of values admits only texts like this one, and it is one."""
    if field.choices:
        return value in field.choices
    typed = field.type in ("number", "float", "integer", "int", "boolean", "bool")
    return typed and _type_problem(field, value) is None


def _type_problem(field: Field, value: str) -> str | None:
    if field.type in ("number", "float") and not _NUMBER.fullmatch(value):
        return "must be a number"
    if field.type in ("integer", "int") and not _INTEGER.fullmatch(value):
        return "must be a whole number"
    if field.type in ("boolean", "bool") and value.lower() not in _BOOLEANS:
        return "must be true or false"
    if field.type == "json" and not is_json(value):
        return "must be JSON"
    return None


def _range_problem(field: Field, value: str) -> str | None:
    low, high = field.minimum, field.maximum
    if low is None and high is None:
        return None
    # For text the limits bound its length.
    amount = float(value) if _NUMBER.fullmatch(value) else None
    if amount is None or field.type == "string":
        return _length_problem(len(value), low, high)
    if low is not None and amount < low:
        return f"must be at least {low:g}"
    if high is not None and amount > high:
        return f"must be at most {high:g}"
    return None


def _length_problem(length: int, low: float | None, high: float | None) -> str | None:
    if low is not None and length < low:
        return f"must have at least {low:g} characters"
    if high is not None and length > high:
        return f"must have at most {high:g} characters"
    return None
