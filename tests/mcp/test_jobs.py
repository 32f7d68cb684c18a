import asyncio

import pytest

from stringd.mcp import jobs
from stringd.mcp.jobs import Jobs
from stringd.mcp.outcome import ToolError, ToolOutcome, said
from tests.support.daemon import WAIT_SECONDS

pytestmark = pytest.mark.anyio


async def nobody(_seconds: float, _message: str) -> None:
    """A caller that asked for no progress."""


async def when(event: asyncio.Event, text: str = "done") -> ToolOutcome:
    await event.wait()
    return said(text)


def handle(outcome: ToolOutcome) -> str:
    return outcome.parts[0].split('"')[1]


async def test_quick_work_answers_itself() -> None:
    event = asyncio.Event()
    event.set()
    assert await Jobs(60).run("u", "work", when(event), nobody) == said("done")


async def test_work_goes_on_while_nobody_waits() -> None:
    held, event = Jobs(0.001), asyncio.Event()
    first = await held.run("u", "work", when(event), nobody)
    assert "do not start it again" in first.parts[0]
    event.set()
    await asyncio.sleep(0)
    assert await held.resume("u", handle(first), nobody) == said("done")


async def test_a_caller_that_leaves_before_it_has_a_handle_ends_the_work() -> None:
    held, started, ended = Jobs(60), asyncio.Event(), asyncio.Event()

    async def work() -> ToolOutcome:
        started.set()
        try:
            return await when(asyncio.Event())
        finally:
            ended.set()

    call = asyncio.create_task(held.run("u", "work", work(), nobody))
    await started.wait()
    call.cancel()
    async with asyncio.timeout(WAIT_SECONDS):
        await ended.wait()


async def test_a_caller_that_leaves_while_it_waits_again_does_not() -> None:
    held, event = Jobs(0.001), asyncio.Event()
    left = handle(await held.run("u", "work", when(event), nobody))
    held._hold = 60
    waiting = asyncio.create_task(held.resume("u", left, nobody))
    await asyncio.sleep(0)
    waiting.cancel()
    await asyncio.gather(waiting, return_exceptions=True)
    event.set()
    assert await held.resume("u", left, nobody) == said("done")


async def test_a_refusal_found_late_is_an_error_like_an_early_one() -> None:
    event = asyncio.Event()

    async def refuse() -> ToolOutcome:
        await event.wait()
        raise ToolError("not like this")

    held = Jobs(0.001)
    left = handle(await held.run("u", "work", refuse(), nobody))
    event.set()
    held._hold = 60
    outcome = await held.resume("u", left, nobody)
    assert outcome == ToolOutcome(("not like this",), is_error=True)


async def test_only_so_many_finished_results_are_kept(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(jobs, "MAX_FINISHED", 2)
    held, event = Jobs(0.001), asyncio.Event()
    handles = [handle(await held.run("u", "work", when(event), nobody)) for _ in range(2)]
    event.set()
    held._hold = 60
    for each in handles:
        assert await held.resume("u", each, nobody) == said("done")
    held._hold = 0.001
    handles.append(handle(await held.run("u", "work", when(asyncio.Event()), nobody)))
    with pytest.raises(ToolError, match="look at the state"):
        await held.resume("u", handles[0], nobody)
    assert await held.resume("u", handles[1], nobody) == said("done")
    await held.close()


async def test_closing_ends_what_is_under_way() -> None:
    held = Jobs(0.001)
    left = handle(await held.run("u", "work", when(asyncio.Event()), nobody))
    await held.close()
    assert (await held.resume("u", left, nobody)).is_error
