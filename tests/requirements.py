"""The promises of the protocols, sentence by sentence.

Each `Requirement` has a stable id. A test names the ids it proves with `@proves("HTTP-01")`;
`tests/test_requirements.py` fails when an id has no test or a test names an unknown id.
A room may keep its own list in `tests/<room>/requirements.py` and add it to `ALL` here.
"""

from typing import NamedTuple

import pytest


class Requirement(NamedTuple):
    id: str
    sentence: str
    source: str


def proves(*ids: str) -> pytest.MarkDecorator:
    """Mark a test with the ids of the requirements it proves."""
    return pytest.mark.proves(*ids)


ALL: list[Requirement] = []
