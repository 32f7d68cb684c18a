"""Which variables of a command may hold a caller's value, and which hold a number for certain."""

import re
from collections.abc import Iterable, Iterator, Mapping
from collections.abc import Set as AbstractSet
from typing import TYPE_CHECKING, Final, NamedTuple

from stringd.actions.holes.sources import NOTHING, Carried
from stringd.formats.shell.words import INPUT, ShellStage, Word, source, spelled

if TYPE_CHECKING:
    from tree_sitter import Node

IDENTIFIER: Final = re.compile(r"[A-Za-z_]\w*", re.ASCII)
# What bash itself puts a value into, as far as one can reach the command at all.
_FILLED_BY_BASH: Final = (
    *"@*123456789_",
    "REPLY",
    "MAPFILE",
    "OPTARG",
    "BASH_REMATCH",
    "BASH_ARGV",
    "BASH_ARGV0",
    "BASH_COMMAND",
    INPUT,
)
_OF_FOLDER: Final = ("PWD", "OLDPWD", "DIRSTACK")
_FOLDER_CHANGES: Final = frozenset(("cd", "pushd"))
_READERS: Final = frozenset(("read", "mapfile", "readarray", "getopts"))
_OF_FUNCTIONS: Final = "<functions>"
_NUMBER: Final = re.compile(r"-?\d+", re.ASCII)
_DATE: Final = re.compile(r"(-u|\+%[CdHIjmMNsSuVwyY])", re.ASCII)
_COUNTS: Final = re.compile(r"-[lcwm]+")
_SET_IN_ARITHMETIC: Final = re.compile(
    r"([A-Za-z_]\w*)\s*(?:[-+*/%&|^]|<<|>>)?=(?!=)|([A-Za-z_]\w*)(?:\+\+|--)"
    r"|(?:\+\+|--)([A-Za-z_]\w*)",
    re.ASCII,
)
_ARITHMETIC: Final = frozenset(("arithmetic_expansion", "c_style_for_statement"))


class _Assignment(NamedTuple):
    """A value given to a name: by a node of the line, by what is known of it, or a number."""

    name: str
    node: "Node | None" = None
    carried: Carried = NOTHING
    word: Word | None = None
    number: bool = False


class Variables:
    """What the variables of one line may hold; `callers` are the values its caller decides."""

    def __init__(
        self,
        root: "Node",
        line: str,
        stages: Iterable[ShellStage],
        known: Mapping[str, Carried],
        callers: Carried,
    ) -> None:
        self._line = line
        self._callers = callers
        self.functions = frozenset(
            source(node.named_children[0], line)
            for node in walk(root)
            if node.type == "function_definition"
        )
        self.holds: dict[str, Carried] = dict(known)
        if callers:
            self.holds |= {name: self.holds.get(name, callers) for name in _FILLED_BY_BASH}
        stages = list(stages)
        assignments = [*self._assignments(root), *self._read(stages)]
        self._spread(assignments, stages)
        self.assigned = frozenset(each.name for each in assignments) | self.holds.keys()
        self.numbers = self._numbers(assignments, known)

    def carried_by(self, node: "Node") -> Carried:
        """What the text a node expands to may hold; commands inside it count."""
        return self._held_by_all(self._names_in(node))

    def _names_in(self, node: "Node") -> frozenset[str]:
        """The variables a node expands; `_OF_FUNCTIONS` stands for what a function prints."""
        found: set[str] = set()
        for each in walk(node):
            if each.type in ("simple_expansion", "expansion") and not is_length(each):
                found.add(name_of(each, self._line))
            elif each.type == "command_name" and source(each, self._line) in self.functions:
                found.add(_OF_FUNCTIONS)
        return frozenset(found)

    def _held_by_all(self, names: Iterable[str]) -> Carried:
        return NOTHING.union(*map(self.held, names))

    def held(self, name: str) -> Carried:
        if name == _OF_FUNCTIONS:
            return self._callers
        if name.isdigit():
            name = name[:1] if name != "0" else name
        return self.holds.get(name, NOTHING)

    def in_word(self, word: Word) -> Carried:
        """The same for a word of a command."""
        found: Carried = NOTHING
        for name in word.variables:
            found |= self.held(name)
        for stage in word.inside:
            found |= self.in_stage(stage)
        return found

    def in_stage(self, stage: ShellStage) -> Carried:
        found = self._callers if stage.name in self.functions else NOTHING
        for word in (*stage.words, *([stage.given] if stage.given else [])):
            found |= self.in_word(word)
        for before in stage.piped:
            found |= self.in_stage(before)
        return found

    def is_number(self, node: "Node") -> bool:
        """Whether a node expands to a number whatever a caller's values are."""
        return self._number(node, self.numbers)

    def _assignments(self, root: "Node") -> Iterator[_Assignment]:
        for node in walk(root):
            if node.type == "variable_assignment":
                name, value = node.named_children[0], node.named_children[1:]
                plain = source(name, self._line).partition("[")[0]
                yield _Assignment(plain, value[0] if value else None)
            elif node.type == "for_statement":
                yield from self._loop(node)
            elif node.type == "expansion" and any(c.type in ("=", ":=") for c in node.children):
                yield _Assignment(name_of(node, self._line), node.named_children[-1])
            elif is_arithmetic(node):
                for match in _SET_IN_ARITHMETIC.finditer(source(node, self._line)):
                    name_set = next(filter(None, match.groups()))
                    yield _Assignment(name_set, number=True)

    def _loop(self, node: "Node") -> Iterator[_Assignment]:
        name = source(node.named_children[0], self._line)
        values = [each for each in node.named_children[1:] if each.type != "do_group"]
        yield from (_Assignment(name, value) for value in values)
        if not values:
            yield _Assignment(name, carried=self._callers)

    def _read(self, stages: Iterable[ShellStage]) -> Iterator[_Assignment]:
        """Names that builtins fill."""
        for stage in stages:
            words = [word.text for word in stage.words[1:]]
            for word in stage.words[1:]:
                # env NAME=value, for what it starts
                name, equals, _ = word.text.partition("=")
                if equals and IDENTIFIER.fullmatch(name):
                    yield _Assignment(name, word=word)
            if stage.name in _READERS:
                for text in words:
                    if IDENTIFIER.fullmatch(text):
                        yield _Assignment(text, carried=self._callers)
            elif stage.name == "printf" and words[:1] == ["-v"] and len(words) > 1:
                yield _Assignment(words[1], carried=self._callers)

    def _spread(self, assignments: list[_Assignment], stages: list[ShellStage]) -> None:
        """Let values reach every variable they can get into, in any order of the commands."""
        reads = [self._names_in(each.node) if each.node else frozenset() for each in assignments]
        readers: dict[str, list[int]] = {}
        for at, names in enumerate(reads):
            for name in names:
                readers.setdefault(name, []).append(at)
        settled = False
        while not settled:
            settled = True
            waiting = list(range(len(assignments)))
            while waiting:
                at = waiting.pop()
                each = assignments[at]
                word = self.in_word(each.word) if each.word else NOTHING
                if self._add(each.name, each.carried | self._held_by_all(reads[at]) | word):
                    waiting += readers.get(each.name, ())
                    settled = False
            for stage in stages:
                if stage.name in _FOLDER_CHANGES:
                    changed = [self._add(name, self.in_stage(stage)) for name in _OF_FOLDER]
                    settled = settled and not any(changed)

    def _add(self, name: str, carried: Carried) -> bool:
        """Whether that was news."""
        before = self.holds.get(name, NOTHING)
        if carried <= before:
            return False
        self.holds[name] = before | carried
        return True

    def _numbers(
        self, assignments: list[_Assignment], known: Mapping[str, Carried]
    ) -> frozenset[str]:
        """Names that hold nothing but numbers, from the first command on."""
        by_name: dict[str, list[_Assignment]] = {}
        for each in assignments:
            by_name.setdefault(each.name, []).append(each)
        candidates = [name for name in by_name if not known.get(name)]
        numbers: set[str] = set()
        before = -1
        while before != len(numbers):
            before = len(numbers)
            # Both ways, so that a chain of variables is followed in one round.
            for name in (*candidates, *reversed(candidates)):
                if name not in numbers and all(
                    each.number or (each.node is not None and self._number(each.node, numbers))
                    for each in by_name[name]
                ):
                    numbers.add(name)
        return frozenset(numbers)

    def _number(self, node: "Node", numbers: AbstractSet[str]) -> bool:
        text = source(node, self._line)
        match node.type:
            case "number" | "word" | "variable_name":
                return _NUMBER.fullmatch(text) is not None
            case "arithmetic_expansion":
                return True
            case "brace_expression":
                return all(self._number(each, numbers) for each in node.named_children)
            case "string":
                parts = node.named_children
                return len(parts) == 1 and (
                    _NUMBER.fullmatch(text[1:-1]) is not None
                    or (
                        text == f'"{source(parts[0], self._line)}"'
                        and self._number(parts[0], numbers)
                    )
                )
            case "simple_expansion" | "expansion":
                name = name_of(node, self._line)
                return is_length(node) or (name in numbers and text.strip("${}") == name)
            case "command_substitution":
                return self._prints_a_number(node)
            case _:
                return False

    def _prints_a_number(self, node: "Node") -> bool:
        inner = node.named_children
        if len(inner) != 1:
            return False
        last = inner[0]
        while last.type in ("pipeline", "redirected_statement"):
            last = last.named_children[-1 if last.type == "pipeline" else 0]
        if last.type != "command":
            return False
        words = [spelled(each, self._line) for each in last.named_children]
        name, rest = words[0].text, words[1:]
        if name in self.functions or not all(word.known for word in words):
            return False
        texts = [word.text for word in rest]
        match name:
            case "wc":
                return all(map(_COUNTS.fullmatch, texts)) and len(texts) == 1
            case "date":
                return all(map(_DATE.fullmatch, texts)) and bool(texts)
            case "id":
                return texts in (["-u"], ["-g"])
            case "nproc":
                return not texts
            case "seq":
                return all(map(_NUMBER.fullmatch, texts))
            case _:
                return False


def walk(node: "Node") -> Iterator["Node"]:
    """A node and everything below it."""
    yield node
    for child in node.children:
        yield from walk(child)


def name_of(expansion: "Node", line: str) -> str:
    """The variable an expansion is about."""
    for child in expansion.named_children:
        if child.type in ("variable_name", "special_variable_name", "subscript"):
            return source(child, line).partition("[")[0]
    return ""


def is_length(expansion: "Node") -> bool:
    """`${#name}`: a number, whatever the name holds."""
    tokens = [child.type for child in expansion.children[:2]]
    return tokens == ["${", "#"] and expansion.child_count == 4


def is_arithmetic(node: "Node") -> bool:
    """Whether all of a node is an expression; of a `for ((…))` its head is."""
    opens = node.child_count > 0 and node.children[0].type == "(("
    return node.type in _ARITHMETIC or (
        node.type in ("compound_statement", "test_command") and opens
    )
