"""YAML with the scalars of the 1.2 core schema (`yes` and `on` are strings), and their places."""

import re
from collections.abc import Callable, Iterator
from typing import Any, Final

import yaml
from yaml._yaml import CParser

from stringd.formats.places import (
    MAX_DEPTH,
    MAX_VALUES,
    Places,
    Scalar,
    SourcePlace,
    SourceSyntaxError,
    Value,
)
from stringd.formats.shapes import Path

_STR: Final = "tag:yaml.org,2002:str"
_CORE: Final = [
    ("tag:yaml.org,2002:null", re.compile(r"(?:null|Null|NULL|~|)")),
    ("tag:yaml.org,2002:bool", re.compile(r"(?:true|True|TRUE|false|False|FALSE)")),
    ("tag:yaml.org,2002:int", re.compile(r"(?:[-+]?[0-9]+|0o[0-7]+|0x[0-9a-fA-F]+)")),
    (
        "tag:yaml.org,2002:float",
        re.compile(
            r"(?:[-+]?(?:\.[0-9]+|[0-9]+(?:\.[0-9]*)?)(?:[eE][-+]?[0-9]+)?"
            r"|[-+]?\.(?:inf|Inf|INF)|\.(?:nan|NaN|NAN))"
        ),
    ),
]


def parse_yaml(text: str) -> tuple[Any, Places]:
    try:
        node = _YamlComposer(text).single_node()
    except yaml.MarkedYAMLError as error:
        place = _mark(error.problem_mark or error.context_mark)
        problem = ", ".join(filter(None, (error.problem, error.context)))
        if place is not None and _tab_before(text, place):
            problem = "a tab cannot indent here; use spaces"
        raise SourceSyntaxError(problem, place) from None
    except yaml.reader.ReaderError as error:
        line = text.count("\n", 0, error.position) + 1
        raise SourceSyntaxError(f"{error.reason} at line {line}", None) from None
    except yaml.YAMLError as error:
        raise SourceSyntaxError(str(error), None) from None
    builder = _YamlBuilder()
    return (None if node is None else builder.build(node, (), 0)), builder.places


class _YamlComposer:
    """Nodes from the parser's events, with the scalar rules of the YAML 1.2 core schema.

    The parser's own composer calls itself for each level and ends the process on a deep text; its
    scanner looks at every open bracket for each token. So nesting is counted here, event by event.
    """

    def __init__(self, text: str) -> None:
        self._next: Callable[[], Any] = CParser(text).get_event
        self._anchors: dict[str, Any] = {}

    def single_node(self) -> yaml.Node | None:
        """The node of the only document. Raises `YAMLError` or `SourceSyntaxError`."""
        self._next()
        event = self._next()
        if type(event) is yaml.StreamEndEvent:
            return None
        root = self._document()
        event = self._next()
        if type(event) is not yaml.StreamEndEvent:
            context, problem = (
                "expected a single document in the stream",
                "but found another document",
            )
            raise yaml.MarkedYAMLError(context, None, problem, event.start_mark)
        return root

    def _document(self) -> yaml.Node:
        opened: list[yaml.CollectionNode] = []
        root: yaml.Node | None = None
        while type(event := self._next()) is not yaml.DocumentEndEvent:
            if isinstance(event, yaml.CollectionEndEvent):
                opened.pop()
                continue
            node = self._node(event)
            root = root or node
            if opened:
                _put(opened[-1], node)
            if isinstance(event, yaml.CollectionStartEvent):
                opened.append(node)
                if len(opened) > MAX_DEPTH + 1:
                    raise SourceSyntaxError("values are nested too deeply", _mark(event.start_mark))
        assert root is not None
        return root

    def _node(self, event: Any) -> Any:
        marks: tuple[Any, Any] = (event.start_mark, event.end_mark)
        if isinstance(event, yaml.AliasEvent):
            if event.anchor not in self._anchors:
                raise yaml.MarkedYAMLError(None, None, "found undefined alias", marks[0])
            return self._anchors[event.anchor]
        if isinstance(event, yaml.ScalarEvent):
            node: yaml.Node = yaml.ScalarNode(_scalar_tag(event), event.value, *marks)
        elif isinstance(event, yaml.SequenceStartEvent):
            node = yaml.SequenceNode(str(event.tag), [], *marks)
        else:
            node = yaml.MappingNode(str(event.tag), [], *marks)
        if event.anchor is not None:
            if event.anchor in self._anchors:
                first = self._anchors[event.anchor].start_mark
                context = "found duplicate anchor; first occurrence"
                raise yaml.MarkedYAMLError(context, first, "second occurrence", event.start_mark)
            self._anchors[event.anchor] = node
        return node


def _put(into: yaml.CollectionNode, node: yaml.Node) -> None:
    """Add a node; in a mapping a key waits for its value."""
    if isinstance(into, yaml.SequenceNode):
        into.value.append(node)
    elif into.value and len(into.value[-1]) == 1:
        into.value[-1] = (into.value[-1][0], node)
    else:
        into.value.append((node,))


def _scalar_tag(event: yaml.ScalarEvent) -> str:
    if event.tag not in (None, "!"):
        return str(event.tag)
    if not event.implicit[0]:
        return _STR
    return next((tag for tag, form in _CORE if form.fullmatch(event.value)), _STR)


def _tab_before(text: str, place: SourcePlace) -> bool:
    """Whether a tab is among the blanks a line begins with, up to and at the place."""
    line = text.split("\n")[place.line - 1] if place.line <= text.count("\n") + 1 else ""
    blanks = line[: len(line) - len(line.lstrip(" \t"))]
    return "\t" in blanks and place.column <= len(blanks) + 1


def _mark(mark: Any) -> SourcePlace | None:
    return None if mark is None else SourcePlace(mark.line + 1, mark.column + 1)


class _YamlBuilder:
    """Plain values from nodes. Aliases are followed, but not into themselves nor without end."""

    def __init__(self) -> None:
        self.places: Places = {}
        self._count = 0

    def build(self, node: yaml.Node, path: Path, depth: int) -> Any:
        place = SourcePlace(node.start_mark.line + 1, node.start_mark.column + 1)
        self._count += 1
        if depth > MAX_DEPTH:
            raise SourceSyntaxError(
                "values are nested too deeply, or an anchor holds itself", place
            )
        if self._count > MAX_VALUES:
            raise SourceSyntaxError("aliases expand to too many values", place)
        self.places.setdefault(path, place)
        if isinstance(node, yaml.MappingNode):
            return self._mapping(node, path, depth)
        if isinstance(node, yaml.SequenceNode):
            return [
                self.build(item, (*path, index), depth + 1) for index, item in enumerate(node.value)
            ]
        return _scalar(node, place)

    def _mapping(self, node: yaml.MappingNode, path: Path, depth: int) -> dict[str, Any]:
        found: dict[str, Any] = {}
        for key_node, value_node in node.value:
            place = SourcePlace(key_node.start_mark.line + 1, key_node.start_mark.column + 1)
            if not isinstance(key_node, yaml.ScalarNode):
                raise SourceSyntaxError("a key must be a plain word", place)
            # Keys are text whatever they look like, as in JSON.
            key = str(key_node.value)
            if key in found:
                raise SourceSyntaxError(f'the key "{key}" is given twice', place)
            self.places[(*path, key)] = place
            found[key] = self.build(value_node, (*path, key), depth + 1)
        return found


def _scalar(node: yaml.Node, place: SourcePlace) -> Any:
    text = str(node.value)
    match node.tag.rpartition(":")[2]:
        case "str":
            return text
        case "null":
            return None
        case "bool":
            return text.lower() == "true"
        case "int":
            return _number(int, text, place)
        case "float":
            return _number(float, text, place)
        case _:
            raise SourceSyntaxError(f"the tag {node.tag} is not allowed here", place)


def _number(kind: type[int] | type[float], text: str, place: SourcePlace) -> int | float:
    try:
        if kind is float:
            return float(re.sub(r"\.(inf|nan)", r"\1", text, flags=re.IGNORECASE))
        return int(text, 0) if text.startswith(("0x", "0o")) else int(text)
    except ValueError:
        raise SourceSyntaxError(f"{text[:40]} is not a number", place) from None


def parse_loosely(text: str, scalar: Scalar) -> Value:
    """The value of a text nobody checked: a later key wins, and what is not a plain word is kept.

    Keys and list items are text, aliases too; `scalar` says what other plain scalars mean.
    Raises `SourceSyntaxError`.
    """
    try:
        return _built(yaml.parse(text, Loader=yaml.CSafeLoader), scalar)
    except (yaml.YAMLError, ValueError) as broken:
        raise SourceSyntaxError(str(broken), None) from None


def _built(events: Iterator[Any], scalar: Scalar) -> Value:
    """Build values from parser events as they come, so that a text too deep is not read on."""
    documents: list[Value] = []
    stack: list[_Open] = [_Open(documents)]
    for event in events:
        match type(event).__name__:
            case "ScalarEvent":
                stack[-1].add(_loose_scalar(event, stack[-1], scalar))
            case "AliasEvent":
                # Expanding aliases lets a few lines become gigabytes; they stay text.
                stack[-1].add(f"*{event.anchor}")
            case "SequenceStartEvent":
                stack.append(_deeper(stack, []))
            case "MappingStartEvent":
                stack.append(_deeper(stack, {}))
            case "SequenceEndEvent" | "MappingEndEvent":
                stack.pop()
    return documents[0] if documents else None


def _deeper(stack: "list[_Open]", child: list[Value] | dict[str, Value]) -> "_Open":
    if len(stack) > MAX_DEPTH:
        raise SourceSyntaxError("values are nested too deeply", None)
    return stack[-1].nest(child)


class _Open:
    """A list or map being filled."""

    def __init__(self, into: list[Value] | dict[str, Value]) -> None:
        self.into = into
        self.key: str | None = None

    def add(self, value: Value) -> None:
        if isinstance(self.into, list):
            self.into.append(value)
        elif self.key is None:
            self.key = value if isinstance(value, str) else ""
        else:
            self.into[self.key] = value
            self.key = None

    def nest(self, child: list[Value] | dict[str, Value]) -> "_Open":
        self.add(child)
        return _Open(child)


def _loose_scalar(event: Any, parent: _Open, scalar: Scalar) -> Value:
    text = str(event.value)
    # Keys and list items are text: `requires: [A, 1]` is a list of names.
    if isinstance(parent.into, list) or parent.key is None or event.style:
        return text
    return scalar(text)
