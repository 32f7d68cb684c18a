"""A human in the middle of a flow: yes, no with a reason, or an edit; it outlives the daemon."""

from pathlib import Path
from typing import Any

import pytest
import yaml

from stringd.wire.runs.approvals import StepApproval, read_approval
from tests.runs.support import Json, RunsServer, Watcher, scripted, strategy, watching
from tests.support.daemon import Daemon

pytestmark = pytest.mark.anyio

STEP = {
    "name": "Main",
    "type": "sequential",
    "steps": [
        {"agent": "planner"},
        {"approve": "Is the plan good?", "name": "check"},
        {"agent": "builder"},
    ],
}
CYCLE = {
    "name": "Main",
    "type": "sequential",
    "steps": [
        {
            "name": "Draft",
            "type": "cycle",
            "cycles": 3,
            "approve": "Is the plan good?",
            "steps": [{"agent": "planner"}],
        },
        {"agent": "builder"},
    ],
}


def source(flow: Json, *said: str) -> Json:
    return strategy(
        flow, planner=scripted(*(said or ("plan",))), builder=scripted("built {message}")
    )


async def answered(watcher: Watcher, text: str) -> Json:
    """The next question, answered."""
    asked = (await watcher.until("request_question"))[-1]
    await watcher.send(
        "question_response",
        runId=asked["runId"],
        questionRequestId=asked["requestId"],
        response=text,
    )
    return asked


async def begun(server: RunsServer, watcher: Watcher, flow: Json, *said: str) -> None:
    path = str(server.strategy(source(flow, *said)))
    await watcher.ask("prepare_run", runId="r", strategyPath=path)
    await watcher.send("start_run", runId="r", input="x")


@pytest.mark.parametrize("flow", [STEP, CYCLE], ids=["step", "cycle"])
@pytest.mark.parametrize(
    ("answer", "built"),
    [("yes", "built plan"), ("edit: another\nplan", "built another\nplan")],
)
async def test_a_yes_passes_what_was_read_and_an_edit_what_was_written(
    server: RunsServer, watcher: Watcher, flow: Json, answer: str, built: str
) -> None:
    await begun(server, watcher, flow)
    asked = await answered(watcher, answer)
    assert asked["toolName"] == "approve"
    assert asked["agentName"] == ("check" if flow is STEP else "Draft")
    assert asked["question"].startswith("Is the plan good?\n\nplan\n\nAnswer")
    assert (await watcher.ended())["result"] == built


async def test_a_no_ends_the_run_with_its_reason_and_a_resumed_one_asks_again(
    server: RunsServer, watcher: Watcher
) -> None:
    await begun(server, watcher, STEP)
    await answered(watcher, "no, too expensive")
    error = (await watcher.ended())["error"]
    assert error["code"] == "REJECTED"
    assert error["message"] == 'Step "check" failed: Not approved at "check": too expensive'
    await watcher.ask("prepare_run", runId="r")
    await watcher.send("continue_run", runId="r", input="", resume=True)
    await answered(watcher, "yes")
    assert (await watcher.ended())["result"] == "built plan"


async def test_in_a_cycle_a_no_is_what_the_next_round_works_on(
    server: RunsServer, watcher: Watcher
) -> None:
    await begun(server, watcher, CYCLE, "plan A", "plan B for {message}")
    await answered(watcher, "no: cheaper")
    asked = await answered(watcher, "yes")
    assert "plan B for cheaper" in asked["question"]
    assert (await watcher.ended())["result"] == "built plan B for cheaper"


async def test_a_cycle_that_is_never_approved_ends_the_run(
    server: RunsServer, watcher: Watcher
) -> None:
    await begun(server, watcher, CYCLE)
    for _ in range(3):
        await answered(watcher, "no")
    assert (await watcher.ended())["error"]["code"] == "REJECTED"


async def test_an_observer_is_heard_before_the_human_is_asked(
    server: RunsServer, watcher: Watcher
) -> None:
    cycle = {**CYCLE["steps"][0], "observer": "critic", "breakCycleSignals": ["fine"]}  # type: ignore[dict-item]
    flow = {**CYCLE, "steps": [cycle]}
    path = server.strategy(
        {
            **source(flow, "one", "two"),
            "agents": {**source(flow, "one", "two")["agents"], "critic": scripted("again", "fine")},
        }
    )
    await watcher.ask("prepare_run", runId="r", strategyPath=str(path))
    await watcher.send("start_run", runId="r", input="x")
    assert "two" in (await answered(watcher, "yes"))["question"]
    assert (await watcher.ended())["result"] == "two"


async def test_what_is_neither_yes_no_nor_edit_is_asked_again(
    server: RunsServer, watcher: Watcher
) -> None:
    await begun(server, watcher, STEP)
    await answered(watcher, "looks nice")
    again = await answered(watcher, "yes")
    assert again["question"].startswith("That was neither a yes, a no nor an edit.")
    assert (await watcher.ended())["result"] == "built plan"


async def resume(watcher: Watcher) -> None:
    await watcher.ask("prepare_run", runId="r")
    await watcher.send("continue_run", runId="r", input="", resume=True)


async def test_it_outlives_kills_and_stops_and_nothing_is_asked_twice(tmp_path: Path) -> None:
    path = tmp_path / "s.yaml"
    path.write_text(yaml.safe_dump(source(CYCLE, "plan A", "plan B for {message}")), "utf-8")
    daemon = Daemon(tmp_path)
    daemon.start()
    async with watching(daemon.port) as watcher:
        await watcher.ask("prepare_run", runId="r", strategyPath=str(path))
        await watcher.send("start_run", runId="r", input="x")
        first = (await watcher.until("request_question"))[-1]
        daemon.kill()
    daemon.start()
    async with watching(daemon.port) as watcher:
        # The answer is given before the run goes on.
        waiting = (await watcher.ask("get_timeline", runId="r"))["waiting"]
        assert [each["requestId"] for each in waiting] == [first["requestId"]]
        await watcher.send(
            "question_response", runId="r", questionRequestId=first["requestId"], response="no: x"
        )
        await resume(watcher)
        second = (await watcher.until("request_question"))[-1]
        assert "plan B for x" in second["question"]
        await watcher.send("stop_run", runId="r")
        await watcher.ended()
        await resume(watcher)
        third = (await watcher.until("request_question"))[-1]
        assert third["question"] == second["question"]
        daemon.kill()
    with daemon:
        async with watching(daemon.port) as watcher:
            await resume(watcher)
            asked = await answered(watcher, "yes")
            assert asked["requestId"] == third["requestId"]
            assert (await watcher.ended())["result"] == "built plan B for x"


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("yes", StepApproval("yes")),
        (" Y. ", StepApproval("yes")),
        ("ok", StepApproval("yes")),
        ("no", StepApproval("no")),
        ("No, because\nof this", StepApproval("no", "because\nof this")),
        ("edit: new", StepApproval("edit", "new")),
        ("EDIT\n# New\n\nplan\n", StepApproval("edit", "# New\n\nplan\n")),
        ("edit:", None),
        ("yes but shorter", None),
        ("", None),
        ("nope", None),
    ],
)
def test_answers_are_read_without_guessing(text: str, said: Any) -> None:
    assert read_approval(text) == said
