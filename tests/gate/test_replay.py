import threading

import pytest
from hypothesis import given
from hypothesis import strategies as st

from stringd.gate.errors import BusyError, RefusalError
from stringd.gate.replay import ReplayMemory
from stringd.gate.validate import MAX_AGE_SECONDS
from tests.gate.support import PATIENCE
from tests.requirements import proves


@proves("GATE-REPLAY-01")
def test_an_id_is_admitted_once() -> None:
    memory = ReplayMemory(max_future=5)
    memory.admit("a", 0)
    with pytest.raises(RefusalError, match="duplicate request id: a"):
        memory.admit("a", 1)


@given(st.integers(min_value=0, max_value=60), st.floats(min_value=0, max_value=1))
@proves("GATE-REPLAY-01")
def test_no_stamp_outlives_the_memory_of_its_id(max_future: int, part: float) -> None:
    """Bytes stamped as far ahead as allowed stay fresh for max_future + max age seconds."""
    memory = ReplayMemory(max_future)
    memory.admit("a", 0.0)
    with pytest.raises(RefusalError):
        memory.admit("a", part * (max_future + MAX_AGE_SECONDS + 1))


def test_an_id_is_free_again_only_when_strictly_older_than_the_retention() -> None:
    memory = ReplayMemory(max_future=5)
    assert memory.retention >= 120
    memory.admit("a", 0.0)
    with pytest.raises(RefusalError):
        memory.admit("a", float(memory.retention))
    memory.admit("a", memory.retention + 0.001)


def test_the_empty_id_is_remembered_like_any_other() -> None:
    memory = ReplayMemory(max_future=5)
    memory.admit("", 0)
    with pytest.raises(RefusalError):
        memory.admit("", 0)


def test_a_full_memory_refuses_new_work_and_forgets_nothing() -> None:
    memory = ReplayMemory(max_future=5, capacity=2)
    memory.admit("a", 0)
    memory.admit("b", 0)
    with pytest.raises(BusyError):
        memory.admit("c", 1)
    with pytest.raises(RefusalError, match="duplicate"):
        memory.admit("a", 1)
    memory.admit("c", memory.retention + 1)
    assert len(memory) == 1


def test_of_many_at_once_exactly_one_is_admitted() -> None:
    memory = ReplayMemory(max_future=5)
    barrier = threading.Barrier(8)
    admitted: list[int] = []

    def race(number: int) -> None:
        barrier.wait(PATIENCE)
        try:
            memory.admit("same", 0)
        except RefusalError:
            return
        admitted.append(number)

    threads = [threading.Thread(target=race, args=(number,)) for number in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(PATIENCE)
    assert len(admitted) == 1
