"""Arguments of a tool: one type gives the schema the model sees and the check of what it sends."""

import re
from collections.abc import Iterator, Mapping
from typing import Any, NamedTuple

import msgspec

from stringd.formats.shapes import kind


class Problem(NamedTuple):
    path: str
    problem: str


def schema_of(arguments: type[msgspec.Struct]) -> Mapping[str, Any]:
    """The JSON Schema of a tool's arguments, in one piece."""
    components = msgspec.json.schema_components([arguments])
    found: Mapping[str, Any] = _inlined(components[0][0], components[1])
    return found


def _inlined(value: Any, definitions: Mapping[str, Any]) -> Any:
    if isinstance(value, list):
        return [_inlined(each, definitions) for each in value]
    if not isinstance(value, dict):
        return value
    if "$ref" in value:
        return _inlined(definitions[value["$ref"].rpartition("/")[2]], definitions)
    return {key: _inlined(each, definitions) for key, each in value.items() if key != "title"}


def problems(schema: Mapping[str, Any], value: object, path: str = "") -> Iterator[Problem]:
    """Everything wrong with a value, one by one. Unknown keys are let pass."""
    if "anyOf" in schema:
        yield from _none_fits(schema["anyOf"], value, path)
        return
    if "enum" in schema and value not in schema["enum"]:
        expected = " | ".join(f"'{each}'" for each in schema["enum"])
        yield Problem(path, f"Invalid enum value. Expected {expected}, received {value!r}")
        return
    wanted = schema.get("type")
    if wanted is not None and not _is(wanted, value):
        yield Problem(path, f"Expected {wanted}, received {kind(value)}")
        return
    yield from _within(schema, value, path)


def counted(value: Any) -> Any:
    """The value with whole numbers as integers: some models write 2.0 and mean 2."""
    match value:
        case float() if value.is_integer():
            return int(value)
        case dict():
            return {name: counted(each) for name, each in value.items()}
        case list():
            return [counted(each) for each in value]
        case _:
            return value


def _none_fits(branches: list[Mapping[str, Any]], value: object, path: str) -> Iterator[Problem]:
    found = [list(problems(branch, value, path)) for branch in branches]
    if all(found):
        yield from found[0]


def _is(wanted: str, value: object) -> bool:
    if wanted == "integer" and isinstance(value, float):
        return value.is_integer()
    return kind(value) == ("number" if wanted == "integer" else wanted)


def _within(schema: Mapping[str, Any], value: object, path: str) -> Iterator[Problem]:
    match value:
        case dict():
            yield from _members(schema, value, path)
        case list():
            yield from _items(schema, value, path)
        case str():
            yield from _text(schema, value, path)
        case bool():
            pass
        case int() | float():
            yield from _number(schema, value, path)
        case _:
            pass


def _members(schema: Mapping[str, Any], value: Mapping[str, Any], path: str) -> Iterator[Problem]:
    known = schema.get("properties", {})
    for name in schema.get("required", ()):
        if name not in value:
            yield Problem(_below(path, name), "Required")
    other = schema.get("additionalProperties")
    for name, each in value.items():
        inner = known.get(name, other if isinstance(other, dict) else None)
        if inner is not None:
            yield from problems(inner, each, _below(path, name))


def _items(schema: Mapping[str, Any], value: list[Any], path: str) -> Iterator[Problem]:
    if len(value) < schema.get("minItems", 0):
        yield Problem(path, f"Array must contain at least {schema['minItems']} element(s)")
    for index, each in enumerate(value):
        yield from problems(schema.get("items", {}), each, _below(path, str(index)))


def _text(schema: Mapping[str, Any], value: str, path: str) -> Iterator[Problem]:
    if len(value) < schema.get("minLength", 0):
        yield Problem(path, f"String must contain at least {schema['minLength']} character(s)")
    if "pattern" in schema and not re.search(schema["pattern"], value):
        yield Problem(path, f"Invalid: must match {schema['pattern']}")


def _number(schema: Mapping[str, Any], value: float, path: str) -> Iterator[Problem]:
    if "minimum" in schema and value < schema["minimum"]:
        yield Problem(path, f"Number must be greater than or equal to {schema['minimum']}")
    if "exclusiveMinimum" in schema and value <= schema["exclusiveMinimum"]:
        yield Problem(path, f"Number must be greater than {schema['exclusiveMinimum']:g}")
    if "maximum" in schema and value > schema["maximum"]:
        yield Problem(path, f"Number must be less than or equal to {schema['maximum']}")


def _below(path: str, name: str) -> str:
    return f"{path}.{name}" if path else name
