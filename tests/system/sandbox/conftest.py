"""Each test with a cage runs behind every kind of walls, and as an ordinary account too."""

from collections.abc import Iterator

import pytest

from tests.system.sandbox.cage import Cage, Kind, cage, kinds


@pytest.fixture(params=kinds(), ids=lambda kind: f"{kind.walls}-{kind.account}")
def caged(request: pytest.FixtureRequest) -> Iterator[Cage]:
    kind: Kind = request.param
    with cage(kind) as found:
        if isinstance(found, str):
            pytest.skip(found)
        yield found
