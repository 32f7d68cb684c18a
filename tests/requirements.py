"""The promises of the protocols, sentence by sentence.

Each `Requirement` has a stable id. A test names the ids it proves with `@proves("HTTP-01")`;
`tests/test_requirements.py` fails when an id has no test or a test names an unknown id.
A room keeps its own list in `tests/<room>/requirements.py`; `every()` collects them.
"""

from importlib import import_module
from pathlib import Path
from typing import NamedTuple

import pytest


class Requirement(NamedTuple):
    id: str
    sentence: str
    source: str


def proves(*ids: str) -> pytest.MarkDecorator:
    """Mark a test with the ids of the requirements it proves."""
    return pytest.mark.proves(*ids)


def every() -> list[Requirement]:
    """The requirements of every room."""
    tests = Path(__file__).parent
    found: list[Requirement] = []
    for path in sorted(tests.rglob("*/requirements.py")):
        parts = path.relative_to(tests.parent).with_suffix("").parts
        found += import_module(".".join(parts)).ALL
    return found
