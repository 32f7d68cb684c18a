"""A run that reaches a limit ends with a code of its own."""

from pathlib import Path
from typing import Any

import pytest

from stringd.runs.guard.budget import BudgetError, RunBudget, RunLimits
from stringd.runs.models.port import Price
from stringd.wire.runs.types import Usage
from tests.requirements import proves
from tests.runs.support import Json, RunsServer, Watcher, scripted, sequential, serving, strategy

pytestmark = pytest.mark.anyio

CALL = {"tools": [{"name": "todo_get", "args": {}}]}


async def run(server: RunsServer, watcher: Watcher, agent: Json, **budget: Any) -> Json:
    source = strategy(sequential("a"), a={**agent, "tools": ["todo_get"]})
    path = str(server.strategy(source))
    await watcher.ask("prepare_run", runId="r", strategyPath=path, budget=budget)
    await watcher.send("start_run", runId="r", input="one two three")
    return await watcher.ended()


@proves("RUN-49")
@pytest.mark.parametrize(
    ("agent", "budget", "text"),
    [
        (scripted("one two three four"), {"tokens": 3}, "tokens; its budget is 3"),
        (scripted(CALL, CALL, CALL, "x"), {"toolCalls": 2}, "made 2 tool calls"),
        (scripted({"text": "x", "delayMs": 60_000}), {"seconds": 0.05}, "took 0.05 s"),
    ],
)
async def test_a_limit_ends_the_run(
    server: RunsServer, watcher: Watcher, agent: Json, budget: Json, text: str
) -> None:
    ended = await run(server, watcher, agent, **budget)
    assert ended["error"]["code"] == "BUDGET_EXCEEDED"
    assert text in ended["error"]["message"]
    last = server.timeline("r")[-1]
    assert (last["status"], last["error"]["code"]) == ("error", "BUDGET_EXCEEDED")


async def test_within_its_budget_a_run_completes(server: RunsServer, watcher: Watcher) -> None:
    ended = await run(server, watcher, scripted(CALL, "x"), tokens=1000, toolCalls=1, seconds=60)
    assert ended["type"] == "strategy_completed"


async def test_who_watches_a_run_is_told_its_limits(server: RunsServer, watcher: Watcher) -> None:
    path = str(server.strategy(strategy(sequential("a"), a=scripted("x"))))
    await watcher.ask("prepare_run", runId="r", strategyPath=path, budget={"tokens": 9})
    await watcher.send("start_run", runId="r", input="")
    started = (await watcher.until("strategy_started"))[-1]
    assert started["budget"] == {"tokens": 9}


@proves("RUN-49")
async def test_the_tokens_of_a_compaction_count(server: RunsServer, watcher: Watcher) -> None:
    usage = {"promptTokens": 1, "completionTokens": 1}
    summary = {"text": "short", "usage": {"promptTokens": 90, "completionTokens": 5}}
    replies = [{"text": text, "usage": usage} for text in "xyz"]
    context = {"compaction": {"keepRecent": 1, "threshold": 1}}
    # The fourth entry answers twice: the compaction before the fourth call, and that call.
    agent = {**scripted(*replies, summary), "context": context}
    source = strategy(sequential("a", "a", "a", "a"), a=agent)
    path = str(server.strategy(source))
    for run_id, tokens in (("r1", 6 + 95 + 94), ("r2", 6 + 95 + 95)):
        await watcher.ask("prepare_run", runId=run_id, strategyPath=path, budget={"tokens": tokens})
        await watcher.send("start_run", runId=run_id, input="q")
        ended = await watcher.ended()
        assert (ended.get("error", {}).get("code") == "BUDGET_EXCEEDED") is (run_id == "r1"), ended
    assert ended["usage"] == {"promptTokens": 93, "completionTokens": 8}


async def test_the_owners_limit_holds_for_every_run(tmp_path: Path) -> None:
    async with serving(tmp_path, limits=RunLimits(tool_calls=1)) as server:
        ended = await run(server, await server.watcher(), scripted(CALL, CALL, "x"), toolCalls=9)
    assert ended["error"]["code"] == "BUDGET_EXCEEDED"


async def test_a_budget_that_makes_no_sense_is_refused(
    server: RunsServer, watcher: Watcher
) -> None:
    path = str(server.strategy(strategy(sequential("a"), a=scripted("x"))))
    answer = await watcher.ask("prepare_run", strategyPath=path, budget={"tokens": 0})
    assert answer["code"] == "VALIDATION_ERROR"


def test_cost_counts_models_with_a_known_price() -> None:
    budget = RunBudget(RunLimits(cost=0.01))
    budget.spend(Usage(prompt_tokens=1_000_000, completion_tokens=0), None)
    budget.spend(Usage(prompt_tokens=1000, completion_tokens=500), Price(2.0, 8.0))
    assert budget.cost == pytest.approx(0.006)
    with pytest.raises(BudgetError, match=r"cost \$0.0120; its budget is \$0.0100"):
        budget.spend(Usage(prompt_tokens=1000, completion_tokens=500), Price(2.0, 8.0))
