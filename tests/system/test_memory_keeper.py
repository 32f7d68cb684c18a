"""Memory goes back to the system after a flood, without trying too often."""

import pytest

from stringd.system import memory
from stringd.system.memory import LIGHT_LOAD, MemoryKeeper, resident_bytes, trim


class Machine:
    """How much is resident, and what is left of it after giving back."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.resident: int | None = 100
        self.in_use = 100
        self.attempts = self.collections = 0
        self.seconds = 0.0
        monkeypatch.setattr(memory, "resident_bytes", lambda: self.resident)
        monkeypatch.setattr(memory, "trim", self._give_back)
        monkeypatch.setattr(memory, "collection", self._collect)

    def _give_back(self) -> None:
        self.attempts += 1
        self.resident = self.in_use

    def _collect(self) -> float:
        self.collections += 1
        return self.seconds


@pytest.fixture
def machine(monkeypatch: pytest.MonkeyPatch) -> Machine:
    return Machine(monkeypatch)


@pytest.mark.anyio
async def test_nothing_is_done_while_nothing_has_grown(machine: Machine) -> None:
    keeper = MemoryKeeper()
    for _ in range(10):
        await keeper.look(0)
    assert machine.attempts == 0


@pytest.mark.anyio
async def test_what_a_flood_took_is_given_back(machine: Machine) -> None:
    keeper = MemoryKeeper()
    await keeper.look(0)
    machine.resident = 500
    await keeper.look(0)
    assert (machine.attempts, machine.resident) == (1, 100)


@pytest.mark.anyio
async def test_memory_in_use_is_tried_less_and_less_often(machine: Machine) -> None:
    keeper = MemoryKeeper()
    await keeper.look(0)
    machine.resident = machine.in_use = 500
    for _ in range(100):
        await keeper.look(400)
    assert machine.attempts < 10


@pytest.mark.anyio
async def test_it_is_tried_at_once_when_the_load_is_gone(machine: Machine) -> None:
    keeper = MemoryKeeper()
    await keeper.look(0)
    machine.resident = machine.in_use = 500
    for _ in range(100):
        await keeper.look(400)
    before, machine.in_use = machine.attempts, 100
    await keeper.look(0)
    assert (machine.attempts, machine.resident) == (before + 1, 100)


@pytest.mark.anyio
async def test_a_system_that_does_not_say_is_left_alone(machine: Machine) -> None:
    machine.resident = None
    await MemoryKeeper().look(0)
    assert machine.attempts == 0


@pytest.mark.anyio
async def test_a_collection_that_took_long_waits_until_the_load_is_gone(machine: Machine) -> None:
    keeper = MemoryKeeper()
    await keeper.look(0)
    machine.resident = machine.in_use = 500
    machine.seconds = 1.0
    for _ in range(100):
        await keeper.look(LIGHT_LOAD + 1)
    assert (machine.collections, machine.attempts > 1) == (1, True)
    await keeper.look(0)
    assert machine.collections == 2


def test_this_system_says_how_much_there_is() -> None:
    before = resident_bytes()
    trim()
    assert before is None or before > 1 << 20
