"""Every promise has a test, and every protocol test names the promises it proves."""

import ast
from collections import Counter
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import NamedTuple

from tests.requirements import every

TESTS = Path(__file__).parent


class Proof(NamedTuple):
    """A test and the ids it names."""

    path: Path
    name: str
    ids: tuple[str, ...]


def test_every_requirement_has_one_id_and_one_sentence() -> None:
    requirements = every()
    assert len(requirements) > 100
    repeated = [key for key, count in Counter(r.id for r in requirements).items() if count > 1]
    assert repeated == []
    assert [r.id for r in requirements if not r.sentence.strip() or not r.source.strip()] == []


def test_every_requirement_is_proved_by_a_test() -> None:
    proved = {key for test in _tests() for key in test.ids}
    assert [f"{r.id}: {r.sentence}" for r in every() if r.id not in proved] == []


def test_every_id_that_a_test_names_exists() -> None:
    known = {requirement.id for requirement in every()}
    unknown = [
        f"{test.path.name}::{test.name}: {key}"
        for test in _tests()
        for key in test.ids
        if key not in known
    ]
    assert unknown == []


def test_every_protocol_test_names_what_it_proves() -> None:
    protocol = [test for test in _tests() if test.path.name.startswith("test_protocol_")]
    assert len(protocol) > 50
    assert [f"{test.path.name}::{test.name}" for test in protocol if not test.ids] == []


@cache
def _tests() -> list[Proof]:
    return list(_found())


def _found() -> Iterator[Proof]:
    for path in sorted(TESTS.rglob("test_*.py")):
        tree = ast.parse(path.read_text(encoding="utf-8"))
        for node in ast.walk(tree):
            if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
                ids = tuple(key for mark in node.decorator_list for key in _ids(mark))
                if node.name.startswith("test_") or ids:
                    yield Proof(path, node.name, ids)


def _ids(mark: ast.expr) -> Iterator[str]:
    """The ids in `@proves(...)` or `@pytest.mark.proves(...)`."""
    if not isinstance(mark, ast.Call):
        return
    called = mark.func
    name = called.id if isinstance(called, ast.Name) else getattr(called, "attr", None)
    if name == "proves":
        for argument in mark.args:
            if isinstance(argument, ast.Constant) and isinstance(argument.value, str):
                yield argument.value
