"""A prompt outlives the daemon: it keeps its name, and can be answered before the run goes on."""

import asyncio
from pathlib import Path

import pytest
import yaml

from stringd.client.feed import overview
from tests.requirements import proves
from tests.runs.support import Json, Watcher, scripted, sequential, strategy, watching
from tests.support.daemon import Daemon

pytestmark = pytest.mark.anyio

QUESTION = {"tools": [{"name": "ask_question", "args": {"question": "Which?"}}]}
READING = {"tools": [{"name": "read_file", "args": {"path": "../secret.txt"}}]}
ASKERS = {
    "request_input": {"type": "user"},
    "request_question": {**scripted(QUESTION, "fine"), "tools": ["ask_question"]},
    "request_permission": {**scripted(READING, "fine"), "tools": ["read_file"]},
}


WAITING = {
    "request_input": ("input", "a", None),
    "request_question": ("question", "a", "Which?"),
    "request_permission": ("permission", "a", "fs.read"),
}


def waiting(shown: Json) -> list[tuple[str, str, str | None]]:
    """What a run on disk waits for, in brief."""
    return [
        (each["kind"], each["agentName"], each.get("question") or each.get("operation"))
        for each in shown["waiting"]
    ]


def asker(tmp_path: Path, kind: str, **settings: str) -> tuple[Daemon, Json]:
    """A daemon, and how to prepare a run on it that asks."""
    work = tmp_path / "work"
    work.mkdir()
    (tmp_path / "secret.txt").write_text("the secret", "utf-8")
    path = tmp_path / "s.yaml"
    source = strategy(sequential("a", "b"), a=ASKERS[kind], b=scripted("end"))
    path.write_text(yaml.safe_dump(source), "utf-8")
    daemon = Daemon(tmp_path, **settings)
    return daemon, {"runId": "r", "strategyPath": str(path), "cwd": str(work)}


async def killed_while_asking(daemon: Daemon, prepare: Json, kind: str) -> Json:
    """The prompt that was open when the daemon was killed."""
    daemon.start()
    async with watching(daemon.port) as watcher:
        await watcher.ask("prepare_run", **prepare)
        await watcher.send("start_run", runId="r")
        asked = (await watcher.until(kind))[-1]
        daemon.kill()
    return asked


async def resume(watcher: Watcher) -> None:
    await watcher.ask("prepare_run", runId="r")
    await watcher.send("continue_run", runId="r", input="", resume=True)


def answer(asked: Json) -> tuple[str, Json]:
    """The request that answers a prompt, and what it carries."""
    match asked["type"]:
        case "request_input":
            return "user_input", {"runId": "r", "agentName": "a", "text": "this"}
        case "request_question":
            given = {"questionRequestId": asked["requestId"], "response": "this"}
            return "question_response", {"runId": "r", **given}
        case _:
            given = {"permissionRequestId": asked["requestId"], "decision": "allow"}
            return "permission_decision", {"runId": "r", **given}


@proves("RUN-35")
@pytest.mark.parametrize("kind", ["request_question", "request_permission"])
async def test_a_prompt_is_asked_again_under_its_id(tmp_path: Path, kind: str) -> None:
    daemon, prepare = asker(tmp_path, kind)
    asked = await killed_while_asking(daemon, prepare, kind)
    with daemon:
        async with watching(daemon.port) as watcher:
            await resume(watcher)
            again = (await watcher.until(kind))[-1]
            assert again["requestId"] == asked["requestId"]
            request, fields = answer(asked)
            await watcher.send(request, **fields)
            assert (await watcher.ended())["result"] == "end"


@proves("RUN-35")
@pytest.mark.parametrize("kind", list(ASKERS))
async def test_an_answer_given_before_the_run_goes_on_is_taken_then_and_once(
    tmp_path: Path, kind: str
) -> None:
    daemon, prepare = asker(tmp_path, kind)
    asked = await killed_while_asking(daemon, prepare, kind)
    request, fields = answer(asked)
    with daemon:
        async with watching(daemon.port) as watcher:
            assert waiting(await watcher.ask("get_timeline", runId="r")) == [WAITING[kind]]
            await watcher.send(request, **fields)
            assert await watcher.quiet() == []
            assert waiting(await watcher.ask("get_timeline", runId="r")) == []
            twice = await watcher.ask(request, **fields)
            assert twice["code"].startswith("NO_PENDING_")
            await resume(watcher)
            seen = await watcher.until("strategy_completed", "strategy_error")
            assert seen[-1]["result"] == "end"
            assert kind not in [message["type"] for message in seen]
            if kind == "request_permission":
                outputs = [m["event"].get("output", "") for m in seen if "event" in m]
                assert any("the secret" in output for output in outputs)


@pytest.mark.parametrize("kind", list(ASKERS))
async def test_what_an_interrupted_run_asked_waits_in_the_overview_until_it_is_answered(
    tmp_path: Path, kind: str
) -> None:
    daemon, prepare = asker(tmp_path, kind)
    asked = await killed_while_asking(daemon, prepare, kind)
    with daemon:
        async with watching(daemon.port) as watcher:
            await watcher.ask("list_runs")  # the runs have been repaired
            (waits,) = overview(daemon.port)["waiting"]
            shown = waits["runId"], waits["prompt"], waits["agent"], waits["strategy"]
            assert shown == ("r", WAITING[kind][0], "a", "Test")
            assert waits["ts"] <= asked["ts"]
            request, fields = answer(asked)
            await watcher.send(request, **fields)
            await watcher.quiet()
            assert overview(daemon.port)["waiting"] == []


@pytest.mark.parametrize("kind", list(ASKERS))
async def test_what_was_asked_before_an_orderly_stop_is_answered_after_the_next_start(
    tmp_path: Path, kind: str
) -> None:
    daemon, prepare = asker(tmp_path, kind)
    daemon.start()
    async with watching(daemon.port) as watcher:
        await watcher.ask("prepare_run", **prepare)
        await watcher.send("start_run", runId="r")
        asked = (await watcher.until(kind))[-1]
        await asyncio.to_thread(daemon.stop)
    with daemon:
        async with watching(daemon.port) as watcher:
            (run,) = (await watcher.ask("list_runs"))["runs"]
            assert (run["status"], run["interrupted"]) == ("cancelled", True)
            assert [each["runId"] for each in overview(daemon.port)["waiting"]] == ["r"]
            request, fields = answer(asked)
            await watcher.send(request, **fields)
            await resume(watcher)
            seen = await watcher.until("strategy_completed", "strategy_error", kind)
            assert seen[-1]["type"] == "strategy_completed"


async def test_what_a_run_had_asked_that_was_stopped_is_withdrawn(tmp_path: Path) -> None:
    daemon, prepare = asker(tmp_path, "request_question")
    daemon.start()
    async with watching(daemon.port) as watcher:
        await watcher.ask("prepare_run", **prepare)
        await watcher.send("start_run", runId="r")
        await watcher.until("request_question")
        await watcher.send("stop_run", runId="r")
        await watcher.until("strategy_error")
        await asyncio.to_thread(daemon.stop)
    with daemon:
        async with watching(daemon.port) as watcher:
            (run,) = (await watcher.ask("list_runs"))["runs"]
            assert "interrupted" not in run
            assert overview(daemon.port)["waiting"] == []


async def test_what_a_deleted_run_had_asked_does_not_wait_any_more(tmp_path: Path) -> None:
    daemon, prepare = asker(tmp_path, "request_question")
    await killed_while_asking(daemon, prepare, "request_question")
    with daemon:
        async with watching(daemon.port) as watcher:
            await watcher.ask("delete_run", runId="r")
            assert overview(daemon.port)["waiting"] == []


async def test_what_a_resumed_run_asks_again_waits_once(tmp_path: Path) -> None:
    daemon, prepare = asker(tmp_path, "request_question")
    await killed_while_asking(daemon, prepare, "request_question")
    with daemon:
        async with watching(daemon.port) as watcher:
            await resume(watcher)
            await watcher.until("request_question")
            assert [each["prompt"] for each in overview(daemon.port)["waiting"]] == ["question"]


async def test_a_reason_given_before_the_run_goes_on_reaches_the_model(tmp_path: Path) -> None:
    daemon, prepare = asker(tmp_path, "request_permission")
    asked = await killed_while_asking(daemon, prepare, "request_permission")
    denied = {"permissionRequestId": asked["requestId"], "decision": "deny"}
    with daemon:
        async with watching(daemon.port) as watcher:
            await watcher.send("permission_decision", runId="r", reason="Not that one.", **denied)
            await resume(watcher)
            seen = await watcher.until("strategy_completed", "strategy_error")
            outputs = [m["event"].get("output", "") for m in seen if "event" in m]
            assert any("was denied by the user: Not that one." in each for each in outputs)


async def test_an_answer_survives_another_kill(tmp_path: Path) -> None:
    daemon, prepare = asker(tmp_path, "request_question")
    asked = await killed_while_asking(daemon, prepare, "request_question")
    daemon.start()
    async with watching(daemon.port) as watcher:
        request, fields = answer(asked)
        await watcher.send(request, **fields)
        await watcher.quiet()
        daemon.kill()
    with daemon:
        async with watching(daemon.port) as watcher:
            assert (await watcher.ask(request, **fields))["code"] == "NO_PENDING_QUESTION"
            await resume(watcher)
            assert (await watcher.ended())["result"] == "end"


async def test_what_is_still_open_survives_an_answer_to_something_else(tmp_path: Path) -> None:
    path = tmp_path / "s.yaml"
    both = {"name": "Main", "type": "broadcast", "steps": [{"agent": "a"}, {"agent": "b"}]}
    path.write_text(yaml.safe_dump(strategy(both, a={"type": "user"}, b={"type": "user"})), "utf-8")
    daemon = Daemon(tmp_path, STRINGD_CONCURRENT_BROADCAST="1")
    daemon.start()
    async with watching(daemon.port) as watcher:
        await watcher.ask("prepare_run", runId="r", strategyPath=str(path))
        await watcher.send("start_run", runId="r")
        for _ in range(2):
            await watcher.until("request_input")
        daemon.kill()
    for agent in ("b", "a"):
        daemon.start()
        async with watching(daemon.port) as watcher:
            await watcher.send("user_input", runId="r", agentName=agent, text=f"of {agent}")
            assert await watcher.quiet() == []
            daemon.kill()
    with daemon:
        async with watching(daemon.port) as watcher:
            await resume(watcher)
            assert (await watcher.ended())["result"] == "of a\n\nof b"


async def test_a_run_begun_anew_forgets_what_it_asked_before(tmp_path: Path) -> None:
    daemon, prepare = asker(tmp_path, "request_question")
    asked = await killed_while_asking(daemon, prepare, "request_question")
    with daemon:
        async with watching(daemon.port) as watcher:
            await watcher.ask("prepare_run", runId="r")
            await watcher.send("continue_run", runId="r", input="")
            again = (await watcher.until("request_question"))[-1]
            assert again["requestId"] != asked["requestId"]
            request, fields = answer(asked)
            assert (await watcher.ask(request, **fields))["code"] == "NO_PENDING_QUESTION"


PATIENCE = "Nobody answered within 0.05 s"


@pytest.mark.parametrize(
    ("kind", "told"),
    [
        ("request_permission", f"Error (permission_denied): {PATIENCE} whether "),
        ("request_question", f"Error (timeout): {PATIENCE}\n\nNext step: continue without it"),
        ("request_input", f'Step "a" failed: LLM call failed: {PATIENCE}'),
    ],
)
async def test_a_prompt_nobody_answers_in_time_is_settled_without_an_answer(
    tmp_path: Path, kind: str, told: str
) -> None:
    daemon, prepare = asker(tmp_path, kind, STRINGD_RUN_PROMPT_TIMEOUT_MS="50")
    with daemon:
        async with watching(daemon.port) as watcher:
            await watcher.ask("prepare_run", **prepare)
            await watcher.send("start_run", runId="r")
            asked = (await watcher.until(kind))[-1]
            seen = await watcher.until("strategy_completed", "strategy_error")
            request, fields = answer(asked)
            assert (await watcher.ask(request, **fields))["code"].startswith("NO_PENDING_")
    outputs = [m["event"].get("output", "") for m in seen if "event" in m]
    last = seen[-1].get("error", {}).get("message", "")
    assert any(text.startswith(told) for text in (*outputs, last))
