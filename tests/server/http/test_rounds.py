"""Large work takes turns: one piece each time the loop comes round."""

import asyncio

import pytest

from stringd.server.http.rounds import Rounds

pytestmark = pytest.mark.anyio


async def test_one_piece_is_done_in_each_turn_and_in_order() -> None:
    loop = asyncio.get_running_loop()
    rounds = Rounds(loop)
    seen: list[str] = []
    for name in "abc":
        rounds.add(lambda name=name: seen.append(name))  # type: ignore[misc]
    for number in range(3):
        loop.call_soon(seen.append, str(number))
        await asyncio.sleep(0)
    assert seen == ["a", "0", "b", "1", "c", "2"]


async def test_work_that_fails_does_not_stop_the_rest() -> None:
    loop = asyncio.get_running_loop()
    failures: list[object] = []
    loop.set_exception_handler(lambda _loop, context: failures.append(context["exception"]))
    rounds = Rounds(loop)
    done = asyncio.Event()
    rounds.add(lambda: [][0])
    rounds.add(done.set)
    await done.wait()
    assert [type(failure) for failure in failures] == [IndexError]
    loop.set_exception_handler(None)
