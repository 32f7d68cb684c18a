"""Where a steering text arrives: at the next call, or in the middle of one that is under way."""

import pytest

from tests.requirements import proves
from tests.runs.support import Json, RunsServer, Watcher, scripted, sequential, strategy

pytestmark = pytest.mark.anyio

ASK = {"tools": [{"name": "ask_question", "args": {"question": "Go on?"}}]}
BLOCK = "\n\n<user_steering>\nbe brief\n</user_steering>"


def source(*questions: Json) -> Json:
    asker = {**scripted(*questions, "asked"), "tools": ["ask_question"]}
    return strategy(sequential("a", "b"), a=asker, b={"model": "demo/echo"})


async def asked(server: RunsServer, watcher: Watcher, *questions: Json) -> Json:
    """The question a fresh run stops at."""
    path = str(server.strategy(source(*questions)))
    await watcher.ask("prepare_run", runId="r", strategyPath=path)
    await watcher.send("start_run", runId="r", input="go")
    return (await watcher.until("request_question"))[-1]


async def answer(watcher: Watcher, question: Json, text: str = "yes") -> None:
    fields = {"questionRequestId": question["requestId"], "response": text}
    await watcher.send("question_response", runId="r", **fields)


async def steer(watcher: Watcher, **more: object) -> None:
    queued = await watcher.ask("steer_run", runId="r", text="be brief", **more)
    assert queued["type"] == "steer_queued"


async def resume(watcher: Watcher) -> None:
    await watcher.send("stop_run", runId="r")
    await watcher.ended()
    await watcher.ask("prepare_run", runId="r")
    await watcher.send("continue_run", runId="r", input="", resume=True)


def results(server: RunsServer, agent: str = "a") -> list[str]:
    """What the agent's model read as results of its tools."""
    [record] = [
        event["record"]
        for event in server.timeline("r")
        if event["type"] == "agent_call" and event["record"]["agentName"] == agent
    ]
    return [
        part["output"]["value"]
        for message in record["responseMessages"]
        if message["role"] == "tool"
        for part in message["content"]
    ]


@proves("RUN-20")
async def test_by_default_a_call_under_way_is_left_alone(
    server: RunsServer, watcher: Watcher
) -> None:
    question = await asked(server, watcher, ASK)
    await steer(watcher)
    await answer(watcher, question)
    assert (await watcher.ended())["result"] == f"asked{BLOCK}"
    assert results(server) == ['User response: "yes"']


@proves("RUN-36")
async def test_on_request_it_arrives_before_the_next_round_trip(
    server: RunsServer, watcher: Watcher
) -> None:
    question = await asked(server, watcher, ASK)
    await steer(watcher, mode="steer", receipt=True)
    await answer(watcher, question)
    taken = (await watcher.until("steer_delivered"))[-1]
    assert (taken["agentName"], taken["text"]) == ("a", "be brief")
    ended = await watcher.ended()
    assert ended["result"] == "asked"
    assert "undeliveredSteering" not in ended
    assert results(server) == [f'User response: "yes"{BLOCK}']


@proves("RUN-36")
async def test_without_another_round_trip_the_next_call_gets_it(
    server: RunsServer, watcher: Watcher
) -> None:
    await watcher.ask("prepare_run", runId="r", strategyPath=str(server.strategy(source())))
    await steer(watcher, mode="steer")
    await watcher.send("start_run", runId="r", input="go")
    assert (await watcher.ended())["result"] == "asked"
    kept = [e for e in server.timeline("r") if e["type"] == "steer_delivered"]
    assert [(e["agentName"], "key" in e) for e in kept] == [("a", False)]


async def test_a_resumed_call_reads_again_what_it_was_steered_with(
    server: RunsServer, watcher: Watcher
) -> None:
    question = await asked(server, watcher, ASK, ASK)
    await steer(watcher, mode="steer")
    await answer(watcher, question, "first")
    await watcher.until("request_question")
    await resume(watcher)
    again = (await watcher.until("request_question"))[-1]
    await answer(watcher, again, "second")
    assert (await watcher.ended())["result"] == "asked"
    assert results(server) == [f'User response: "first"{BLOCK}', 'User response: "second"']


async def test_a_resumed_call_gets_what_was_still_waiting(
    server: RunsServer, watcher: Watcher
) -> None:
    await asked(server, watcher, ASK)
    await steer(watcher)
    await resume(watcher)
    again = (await watcher.until("request_question"))[-1]
    await answer(watcher, again)
    assert (await watcher.ended())["result"] == "asked"
    assert results(server) == [f'User response: "yes"{BLOCK}']
