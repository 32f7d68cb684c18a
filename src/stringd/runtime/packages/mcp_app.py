"""An MCP server as an app: its tools and resources → a document, a caller's text → arguments.

What a server says about itself is data: in the document it cannot start a fence, a directive or a
shortcut of its own.
"""

import re
from collections.abc import Mapping, Sequence
from typing import Any, Final
from urllib.parse import quote

import msgspec

from stringd.actions.errors import payload_error
from stringd.actions.place import Value, text_of
from stringd.system.sandbox import Level

MOUNT_FILE: Final = "mcp.json"
SCHEME: Final = "mcp://"
_NOT_IN_IDS: Final = re.compile(r"[^A-Za-z0-9_-]+")
_NOT_IN_FIELDS: Final = re.compile(r"\W+", re.ASCII)
_DRIVES_A_TERMINAL: Final = re.compile(
    r"[\x00-\x1f\x7f-\x9f\u200e\u200f\u202a-\u202e\u2066-\u2069]"
)
"""Control characters, and those that turn the direction of reading."""
_NOT_IN_ADDRESSES: Final = re.compile(rf"[\s()<>\[\]\\]|{_DRIVES_A_TERMINAL.pattern}")
_TYPES: Final = ("string", "number", "integer", "boolean", "array", "object")
_CHOICE: Final = re.compile(r"[\w.-]+", re.ASCII)
_SUMMARY: Final = 160


class ToolInfo(msgspec.Struct, frozen=True):
    """A tool as its server describes it."""

    name: str
    description: str = ""
    schema: dict[str, Any] = {}


class ResourceInfo(msgspec.Struct, frozen=True):
    """A document a server offers."""

    uri: str
    name: str
    description: str = ""


class Mount(msgspec.Struct, frozen=True):
    """A mounted server, as `mcp.json` keeps it: a command or an address."""

    command: tuple[str, ...] = ()
    url: str | None = None
    title: str = ""
    instructions: str = ""
    tools: dict[str, ToolInfo] = {}
    """Action id → tool."""
    resources: tuple[ResourceInfo, ...] = ()
    headers: dict[str, str] = {}
    """Sent to the address; `$NAME` in a value stands for a variable of the app."""
    sandbox: Level = Level.WORKSPACE
    """How far the command reaches; its owner may write `open` here."""
    network: str | tuple[str, ...] = "open"
    """What of the network the command reaches: `open`, `none` or a list of hosts."""
    cwd: str | None = None
    """Where the command runs: the directory it was typed in, so that its relative paths hold."""


def with_ids(tools: Sequence[ToolInfo]) -> dict[str, ToolInfo]:
    """Every tool under an id actions can have."""
    found: dict[str, ToolInfo] = {}
    # Counting on from the last number given keeps thousands of equal names linear.
    numbers: dict[str, int] = {}
    for tool in tools:
        stem = _NOT_IN_IDS.sub("-", tool.name).strip("-") or "tool"
        ident, number = stem, numbers.get(stem, 2)
        while ident in found:
            ident, number = f"{stem}-{number}", number + 1
        numbers[stem] = number
        found[ident] = tool
    return found


def document_of(name: str, mount: Mount) -> str:
    """The app document of a server."""
    lines = ["---", f"name: {name}", "type: app", "---", f"# {_plain(mount.title) or name}", ""]
    if mount.instructions.strip():
        lines += [f"> {_plain(line)}" for line in mount.instructions.strip().splitlines()]
        lines.append("")
    if mount.tools:
        lines += ["## Tools", ""]
        lines += [
            f"- `/act.{ident}`{_about(tool.description)}" for ident, tool in mount.tools.items()
        ]
        lines.append("")
    if mount.resources:
        lines += ["## Resources", ""]
        lines += [
            f"- [@doc-{number} {_plain(each.name)}]({resource_uri(name, each.uri)})"
            f"{_about(each.description)}"
            for number, each in enumerate(mount.resources, 1)
        ]
        lines.append("")
    for ident, tool in mount.tools.items():
        lines += [f"```act.{ident}", f"MCP {ident}", *_fields(tool), "```", ""]
    return "\n".join(lines)


def resource_uri(name: str, uri: str) -> str:
    """The address under which `/open` reads a resource."""
    safe = _NOT_IN_ADDRESSES.sub(lambda match: quote(match[0]), uri)
    return f"{SCHEME}{name}/{safe}"


def arguments_of(tool: ToolInfo, values: Mapping[str, Value]) -> dict[str, Any]:
    """A call's values as the tool's schema wants them. Raises `ActionError`."""
    names = {_NOT_IN_FIELDS.sub("_", name): name for name in _properties(tool)}
    found: dict[str, Any] = {}
    for field, value in values.items():
        name = names.get(field, field)
        schema = _properties(tool).get(name, {})
        found[name] = _typed(field, value, schema)
    return found


def _typed(field: str, value: Value, schema: Mapping[str, Any]) -> Any:
    wanted = _type(schema)
    text = text_of(value)
    if wanted == "string":
        return text
    if wanted == "array" and isinstance(value, tuple):
        return _items(field, value, schema)
    if wanted == "boolean":
        return text.lower() in ("true", "yes", "on", "1")
    try:
        found = msgspec.json.decode(text.encode("utf-8", "replace"))
    except msgspec.DecodeError:
        if wanted == "array":
            return _items(field, [part.strip() for part in text.split(",")], schema)
        if wanted in ("integer", "number", "object"):
            raise payload_error(f"--{field} must be JSON of type {wanted}.") from None
        return text
    return [found] if wanted == "array" and not isinstance(found, list) else found


def _items(field: str, parts: Sequence[str], schema: Mapping[str, Any]) -> list[Any]:
    inner = schema.get("items")
    return [_typed(field, part, inner if isinstance(inner, dict) else {}) for part in parts]


def _properties(tool: ToolInfo) -> dict[str, dict[str, Any]]:
    found = tool.schema.get("properties")
    if not isinstance(found, dict):
        return {}
    return {str(key): value for key, value in found.items() if isinstance(value, dict)}


def _type(schema: Mapping[str, Any]) -> str:
    """The one type a property has; `null` beside it means that it is optional."""
    declared = schema.get("type")
    kinds = declared if isinstance(declared, list) else [declared]
    if declared is None:
        options = schema.get("anyOf") or schema.get("oneOf") or []
        kinds = [each.get("type") for each in options if isinstance(each, dict)]
        if not kinds and "enum" in schema:
            return "string"
    named = [str(kind) for kind in kinds if kind not in (None, "null")]
    return named[0] if len(named) == 1 and named[0] in _TYPES else "any"


def _fields(tool: ToolInfo) -> list[str]:
    required = tool.schema.get("required")
    needed = set(required) if isinstance(required, list) else set()
    lines = []
    # Positional words go to required fields first.
    ordered = sorted(_properties(tool).items(), key=lambda item: item[0] not in needed)
    for name, schema in ordered:
        limits = ["required" if name in needed else "optional", *_limits(schema)]
        about = " ".join(filter(None, (_shape(schema), str(schema.get("description") or ""))))
        if schema.get("default") is not None:
            about = f"{about} [default: {schema['default']}]"
        described = _plain(about).replace('"', "'")[:400]
        quoted = f' "{described}"' if described else ""
        field = _NOT_IN_FIELDS.sub("_", name)
        lines.append(f"  {field}: {_type(schema)} ({', '.join(limits)}){quoted}")
    return lines


def _shape(schema: Mapping[str, Any]) -> str:
    """What an object holds, or each of an array's: `each {path, content, mode?}`."""
    items = schema.get("items")
    if isinstance(items, dict):
        inner = _shape(items)
        return f"each {inner}" if inner else ""
    held = schema.get("properties")
    if not isinstance(held, dict) or not held:
        return ""
    required = schema.get("required")
    needed = required if isinstance(required, list) else []
    names = (str(name) if name in needed else f"{name}?" for name in held)
    return f"{{{', '.join(names)}}}"


def _limits(schema: Mapping[str, Any]) -> list[str]:
    found = []
    choices = schema.get("enum")
    if isinstance(choices, list) and len(choices) > 1:
        named = [str(choice) for choice in choices]
        if all(_CHOICE.fullmatch(choice) for choice in named):
            found.append("|".join(named))
    if _type(schema) in ("integer", "number"):
        for key, word in (("minimum", "min"), ("maximum", "max")):
            if isinstance(schema.get(key), int | float):
                found.append(f"{word}:{schema[key]}")
    return found


def _about(description: str) -> str:
    text = _plain(description)
    if not text:
        return ""
    return f" — {text}" if len(text) <= _SUMMARY else f" — {text[: _SUMMARY - 1]}…"


def _plain(text: str) -> str:
    """One line that declares nothing."""
    line = _DRIVES_A_TERMINAL.sub("\N{REPLACEMENT CHARACTER}", " ".join(text.split()))
    return line.replace("`", "'").replace("~~~", "~").replace("[", "(").replace("]", ")")
