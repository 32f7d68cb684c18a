"""Shapes of plain JSON values, checked so that every problem is named at once.

A shape answers with issues instead of raising. An issue is *fatal* when the value is of the wrong
kind, and not when the kind is right but a bound or an extra key is wrong; a choice between shapes
uses the difference to blame the branch the author meant.
"""

from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple, Protocol

Path = tuple[str | int, ...]


class Issue(NamedTuple):
    """`inner` says why the branch the author most likely meant does not fit either.

    `about` is the path of a key that should not be there, when that is the problem.
    """

    path: Path
    problem: str
    fatal: bool = True
    inner: tuple["Issue", ...] = ()
    about: Path = ()

    def leaves(self) -> list["Issue"]:
        """The issues at the bottom: what to repair, without the choices around it."""
        return [leaf for issue in self.inner for leaf in issue.leaves() or [issue]]


class Shape(Protocol):
    """Anything that can say what is wrong with a value."""

    def check(self, value: object, path: Path = ()) -> list[Issue]: ...


def dotted(path: Path) -> str:
    """`("flow", "steps", 0)` as `flow.steps.0`."""
    return ".".join(map(str, path))


def kind(value: object) -> str:
    """The JSON name of a value's kind."""
    if value is None:
        return "null"
    if isinstance(value, bool):
        return "boolean"
    if isinstance(value, int | float):
        return "number"
    if isinstance(value, str):
        return "string"
    return "array" if isinstance(value, list | tuple) else "object"


def _expected(what: str, value: object, path: Path) -> list[Issue]:
    return [Issue(path, f"Expected {what}, received {kind(value)}")]


class Anything(NamedTuple):
    def check(self, value: object, path: Path = ()) -> list[Issue]:  # noqa: ARG002
        return []


class TextShape(NamedTuple):
    filled: bool = False

    def check(self, value: object, path: Path = ()) -> list[Issue]:
        if not isinstance(value, str):
            return _expected("string", value, path)
        if self.filled and not value:
            return [Issue(path, "String must contain at least 1 character(s)", fatal=False)]
        return []


class Flag(NamedTuple):
    def check(self, value: object, path: Path = ()) -> list[Issue]:
        return [] if isinstance(value, bool) else _expected("boolean", value, path)


class Number(NamedTuple):
    whole: bool = False
    above: float | None = None
    at_least: float | None = None

    def check(self, value: object, path: Path = ()) -> list[Issue]:
        if isinstance(value, bool) or not isinstance(value, int | float):
            return _expected("number", value, path)
        if self.whole and isinstance(value, float) and not value.is_integer():
            return [Issue(path, "Expected integer, received float", fatal=False)]
        if self.above is not None and not value > self.above:
            return [Issue(path, f"Number must be greater than {self.above:g}", fatal=False)]
        if self.at_least is not None and not value >= self.at_least:
            problem = f"Number must be greater than or equal to {self.at_least:g}"
            return [Issue(path, problem, fatal=False)]
        return []


class Literal(NamedTuple):
    expected: str

    def check(self, value: object, path: Path = ()) -> list[Issue]:
        if value == self.expected:
            return []
        return [Issue(path, f'Invalid literal value, expected "{self.expected}"')]


class OneOf(NamedTuple):
    choices: tuple[str, ...]

    def check(self, value: object, path: Path = ()) -> list[Issue]:
        if value in self.choices:
            return []
        wanted = " | ".join(f"'{choice}'" for choice in self.choices)
        if not isinstance(value, str):
            return _expected(wanted, value, path)
        return [Issue(path, f"Invalid enum value. Expected {wanted}, received '{value}'")]


class Matching(NamedTuple):
    """Text that a predicate accepts; `problem` says what the author should write instead."""

    accepts: Callable[[str], bool]
    problem: str
    fatal: bool = False

    def check(self, value: object, path: Path = ()) -> list[Issue]:
        if not isinstance(value, str):
            return _expected("string", value, path)
        return [] if self.accepts(value) else [Issue(path, self.problem, self.fatal)]


class Items(NamedTuple):
    item: Shape
    filled: bool = False

    def check(self, value: object, path: Path = ()) -> list[Issue]:
        if not isinstance(value, list | tuple):
            return _expected("array", value, path)
        issues = [
            issue
            for index, item in enumerate(value)
            for issue in self.item.check(item, (*path, index))
        ]
        if self.filled and not value:
            issues.append(Issue(path, "Array must contain at least 1 element(s)", fatal=False))
        return issues


class Entries(NamedTuple):
    """A map from any key to values of one shape."""

    value: Shape
    key: Shape = TextShape()

    def check(self, value: object, path: Path = ()) -> list[Issue]:
        if not isinstance(value, dict):
            return _expected("object", value, path)
        issues: list[Issue] = []
        for name, entry in value.items():
            issues += self.key.check(name, (*path, str(name)))
            issues += self.value.check(entry, (*path, str(name)))
        return issues


class Fields(NamedTuple):
    """An object with known keys. Strict objects name the keys they do not know."""

    required: Mapping[str, Shape]
    optional: Mapping[str, Shape] = {}
    strict: bool = True

    def check(self, value: object, path: Path = ()) -> list[Issue]:
        if not isinstance(value, dict):
            return _expected("object", value, path)
        issues = self._known(value, path)
        extra = [key for key in value if key not in self.required and key not in self.optional]
        if self.strict and extra:
            names = ", ".join(f"'{key}'" for key in extra)
            problem, first = f"Unrecognized key(s) in object: {names}", (*path, str(extra[0]))
            issues.append(Issue(path, problem, fatal=False, about=first))
        return issues

    def _known(self, value: Mapping[str, Any], path: Path) -> list[Issue]:
        issues: list[Issue] = []
        for name, shape in self.required.items():
            if name in value:
                issues += shape.check(value[name], (*path, name))
            else:
                issues.append(Issue((*path, name), "Required"))
        for name, shape in self.optional.items():
            if name in value:
                issues += shape.check(value[name], (*path, name))
        return issues


class Either(NamedTuple):
    """The first branch that fits; else the first whose problems are not fatal; else none fits.

    `closest` may pick the branch the author most likely meant, so that the answer can say why
    that one does not fit either.
    """

    branches: Sequence[Shape]
    closest: Callable[[object], int | None] = lambda _value: None

    def check(self, value: object, path: Path = ()) -> list[Issue]:
        found = [branch.check(value, path) for branch in self.branches]
        for issues in found:
            if not issues:
                return []
        for issues in found:
            if not any(issue.fatal for issue in issues):
                return issues
        meant = self.closest(value)
        inner = () if meant is None else tuple(found[meant])
        return [Issue(path, "Invalid input", inner=inner)]


class Lazy(NamedTuple):
    """A shape that refers to itself."""

    shape: Callable[[], Shape]

    def check(self, value: object, path: Path = ()) -> list[Issue]:
        return self.shape().check(value, path)
