"""Places of a line, other than the words of its commands, where a value would not be data.

Expressions, subscripts, names, patterns, expansions without quotes. A node of a kind that is not
known here may not hold a value.
"""

import re
from collections.abc import Iterable, Sequence
from enum import Enum, auto
from typing import TYPE_CHECKING, Final

from stringd.actions.holes import refusals
from stringd.actions.holes.refusals import Finding, HoleDanger
from stringd.actions.holes.sources import VALUE_PREFIX, Carried, Sources, of_callers
from stringd.actions.holes.variables import (
    IDENTIFIER,
    Variables,
    is_arithmetic,
    is_length,
    name_of,
    walk,
)
from stringd.formats.shell.words import source

if TYPE_CHECKING:
    from tree_sitter import Node

_INTEGERS: Final = frozenset(
    "RANDOM SRANDOM SECONDS LINENO HISTCMD OPTIND BASHPID PPID UID EUID EPOCHSECONDS".split()  # noqa: SIM905
)
_STEERING: Final = re.compile(
    r"(LD_|DYLD_|BASH|GCONV|PYTHON|PERL|RUBY|NODE_|JAVA_|JDK_|_JAVA|GIT_|SSH_|LESS|MAN|RSYNC_|TAR_|"
    r"PIP_|NPM_|npm_|CARGO|RUST|MAKE|DOCKER_|XDG_|DBUS_|GNUPG|PROMPT).*|"
    r".*(PAGER|EDITOR|VISUAL|BROWSER|_COMMAND|_OPTIONS|_OPTS|FLAGS|_RSH|ASKPASS)|"
    r"PATH|ENV|IFS|PS\d|SHELLOPTS|CDPATH|GLOBIGNORE|FIGNORE|HOME|SHELL|TERM|TERMINFO|TERMCAP|"
    r"INPUTRC|EXECIGNORE|POSIXLY_CORRECT|ZDOTDIR|FPATH"
)
_OPAQUE: Final = frozenset(("raw_string", "ansi_c_string", "comment", "heredoc_start"))
_QUOTING: Final = frozenset(("string", "translated_string", "heredoc_body"))
_STATEMENTS: Final = frozenset(
    "program list pipeline subshell redirected_statement command command_name do_group "  # noqa: SIM905
    "variable_assignments negated_command if_statement elif_clause else_clause while_statement "
    "compound_statement function_definition heredoc_redirect process_substitution".split()
)
_DEFAULTS: Final = frozenset((":-", "-", ":+", "+", ":=", "=", ":?", "?"))
_TRANSFORMS: Final = frozenset("QULu")
_FILE_TESTS: Final = frozenset(f"-{letter}" for letter in "nzefdrwxsLhbcpSgukOGNa")
_NUMBER_TESTS: Final = frozenset(("-eq", "-ne", "-lt", "-le", "-gt", "-ge"))
_NAME_TESTS: Final = frozenset(("-v", "-R"))
_PATTERN_TESTS: Final = frozenset(("==", "=", "!=", "=~"))
_TEST_PARTS: Final = frozenset(
    ("unary_expression", "binary_expression", "parenthesized_expression")
)
_LENGTHS: Final = re.compile(r"\$\{#\w+(?:\[[@*]\])?\}|\$[#?$!]", re.ASCII)
_NAMES: Final = re.compile(r"(?<![\w#])[A-Za-z_]\w*", re.ASCII)
_POSITIONAL: Final = re.compile(r"\$\{?[\d@*]", re.ASCII)
_INDEX: Final = re.compile(r"\[(.*?)\]\+?=", re.DOTALL)
_PLAIN_FLAGS: Final = re.compile(r"-[xrgp]+|--")
_EXPANDED: Final = re.compile(r"\$\{?(\w+)", re.ASCII)
_NOT_EXPANDED: Final = re.compile(r"\\.|\"\$\{\w+\}\"", re.ASCII | re.DOTALL)


def steers(name: str) -> bool:
    """Whether a variable decides what code programs run, or how the shell reads."""
    return _STEERING.fullmatch(name) is not None


def holds_text(name: str) -> bool:
    """Whether a variable may hold any text: bash evaluates some, and obeys others."""
    return name not in _INTEGERS and not steers(name)


class How(Enum):
    """What the shell does with an expansion that has no quotes of its own."""

    SPLIT = auto()
    VALUE = auto()
    QUOTED = auto()
    PATTERN = auto()


_BY_HOW: Final = {How.SPLIT: refusals.UNQUOTED, How.PATTERN: refusals.PATTERN}


def find_in_line(
    root: "Node", line: str, variables: Variables, sources: Sources, callers: Carried
) -> list[Finding]:
    """What is wrong with a line; `callers` are the values its caller decides."""
    contexts = _Contexts(line, variables, sources, callers)
    contexts.visit(root, How.SPLIT)
    return contexts.findings


class _Contexts:
    def __init__(self, line: str, variables: Variables, sources: Sources, callers: Carried) -> None:
        self._line = line
        self._variables = variables
        self._sources = sources
        self._callers = callers
        self.findings: list[Finding] = []

    def visit(self, node: "Node", how: How) -> None:
        if is_arithmetic(node):
            self._expression_statement(node)
            return
        match node.type:
            case "simple_expansion" | "expansion":
                self._expansion(node, how)
            case "command_substitution":
                if danger := _BY_HOW.get(how):
                    self._refuse(self._of_callers(node), danger)
                self._all(node.children, How.SPLIT)
            case "variable_assignment":
                self._assignment(node)
            case "declaration_command":
                self._declaration(node)
            case "unset_command":
                self._names(node.named_children)
            case "test_command":
                self._test(node, double=self._source(node).startswith("[["))
            case "for_statement":
                name = self._source(node.named_children[0])
                values = node.named_children[1:]
                if not holds_text(name):
                    for value in values:
                        self._refuse(self._of_callers(value), refusals.VARIABLE_NAME)
                self._all(values, How.SPLIT)
            case "array":
                self._array(node)
            case "case_statement":
                self._case(node)
            case "file_redirect":
                self._redirect(node)
            case "herestring_redirect":
                self._all(node.children, How.VALUE)
            case "concatenation":
                self._all(node.children, how)
            case kind if kind in _QUOTING:
                self._all(node.children, How.QUOTED)
            case kind if kind in _STATEMENTS:
                self._all(node.children, How.SPLIT)
            case _ if node.child_count == 0 or node.type in _OPAQUE:
                self._leaf(node)
            case _:
                self._refuse(self._variables.carried_by(node), refusals.UNREADABLE)

    def _all(self, nodes: Iterable["Node"], how: How) -> None:
        for node in nodes:
            self.visit(node, how)

    def _refuse(self, carried: Carried, danger: HoleDanger) -> None:
        if carried:
            self.findings.append((carried, danger))

    def _of_callers(self, node: "Node") -> Carried:
        return of_callers(self._variables.carried_by(node), self._sources)

    def _source(self, node: "Node") -> str:
        return source(node, self._line)

    def _leaf(self, node: "Node") -> None:
        """Where the grammar sees no expansion, there must not be one."""
        text = self._source(node)
        if "$" not in text or not node.is_named:
            return
        if node.type in _OPAQUE:
            found = frozenset(
                name
                for name in self._callers
                if name.startswith(VALUE_PREFIX) and f"{{{name}}}" in text
            )
        else:
            names = _EXPANDED.findall(_NOT_EXPANDED.sub("", text))
            found = frozenset(held for name in names for held in self._variables.held(name))
        self._refuse(found, refusals.UNREADABLE)

    def _expansion(self, node: "Node", how: How) -> None:
        if is_length(node):
            return
        tokens = [child.type for child in node.children]
        if node.type == "expansion" and (tokens[1:2] == ["!"] or _transforms(tokens)):
            self._refuse(self._callers, refusals.INDIRECT)
        if danger := _BY_HOW.get(how):
            held = self._variables.held(name_of(node, self._line))
            self._refuse(of_callers(held, self._sources), danger)
        for child in node.named_children:
            if child.type == "subscript":
                self._subscript(child)
        if ":" in tokens:
            self._expressions(node.children[tokens.index(":") + 1 :])
            return
        takes_default = any(token in _DEFAULTS for token in tokens)
        self._all(node.named_children[1:], how if takes_default else How.PATTERN)

    def _subscript(self, node: "Node") -> None:
        index = [each for each in node.named_children[1:] if self._source(each) not in ("@", "*")]
        self._expressions(index)

    def _expression_statement(self, node: "Node") -> None:
        for child in node.children:
            if child.type in ("do_group", "compound_statement"):
                self.visit(child, How.SPLIT)
            else:
                self._expressions([child])

    def _expressions(self, nodes: Iterable["Node"]) -> None:
        """Numbers, and names that hold a number for certain, are all an expression may have."""
        for node in nodes:
            if node.is_named:
                self._refuse(self._variables.carried_by(node), refusals.EXPRESSION)
                if not self._is_clean(node):
                    self._refuse(self._callers, refusals.EXPRESSION)

    def _is_clean(self, node: "Node") -> bool:
        text, clean = _LENGTHS.sub(" ", self._source(node)), True
        for inner in walk(node):
            if inner.type in ("command_substitution", "process_substitution"):
                clean = clean and self._variables.is_number(inner)
                self.visit(inner, How.QUOTED)
                text = text.replace(self._source(inner), " ")
        return (
            clean
            and not _POSITIONAL.search(text)
            and all(self._is_number(name) for name in _NAMES.findall(text))
        )

    def _is_number(self, name: str) -> bool:
        if name in self._variables.numbers or name in _INTEGERS:
            return True
        # A name that nothing assigns counts as 0.
        return name not in self._variables.assigned and not name.isupper()

    def _assignment(self, node: "Node") -> None:
        target, *values = node.named_children
        name = self._source(target).partition("[")[0]
        if target.type == "subscript":
            self._subscript(target)
        carried = self._of_callers(node)
        if name in _INTEGERS:
            self._refuse(carried, refusals.EXPRESSION)
        elif steers(name):
            self._refuse(carried, refusals.STEERING)
        for value in values:
            self.visit(value, How.SPLIT if value.type == "array" else How.VALUE)

    def _array(self, node: "Node") -> None:
        for item in node.named_children:
            index = _INDEX.match(self._source(item))
            if index is not None and not index[1].isdigit():
                self._refuse(self._callers, refusals.EXPRESSION)
            self.visit(item, How.SPLIT)

    def _declaration(self, node: "Node") -> None:
        keyword = self._source(node.children[0])
        words = node.named_children
        flags = [self._source(word) for word in words if word.type == "word"]
        if any(re.fullmatch(r"-\w*[in]\w*", flag) for flag in flags):
            self._refuse(self._callers, refusals.DECLARED)
        plain = keyword not in ("declare", "typeset") and all(map(_PLAIN_FLAGS.fullmatch, flags))
        if not plain:
            self._refuse(self._of_callers(node), refusals.DECLARED)
        for word in words:
            if word.type == "variable_assignment":
                self._assignment(word)
            elif word.type not in ("word", "variable_name"):
                self._refuse(self._of_callers(word), refusals.VARIABLE_NAME)

    def _names(self, nodes: Iterable["Node"]) -> None:
        """Words that are names of variables."""
        for node in nodes:
            self._refuse(self._variables.carried_by(node), refusals.VARIABLE_NAME)
            text = self._source(node)
            if not text.startswith("-") and not IDENTIFIER.fullmatch(text):
                self._refuse(self._callers, refusals.VARIABLE_NAME)

    def _case(self, node: "Node") -> None:
        for child in node.children:
            if child.type != "case_item":
                self.visit(child, How.VALUE)
                continue
            patterns = child.children_by_field_name("value")
            inside = True
            for part in child.children:
                inside = inside and part.type != ")"
                self.visit(part, How.PATTERN if inside or part in patterns else How.SPLIT)

    def _redirect(self, node: "Node") -> None:
        operators = {child.type for child in node.children}
        if operators & {">&", "<&"}:
            self._refuse(self._of_callers(node), refusals.DESCRIPTOR)
        self._all(node.children, How.SPLIT)

    def _test(self, node: "Node", *, double: bool) -> None:
        """`[[ … ]]`, where `double`, and `[ … ]`."""
        outside = How.VALUE if double else How.SPLIT
        match node.type:
            case "unary_expression":
                operator, *operands = node.children
                self._unary(self._source(operator), operands, double=double)
            case "binary_expression":
                self._binary(node.children, double=double)
            case "parenthesized_expression" | "test_command":
                for child in node.children:
                    self._test(child, double=double)
            case _:
                self.visit(node, outside)

    def _unary(self, operator: str, operands: Sequence["Node"], *, double: bool) -> None:
        if operator in _NAME_TESTS:
            self._names(operands)
        elif operator != "!" and operator not in _FILE_TESTS:
            for each in operands:
                self._refuse(self._variables.carried_by(each), refusals.UNREADABLE)
        for each in operands:
            self._test(each, double=double)

    def _binary(self, parts: Sequence["Node"], *, double: bool) -> None:
        at = next(
            (
                n
                for n, part in enumerate(parts)
                if not part.is_named or part.type == "test_operator"
            ),
            0,
        )
        operator, left, right = self._source(parts[at]), parts[:at], parts[at + 1 :]
        if double and operator in _NUMBER_TESTS:
            self._expressions([*left, *right])
            return
        for each in left:
            self._test(each, double=double)
        for each in right:
            if double and operator in _PATTERN_TESTS and each.type not in _TEST_PARTS:
                self.visit(each, How.PATTERN)
            else:
                self._test(each, double=double)


def _transforms(tokens: Sequence[str]) -> bool:
    """Whether `${name@X}` expands what the name holds again."""
    if "@" not in tokens:
        return False
    letter = tokens[tokens.index("@") + 1 :][:1]
    return not letter or letter[0] not in _TRANSFORMS
