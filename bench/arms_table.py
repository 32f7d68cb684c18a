"""The five arms side by side: a Markdown table for each vocabulary."""

from collections.abc import Iterator, Sequence

from bench.arms import Arm, Count, RealTask, RealTool, code, conversation, cost, deferred, eager
from bench.arms import skill as skill_arm
from bench.arms import string as string_arm
from bench.servers import Recorded

FIFTY = 50


def arms_of(tools: Sequence[RealTool], recorded: Recorded, standing: str) -> list[Arm]:
    ours = string_arm(standing, recorded.discoveries)
    return [ours, eager(tools), deferred(tools), skill_arm(tools), code(tools)]


def fifty(tools: Sequence[RealTool], tasks: Sequence[RealTask]) -> list[RealTool]:
    """Fifty tools, those that the tasks use among them."""
    needed = {(step.server, step.tool) for task in tasks for step in task.steps}
    first = [tool for tool in tools if (tool.server, tool.name) in needed]
    return [*first, *(tool for tool in tools if tool not in first)][:FIFTY]


def table(count: Count, vocabulary: str, recorded: Recorded, standing: str) -> str:
    """What each way costs, in tokens of one vocabulary."""
    arms = arms_of(recorded.tools, recorded, standing)
    names = [arm.name for arm in arms]
    lines = [
        f"### {vocabulary}",
        "",
        f"| what | {' | '.join(names)} |",
        f"|---|{'--:|' * len(names)}",
    ]
    lines += [
        f"| {what} | {' | '.join(f'{each:.0f}' for each in values)} |"
        for what, values in _rows(count, arms, recorded, standing)
    ]
    return "\n".join([*lines, ""])


def _rows(
    count: Count, arms: list[Arm], recorded: Recorded, standing: str
) -> Iterator[tuple[str, list[float]]]:
    tasks = recorded.tasks
    servers = len(recorded.versions)
    what = f"standing: {servers} servers, {len(recorded.tools)} tools"
    yield what, [count(arm.standing) for arm in arms]
    alone = [
        [cost(count, arm.standing, conversation(arm, [each])) for each in tasks] for arm in arms
    ]
    yield (
        "one task cold: context at its end, mean of ten",
        [sum(each.context for each in costs) / len(costs) for costs in alone],
    )
    yield (
        "ten tasks warm: calls and answers alone",
        [cost(count, "", conversation(arm, tasks, known=True)).context for arm in arms],
    )
    whole = [cost(count, arm.standing, conversation(arm, tasks)) for arm in arms]
    yield "ten tasks in one conversation: context at its end", [each.context for each in whole]
    yield "the same: input read over all turns, nothing cached", [each.read for each in whole]
    yield (
        "the same, what was read before at a tenth",
        [each.read_cached for each in whole],
    )
    two = [tasks[0], tasks[len(tasks) // 2 - 1]]
    few = arms_of(fifty(recorded.tools, two), recorded, standing)
    used = [cost(count, arm.standing, conversation(arm, two)) for arm in few]
    yield "fifty tools installed, two used: context at its end", [each.context for each in used]
    yield "the same: input read over all turns, nothing cached", [each.read for each in used]
    yield "the same, what was read before at a tenth", [each.read_cached for each in used]
