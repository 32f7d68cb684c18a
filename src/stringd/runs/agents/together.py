"""Work done side by side, as many pieces at once as allowed, some after others."""

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from typing import NamedTuple

from stringd.runs.tools.claims import Claims


class Work(NamedTuple):
    """`begin` is called once everything in the way of `claims` has ended."""

    claims: Claims
    begin: Callable[[], Awaitable[None]]


async def together(works: Sequence[Work], most: int) -> None:
    """Do all of them, at most so many at once; the first failure ends the others and is raised."""
    if len(works) == 1:
        await works[0].begin()
        return
    slots, tasks = asyncio.Semaphore(most), list[asyncio.Task[None]]()

    async def one(number: int) -> None:
        claims = works[number].claims
        ahead = [tasks[n] for n in range(number) if claims.after(works[n].claims)]
        if ahead:
            await asyncio.wait(ahead)
        async with slots:
            await works[number].begin()

    tasks += [asyncio.create_task(one(number)) for number in range(len(works))]
    try:
        if tasks:
            await asyncio.wait(tasks, return_when=asyncio.FIRST_EXCEPTION)
    finally:
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
    for task in tasks:
        if not task.cancelled() and (error := task.exception()) is not None:
            raise error
