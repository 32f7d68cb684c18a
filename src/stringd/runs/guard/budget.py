"""How much a run may use before it is stopped."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import TypeVar

from msgspec import UNSET, UnsetType

from stringd.runs.errors import ExecutionError
from stringd.runs.models.port import Price
from stringd.wire.runs.requests import Budget
from stringd.wire.runs.types import Usage


class BudgetError(ExecutionError):
    """The run has used up what it was given."""

    code = "BUDGET_EXCEEDED"


@dataclass(frozen=True)
class RunLimits:
    """None means no limit. `cost` is in US dollars and counts only models with a known price."""

    tokens: int | None = None
    tool_calls: int | None = None
    seconds: float | None = None
    cost: float | None = None

    def tightened(self, other: "RunLimits") -> "RunLimits":
        """The smaller of both limits, one by one."""
        return RunLimits(
            tokens=_least(self.tokens, other.tokens),
            tool_calls=_least(self.tool_calls, other.tool_calls),
            seconds=_least(self.seconds, other.seconds),
            cost=_least(self.cost, other.cost),
        )

    @property
    def told(self) -> Budget | UnsetType:
        """As clients are told of them; unset without any limit."""
        if self == RunLimits():
            return UNSET
        return Budget(
            tokens=UNSET if self.tokens is None else self.tokens,
            tool_calls=UNSET if self.tool_calls is None else self.tool_calls,
            seconds=UNSET if self.seconds is None else self.seconds,
            cost=UNSET if self.cost is None else self.cost,
        )


_N = TypeVar("_N", int, float)


def _least(one: _N | None, other: _N | None) -> _N | None:
    given = [each for each in (one, other) if each is not None]
    return min(given) if given else None


class RunBudget:
    """What one segment has used of its limits, launched strategies included."""

    def __init__(self, limits: RunLimits) -> None:
        self.limits = limits
        self.tokens = 0
        self.tool_calls = 0
        self.cost = 0.0

    def spend(self, usage: Usage, price: Price | None) -> None:
        """Count a round-trip. Raises `BudgetError` when it went over a limit."""
        self.tokens += usage.prompt_tokens + usage.completion_tokens
        if price is not None:
            spent = usage.prompt_tokens * price.input + usage.completion_tokens * price.output
            self.cost += spent / 1_000_000
        self.check()

    def check(self) -> None:
        """Raises `BudgetError` when a limit is reached."""
        limits = self.limits
        if limits.tokens is not None and self.tokens > limits.tokens:
            raise BudgetError(f"The run used {self.tokens} tokens; its budget is {limits.tokens}")
        if limits.cost is not None and self.cost > limits.cost:
            raise BudgetError(f"The run cost ${self.cost:.4f}; its budget is ${limits.cost:.4f}")

    def tool_call(self) -> None:
        """Count a tool call before it is made. Raises `BudgetError`."""
        limit = self.limits.tool_calls
        if limit is not None and self.tool_calls >= limit:
            raise BudgetError(f"The run made {limit} tool calls, which is its budget")
        self.tool_calls += 1

    @asynccontextmanager
    async def clock(self) -> AsyncIterator[None]:
        """Hold what runs inside to the wall-time limit. Raises `BudgetError`."""
        try:
            async with asyncio.timeout(self.limits.seconds) as limit:
                yield
        except TimeoutError:
            if not limit.expired():
                raise
            raise BudgetError(
                f"The run took {self.limits.seconds:g} s, which is its budget"
            ) from None
