"""JSON Schemas of answers, as servers that enforce them want them."""

from collections.abc import Callable, Mapping
from typing import Any, Final

_TYPED: Final = frozenset({"type", "$ref", "anyOf", "oneOf", "allOf", "enum", "const"})
_NOT_STRICT: Final = frozenset(
    {
        "minLength",
        "maxLength",
        "patternProperties",
        "unevaluatedProperties",
        "propertyNames",
        "minProperties",
        "maxProperties",
        "unevaluatedItems",
        "contains",
        "minContains",
        "maxContains",
        "uniqueItems",
        "default",
        "oneOf",
    }
)
_FORMATS: Final = frozenset(
    {"date-time", "time", "date", "duration", "email", "hostname", "ipv4", "ipv6", "uuid"}
)
_LOOKAROUND: Final = ("(?=", "(?!", "(?<=", "(?<!")
_UNENFORCED: Final = frozenset(
    {
        *("minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum", "multipleOf"),
        *("minLength", "maxLength", "pattern", "maxItems", "uniqueItems"),
        *("minProperties", "maxProperties"),
    }
)


def strict(schema: Mapping[str, Any]) -> dict[str, Any] | None:
    """The schema with every object closed, or None when a strict server would refuse it."""
    fits = True

    def close(part: dict[str, Any]) -> dict[str, Any]:
        nonlocal fits
        fits = fits and _is_strict(part)
        part.pop("title", None)
        part.pop("$schema", None)
        if part.get("type") == "object":
            part.setdefault("properties", {})
            part["additionalProperties"] = False
        return part

    closed = _walked(schema, close)
    return closed if fits else None


def _is_strict(part: Mapping[str, Any]) -> bool:
    if not _NOT_STRICT.isdisjoint(part) or part.get("format", "date") not in _FORMATS:
        return False
    if any(token in str(part.get("pattern", "")) for token in _LOOKAROUND):
        return False
    match part.get("type"):
        case "object":
            names = part.get("properties", {})
            open_ended = part.get("additionalProperties") not in (None, False)
            return not open_ended and "required" in part and set(names) <= set(part["required"])
        case "array":
            items = part.get("items")
            return isinstance(items, dict) and not _TYPED.isdisjoint(items)
    return True


def closed(schema: Mapping[str, Any]) -> dict[str, Any]:
    """The schema with every object closed; what is not enforced is said in its description."""

    def close(part: dict[str, Any]) -> dict[str, Any]:
        if part.get("type") == "object":
            part["additionalProperties"] = False
        told = [f"{name}: {part.pop(name)}" for name in sorted(_UNENFORCED & part.keys())]
        if told:
            lead = f"{part['description']}\n\n" if part.get("description") else ""
            part["description"] = f"{lead}{{{', '.join(told)}}}"
        if "oneOf" in part:
            part["anyOf"] = part.pop("oneOf")
        part.pop("$schema", None)
        return part

    return _walked(schema, close)


def _walked(
    schema: Mapping[str, Any], change: Callable[[dict[str, Any]], dict[str, Any]]
) -> dict[str, Any]:
    """A copy in which every schema, the outer one included, was changed."""
    found: dict[str, Any] = {}
    for name, value in schema.items():
        match name, value:
            case (("properties" | "$defs" | "definitions"), dict()):
                found[name] = {
                    key: _walked(each, change) if isinstance(each, dict) else each
                    for key, each in value.items()
                }
            case (("items" | "additionalProperties" | "not"), dict()):
                found[name] = _walked(value, change)
            case (("anyOf" | "oneOf" | "allOf" | "prefixItems"), list()):
                found[name] = [
                    _walked(each, change) if isinstance(each, dict) else each for each in value
                ]
            case _:
                found[name] = value
    return change(found)
