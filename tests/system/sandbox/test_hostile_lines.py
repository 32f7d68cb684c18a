"""Lines that no agent should run, run for real behind walls: nothing outside changes.

Only as an account that owns nothing but the canaries, so that not even a fault of the walls does
harm, and only after a harmless line has shown in the same sandbox that the walls hold.
"""

import os
import shlex
from collections.abc import Iterator, Sequence
from dataclasses import replace

import pytest

from tests.runs.guard.shell.test_dangers import ASKED, DENIED
from tests.system.sandbox import hostile
from tests.system.sandbox.cage import SECRET, Cage, Kind, cage, limits, snapshot

BATCH = 20
LINES = [*DENIED, *ASKED, *hostile.lines()]
# They keep the processor busy for as long as they are let.
BOMBS = (":()", "b()", "function b", "yes ", "dd ", "dd\t")
SOME = [line for line in LINES if not any(word in line for word in BOMBS)][::29]
SECONDS = 5


@pytest.fixture(scope="module", params=["bubblewrap", "landlock"])
def caged(request: pytest.FixtureRequest) -> Iterator[Cage]:
    if os.geteuid() != 0:
        pytest.skip("only root can act as another account")
    with cage(Kind(request.param, "nobody")) as found:
        if isinstance(found, str):
            pytest.skip(found)
        yield found


def test_there_are_as_many_as_were_tried_from_outside() -> None:
    assert len(set(LINES)) >= 428 + 66


def test_some_hostile_lines_change_nothing_outside(caged: Cage) -> None:
    try_all(caged, SOME)


@pytest.mark.soak
@pytest.mark.parametrize("start", range(0, len(LINES), BATCH))
def test_hostile_lines_change_nothing_outside(caged: Cage, start: int) -> None:
    try_all(caged, LINES[start : start + BATCH])


def try_all(caged: Cage, lines: Sequence[str]) -> None:
    before = snapshot(caged)
    hold_or_stop(caged, before)
    spec = replace(
        caged.spec(), writable=(), limits=limits(processes=64, memory=1 << 30, cpu_seconds=20)
    )
    ran = 0
    for line in lines:
        # Each in a shell of its own, which may kill itself, wait for ever or leave jobs behind.
        bounded = f"ulimit -f 8192; timeout -k 1 {SECONDS} bash -c {shlex.quote(line)} </dev/null"
        done = caged.run(f"{bounded}; echo over", spec)
        ran += "over" in done.output
        assert SECRET not in done.output, line
        assert snapshot(caged) == before, line
    # That each began is known. An effect may end the whole sandbox, in all of its spellings.
    assert ran >= len(lines) // 4


def hold_or_stop(caged: Cage, before: dict[str, tuple[object, ...]]) -> None:
    """Fail before the first hostile line if a harmless one gets out, or is another account's."""
    done = caged.run('touch "$OUT/canary" "$HOME/canary" mine; cat "$HOME/.ssh/id_ed25519"; id -u')
    assert snapshot(caged) == before, "the walls do not hold"
    assert SECRET not in done.output
    assert done.output.split()[-1] not in ("0", str(os.getuid()))
