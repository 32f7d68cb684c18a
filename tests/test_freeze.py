"""Reading text of others takes time in proportion to its size, whatever the text is.

The whole corpus runs in `python -m bench freeze`. Here every reader meets the texts that some
reader once froze on and has to come to an end. `make soak` also compares the processor time of two
sizes: only a ratio far beyond their own counts, measured three times.
"""

import gc
import time
from collections.abc import Iterator
from contextlib import contextmanager

import pytest

from tests.support.freeze.hostile import HOSTILE, Hostile
from tests.support.freeze.readers import IN_WORKERS, READERS, forget

# Both hold more than the longest beginning of a hostile text, so both are of one kind.
SMALL, LARGE = 8_000, 128_000
ENOUGH_TO_FREEZE = 32_000
# In proportion it would be 16, with the square 256.
TOO_MUCH = 96.0
# Below this a clock tells nothing.
SECONDS_THAT_COUNT = 0.05
KILLERS = (
    "action name of spaces",
    "backspaces at the end",
    "braces open",
    "chanflow of ampersands",
    "crossed markers",
    "fences of growing runs",
    "half links",
    "header of bad lines",
    "header of questions",
    "header of spaces",
    "heading of marks",
    "host of ligatures",
    "json of backslashes",
    "liquid of spaces",
    "nested brackets of links",
    "nested json lists",
    "nested template loops",
    "nested yaml lists",
    "spaces",
    "target of marks",
    "two carriage returns",
    "yaml of dashes",
)


def test_the_corpus_is_as_large_as_promised() -> None:
    assert len({each.name for each in HOSTILE}) == len(HOSTILE) >= 222
    assert len(READERS) >= 16
    assert set(KILLERS) <= {each.name for each in HOSTILE}


@pytest.mark.parametrize("name", [name for name in READERS if name not in IN_WORKERS])
def test_a_reader_comes_to_an_end(name: str) -> None:
    for hostile in HOSTILE:
        if hostile.name in KILLERS:
            forget()
            READERS[name](hostile.text(ENOUGH_TO_FREEZE))


@pytest.mark.soak
@pytest.mark.parametrize("name", [name for name in READERS if name not in IN_WORKERS])
def test_a_reader_takes_time_in_proportion(name: str) -> None:
    for hostile in HOSTILE:
        if hostile.name in KILLERS:
            ratio = min(_ratios(name, hostile))
            assert ratio < TOO_MUCH, f"{hostile.name}: {ratio:.0f} times as long for 16 times"


def _ratios(name: str, hostile: Hostile) -> Iterator[float]:
    """At most three, until one is in proportion."""
    small, large = hostile.text(SMALL), hostile.text(LARGE)
    with _no_collections():
        for _ in range(3):
            first = min(_seconds(name, small) for _ in range(3))
            second = _seconds(name, large)
            ratio = second / max(first, 1e-4)
            yield ratio
            if ratio < TOO_MUCH or second < SECONDS_THAT_COUNT:
                yield 0.0
                return


def _seconds(name: str, text: str) -> float:
    forget()
    started = time.thread_time()
    READERS[name](text)
    return time.thread_time() - started


@contextmanager
def _no_collections() -> Iterator[None]:
    """What the collector does depends on what else is there."""
    gc.disable()
    try:
        yield
    finally:
        gc.enable()
