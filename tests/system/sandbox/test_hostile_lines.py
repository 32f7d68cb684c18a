"""Lines that no agent should run, run for real behind walls: nothing outside changes.

Only as an account that owns nothing but the canaries, so that not even a fault of the walls does
harm; lines that fill the machine's memory or process table are left to the tests of limits.
"""

import os
import shlex
from collections.abc import Iterator
from dataclasses import replace

import pytest

from tests.runs.guard.shell.test_dangers import ASKED, DENIED
from tests.system.sandbox.cage import Cage, Kind, cage, limits, snapshot

BATCH = 20
FILLS = ("dd ", "dd\t", "b()", ":()", "function b", "yes ")
LINES = [line for line in (*DENIED, *ASKED) if not any(word in line for word in FILLS)]


@pytest.fixture(scope="module")
def caged() -> Iterator[Cage]:
    if os.geteuid() != 0:
        pytest.skip("only root can act as another account")
    with cage(Kind("bubblewrap", "nobody")) as found:
        if isinstance(found, str):
            pytest.skip(found)
        yield found


@pytest.mark.soak
@pytest.mark.parametrize("start", range(0, len(LINES), BATCH))
def test_hostile_lines_change_nothing_outside(caged: Cage, start: int) -> None:
    before = snapshot(caged)
    spec = replace(caged.spec(), writable=(), limits=limits(cpu_seconds=20))
    ran = 0
    for line in LINES[start : start + BATCH]:
        # Each in a shell of its own, which may kill itself, wait for ever or leave jobs behind.
        done = caged.run(f"timeout -k 1 5 bash -c {shlex.quote(line)} </dev/null; echo over", spec)
        ran += "over" in done.output
    assert snapshot(caged) == before
    # A line may end the whole sandbox; most must have been tried to their end.
    assert ran >= len(LINES[start : start + BATCH]) // 2
