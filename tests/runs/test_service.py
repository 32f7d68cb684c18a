"""The life of a run over a real WebSocket."""

import pytest

from tests.requirements import proves
from tests.runs.support import (
    Json,
    RunsServer,
    Watcher,
    kinds,
    scripted,
    sequential,
    serving,
    strategy,
    wait_until,
)

pytestmark = pytest.mark.anyio

TWO = strategy(sequential("a", "b"), a=scripted("one two"), b=scripted("three {message}"))
SLOW = strategy(sequential("a"), a=scripted({"chunks": ["x"], "delayMs": 60_000}))
ASKING = strategy(sequential("human", "a"), human={"type": "user"}, a=scripted("got {message}"))


@proves("RUN-05")
async def test_prepare_describes_the_strategy(server: RunsServer, watcher: Watcher) -> None:
    path = server.strategy(TWO)
    prepared = await watcher.ask("prepare_run", runId="r", strategyPath=str(path))
    assert prepared["type"] == "run_prepared"
    assert prepared["strategyName"] == "Test"
    assert prepared["agents"] == ["a", "b"]
    assert prepared["flowTree"] == TWO["flow"]
    assert prepared["conversation"] == {"records": [], "retentionEvents": [], "inputs": []}
    assert prepared["mcpServers"] == []


async def test_prepare_without_an_id_chooses_one_each_time(
    server: RunsServer, watcher: Watcher
) -> None:
    path = str(server.strategy(TWO))
    for number in range(5):
        await watcher.send("prepare_run", strategyPath=path, requestId=str(number))
    prepared = [await watcher.receive() for _ in range(5)]
    assert {message["requestId"] for message in prepared} == set("01234")
    assert len({message["runId"] for message in prepared}) == 5


@proves("RUN-13", "RUN-14")
async def test_events_of_a_segment_come_in_order_with_its_request_id(
    server: RunsServer, watcher: Watcher
) -> None:
    messages = await watcher.run(server.strategy(TWO), "go")
    assert kinds(messages) == [
        "strategy_started",
        "step_started(a)",
        "a:step-start",
        "a:text",
        "a:text",
        "a:output",
        "a:done",
        "step_completed(a)",
        "step_started(b)",
        "b:step-start",
        "b:text",
        "b:text",
        "b:text",
        "b:output",
        "b:done",
        "step_completed(b)",
        "strategy_completed",
    ]
    assert {message["requestId"] for message in messages} == {"start"}
    assert [message["seq"] for message in messages] == list(range(1, len(messages) + 1))
    assert messages[1]["message"] == "go"
    assert messages[-1]["result"] == "three one two"


@proves("RUN-25")
async def test_usage_of_the_run_is_the_sum_of_its_agents(
    server: RunsServer, watcher: Watcher
) -> None:
    messages = await watcher.run(server.strategy(TWO), "go")
    outputs = [m["usage"] for m in messages if m["type"] == "agent_output"]
    total = {key: sum(usage[key] for usage in outputs) for key in outputs[0]}
    assert messages[-1]["usage"] == total


@proves("RUN-06")
@pytest.mark.parametrize(
    ("type_", "fields", "code", "text"),
    [
        ("start_run", {}, "START_FAILED", "Prepared run not found: nope"),
        ("continue_run", {"input": ""}, "CONTINUE_FAILED", "Prepared run not found: nope"),
        ("subscribe", {}, "SUBSCRIBE_ERROR", "Run not found: nope"),
        ("steer_run", {"text": "x"}, "RUN_NOT_STEERABLE", "Cannot steer run nope: not running"),
        ("prepare_run", {}, "PREPARE_FAILED", "Run not found: nope"),
        (
            "user_input",
            {"agentName": "a", "text": ""},
            "NO_PENDING_INPUT",
            "No pending input request for run nope agent a",
        ),
        (
            "question_response",
            {"questionRequestId": "q", "response": ""},
            "NO_PENDING_QUESTION",
            "No pending question request q for run nope",
        ),
        (
            "permission_decision",
            {"permissionRequestId": "p", "decision": "allow"},
            "NO_PENDING_PERMISSION",
            "No pending permission request p for run nope",
        ),
        ("update_policy", {"mode": "read"}, "RUN_NOT_FOUND", "No active run found for runId nope"),
    ],
)
@proves("RUN-09", "RUN-10", "RUN-11")
async def test_requests_about_an_unknown_run_are_refused(
    watcher: Watcher, type_: str, fields: Json, code: str, text: str
) -> None:
    answer = await watcher.ask(type_, runId="nope", **fields)
    assert (answer["type"], answer["code"], answer["message"]) == ("error", code, text)


async def test_silent_requests_about_an_unknown_run_stay_silent(watcher: Watcher) -> None:
    await watcher.send("stop_run", runId="nope", requestId="s")
    await watcher.send("unsubscribe", runId="nope", requestId="u")
    assert (await watcher.ask("ping"))["type"] == "pong"
    assert kinds(watcher.seen) == ["pong"]


@proves("RUN-06", "RUN-07")
async def test_starting_twice_or_in_the_wrong_way_is_refused(
    server: RunsServer, watcher: Watcher
) -> None:
    path = str(server.strategy(SLOW))
    await watcher.ask("prepare_run", runId="r", strategyPath=path)
    wrong = await watcher.ask("continue_run", runId="r", input="")
    assert wrong["message"] == "Run was not prepared for continuation: r"
    await watcher.send("start_run", runId="r")
    await watcher.until("strategy_started")
    again = await watcher.ask("start_run", runId="r")
    assert (again["code"], again["message"]) == ("START_FAILED", "Run already started: r")
    await watcher.send("stop_run", runId="r")
    await watcher.ended()
    gone = await watcher.ask("start_run", runId="r")
    await wait_until(lambda: server.service.active_runs == 0)
    assert gone["code"] == "START_FAILED"
    assert (await watcher.ask("prepare_run", runId="r"))["type"] == "run_prepared"
    wrong = await watcher.ask("start_run", runId="r")
    assert wrong["message"] == "Run was prepared for continuation: r"


@proves("RUN-08")
async def test_stop_ends_a_stream_at_once_and_is_recorded_once(
    server: RunsServer, watcher: Watcher
) -> None:
    path = str(server.strategy(SLOW))
    await watcher.ask("prepare_run", runId="r", strategyPath=path)
    await watcher.send("start_run", runId="r", requestId="s")
    await watcher.until("agent_streaming")
    await watcher.send("stop_run", runId="r", requestId="x")
    error = await watcher.ended()
    assert error["error"] == {"code": "CANCELLED", "message": "Run cancelled by client"}
    assert "requestId" not in error
    await watcher.send("stop_run", runId="r")
    assert (await watcher.ask("prepare_run", runId="r"))["type"] == "run_prepared"
    ends = [e for e in server.timeline("r") if e["type"] == "run_completed"]
    assert [end["status"] for end in ends] == ["cancelled"]
    assert [m for m in watcher.seen if m["type"] == "strategy_completed"] == []


async def test_a_run_stopped_before_its_first_step_still_ends_cancelled(
    server: RunsServer, watcher: Watcher
) -> None:
    path = str(server.strategy(SLOW))
    await watcher.ask("prepare_run", runId="r", strategyPath=path)
    client = server.service.connect(lambda: None)
    client.receive('{"type":"start_run","runId":"r"}')
    client.receive('{"type":"stop_run","runId":"r"}')
    assert (await watcher.ended())["error"]["code"] == "CANCELLED"
    assert (await watcher.ask("prepare_run", runId="r"))["type"] == "run_prepared"
    assert [e["type"] for e in server.timeline("r")] == ["run_started", "run_completed"]
    client.gone()


@proves("RUN-08")
async def test_a_run_stopped_before_its_start_leaves_nothing_and_burns_its_id(
    server: RunsServer, watcher: Watcher
) -> None:
    path = str(server.strategy(TWO))
    await watcher.ask("prepare_run", runId="r", strategyPath=path)
    runs = server.directory / "data" / "runs"
    assert (runs / "r.config.json").exists()
    await watcher.send("stop_run", runId="r")
    assert (await watcher.ended())["error"]["code"] == "CANCELLED"
    assert not (runs / "r.config.json").exists()
    assert not (runs / "r.jsonl").exists()
    again = await watcher.ask("prepare_run", runId="r", strategyPath=path)
    assert (again["code"], again["message"]) == ("PREPARE_FAILED", "Run already exists: r")
    assert (await watcher.ask("start_run", runId="r"))["message"] == "Prepared run not found: r"


@proves("RUN-16", "RUN-17")
async def test_a_completed_run_continues_at_once_with_its_memory(
    server: RunsServer, watcher: Watcher
) -> None:
    await watcher.run(server.strategy(TWO), "first")
    prepared = await watcher.ask("prepare_run", runId="r1")
    assert prepared["type"] == "run_prepared"
    assert [r["agentName"] for r in prepared["conversation"]["records"]] == ["a", "b"]
    record = prepared["conversation"]["records"][0]
    assert prepared["conversation"]["inputs"] == [{"text": "first", "beforeRecordId": record["id"]}]
    await watcher.send("continue_run", runId="r1", input="second", requestId="c")
    messages = await watcher.until("strategy_completed")
    assert kinds(messages).count("step_started(a)") == 1
    assert messages[0]["seq"] > 1
    assert messages[-1]["requestId"] == "c"
    used = next(m for m in messages if m["type"] == "agent_output")["usage"]["promptTokens"]
    assert used == len(["first", "one", "two", "second"])


async def test_preparing_twice_is_refused_and_a_failed_prepare_changes_nothing(
    server: RunsServer, watcher: Watcher
) -> None:
    path = str(server.strategy(TWO))
    await watcher.ask("prepare_run", runId="r", strategyPath=path)
    again = await watcher.ask("prepare_run", runId="r", strategyPath=path)
    assert (again["code"], again["message"]) == ("PREPARE_FAILED", "Run already exists: r")
    await watcher.send("start_run", runId="r")
    await watcher.ended()
    failed = await watcher.ask("prepare_run", runId="r", strategyPath="/nowhere.yaml")
    assert failed["message"] == "Strategy file not found: /nowhere.yaml"
    listed = await watcher.ask("list_strategies")
    assert [(run["runId"], run["status"]) for run in listed["runs"]] == [("r", "completed")]
    assert (await watcher.ask("prepare_run", runId="r"))["type"] == "run_prepared"


async def test_prepare_on_a_running_run_attaches(server: RunsServer, watcher: Watcher) -> None:
    path = str(server.strategy(ASKING))
    await watcher.ask("prepare_run", runId="r", strategyPath=path)
    await watcher.send("start_run", runId="r")
    asked = (await watcher.until("request_input"))[-1]
    other = await server.watcher()
    attached = await other.ask("prepare_run", runId="r")
    assert attached["type"] == "run_prepared"
    assert await other.receive() == asked
    await other.send("user_input", runId="r", agentName="human", text="hi")
    assert (await watcher.ended())["result"] == "got hi"
    assert (await other.ended())["result"] == "got hi"


@proves("RUN-29", "RUN-09")
async def test_a_user_agent_asks_when_nothing_came_in_and_the_first_answer_counts(
    server: RunsServer, watcher: Watcher
) -> None:
    path = str(server.strategy(ASKING))
    await watcher.ask("prepare_run", runId="r", strategyPath=path)
    await watcher.send("start_run", runId="r", requestId="s")
    asked = await watcher.until("request_input")
    assert kinds(asked) == ["strategy_started", "step_started(human)", "request_input"]
    assert (asked[-1]["prompt"], asked[-1]["agentName"]) == ("", "human")
    await watcher.send("user_input", runId="r", agentName="human", text="yes")
    await watcher.send("user_input", runId="r", agentName="human", text="no", requestId="late")
    rest = await watcher.until("strategy_completed")
    assert rest[-1]["result"] == "got yes"
    late = next(m for m in rest if m.get("requestId") == "late")
    assert late["code"] == "NO_PENDING_INPUT"
    assert not any(m["type"].startswith("agent_") and m["agentName"] == "human" for m in rest)
    kept = [e for e in server.timeline("r") if e["type"] == "user_input"]
    assert [(e["agentName"], e["text"], e["source"]) for e in kept] == [("human", "yes", "human")]


@proves("RUN-29")
async def test_an_initial_input_satisfies_the_first_user_step(
    server: RunsServer, watcher: Watcher
) -> None:
    messages = await watcher.run(server.strategy(ASKING), "hello")
    assert "request_input" not in kinds(messages)
    assert messages[-1]["result"] == "got hello"


@proves("RUN-15")
async def test_a_disconnect_stops_no_run(server: RunsServer, watcher: Watcher) -> None:
    path = str(server.strategy(ASKING))
    leaver = await server.watcher()
    await leaver.ask("prepare_run", runId="r", strategyPath=path)
    await leaver.send("start_run", runId="r")
    await leaver.until("request_input")
    await leaver.socket.close()
    await wait_until(lambda: server.service.connected_clients == 1)
    assert server.service.active_runs == 1
    await watcher.send("subscribe", runId="r")
    assert (await watcher.receive())["type"] == "request_input"
    await watcher.send("user_input", runId="r", agentName="human", text="still here")
    assert (await watcher.ended())["result"] == "got still here"


@proves("RUN-18")
async def test_all_subscribers_see_the_same_events(server: RunsServer, watcher: Watcher) -> None:
    path = str(server.strategy(TWO))
    await watcher.ask("prepare_run", runId="r", strategyPath=path)
    others = [await server.watcher() for _ in range(3)]
    for other in others:
        await other.send("subscribe", runId="r")
        await other.ask("ping")
    await watcher.send("start_run", runId="r")
    events = await watcher.until("strategy_completed")
    for other in others:
        assert await other.until("strategy_completed") == events


async def test_an_unsubscribed_client_hears_nothing_more(
    server: RunsServer, watcher: Watcher
) -> None:
    path = str(server.strategy(TWO))
    await watcher.ask("prepare_run", runId="r", strategyPath=path)
    starter = await server.watcher()
    await watcher.send("unsubscribe", runId="r")
    await watcher.ask("ping")
    await starter.send("start_run", runId="r")
    await starter.ended()
    assert (await watcher.ask("ping"))["type"] == "pong"
    assert kinds(watcher.seen) == ["run_prepared", "pong", "pong"]


@proves("RUN-19")
async def test_replay_sends_what_was_and_then_follows(server: RunsServer, watcher: Watcher) -> None:
    path = str(server.strategy(ASKING))
    await watcher.ask("prepare_run", runId="r", strategyPath=path)
    await watcher.send("start_run", runId="r")
    await watcher.until("request_input")
    late = await server.watcher()
    await late.send("subscribe", runId="r", fromSeq=2)
    replayed = await late.until("request_input")
    assert replayed == watcher.seen[2:]
    await late.send("user_input", runId="r", agentName="human", text="x")
    followed = await late.until("strategy_completed")
    assert followed == await watcher.until("strategy_completed")
    numbers = [m["seq"] for m in [*replayed, *followed]]
    assert numbers == list(range(2, numbers[-1] + 1))


@proves("RUN-19")
async def test_seq_goes_on_after_a_restart(tmp_path_factory: pytest.TempPathFactory) -> None:
    folder = tmp_path_factory.mktemp("restart")
    async with serving(folder) as first:
        watcher = await first.watcher()
        last = (await watcher.run(first.strategy(TWO), "go"))[-1]["seq"]
    async with serving(folder) as second:
        watcher = await second.watcher()
        await watcher.ask("prepare_run", runId="r1")
        await watcher.send("continue_run", runId="r1", input="again")
        assert (await watcher.until("strategy_started"))[-1]["seq"] == last + 1
        await watcher.ended()
        await watcher.send("subscribe", runId="r1", fromSeq=1)
        replayed = [await watcher.receive() for _ in range(last + 1)]
        assert [m["seq"] for m in replayed] == list(range(1, last + 2))


@proves("RUN-20")
async def test_steering_reaches_the_next_call_in_blocks(
    server: RunsServer, watcher: Watcher
) -> None:
    path = str(server.strategy(ASKING))
    await watcher.ask("prepare_run", runId="r", strategyPath=path)
    await watcher.send("start_run", runId="r")
    await watcher.until("request_input")
    queued = await watcher.ask("steer_run", runId="r", text="be brief")
    assert (queued["type"], queued["text"]) == ("steer_queued", "be brief")
    await watcher.ask("steer_run", runId="r", text="be kind")
    await watcher.send("user_input", runId="r", agentName="human", text="q")
    done = await watcher.until("strategy_completed")
    blocks = (
        "<user_steering>\nbe brief\n</user_steering>\n\n<user_steering>\nbe kind\n</user_steering>"
    )
    assert done[-1]["result"] == f"got q\n\n{blocks}"
    assert next(m for m in done if m["type"] == "step_started")["message"] == "q"
    kept = [e["text"] for e in server.timeline("r") if e["type"] == "user_input"]
    assert kept == ["be brief", "be kind", "q"]


@proves("RUN-20")
async def test_steering_a_pending_run_satisfies_its_user_step(
    server: RunsServer, watcher: Watcher
) -> None:
    path = str(server.strategy(ASKING))
    await watcher.ask("prepare_run", runId="r", strategyPath=path)
    await watcher.ask("steer_run", runId="r", text="go")
    await watcher.send("start_run", runId="r")
    done = await watcher.until("strategy_completed")
    assert "request_input" not in kinds(done)
    assert done[-1]["result"] == "got <user_steering>\ngo\n</user_steering>"


@proves("RUN-20")
async def test_a_receipt_tells_who_took_a_text_or_that_nobody_did(
    server: RunsServer, watcher: Watcher
) -> None:
    path = str(server.strategy(strategy(sequential("a"), a={"model": "demo/echo"})))
    slow = str(server.strategy(SLOW, "slow.yaml"))
    await watcher.ask("prepare_run", runId="r", strategyPath=path)
    await watcher.send("steer_run", runId="r", text="x", receipt=True, requestId="s1")
    await watcher.send("start_run", runId="r")
    taken = (await watcher.until("steer_delivered"))[-1]
    assert (taken["agentName"], taken["text"], taken["requestId"]) == ("a", "x", "s1")
    await watcher.ended()
    await watcher.ask("prepare_run", runId="r2", strategyPath=slow)
    await watcher.send("start_run", runId="r2")
    await watcher.until("agent_streaming")
    await watcher.send("steer_run", runId="r2", text="y", receipt=True, requestId="s2")
    await watcher.send("stop_run", runId="r2")
    assert (await watcher.until("steer_undelivered"))[-1]["requestId"] == "s2"
    assert (await watcher.ended())["undeliveredSteering"] == ["y"]


@proves("RUN-21")
@pytest.mark.parametrize("run_id", ["../x", "a/b", "..", ".", "a\\b", "x\n", "y" * 300, "é" * 120])
async def test_run_ids_that_are_no_file_names_are_refused(
    server: RunsServer, watcher: Watcher, run_id: str
) -> None:
    path = str(server.strategy(TWO))
    answer = await watcher.ask("prepare_run", runId=run_id, strategyPath=path)
    assert answer["code"] == "PREPARE_FAILED"
    assert "Invalid run id" in answer["message"]


@proves("RUN-12")
async def test_a_failing_model_ends_the_run_with_the_cause(
    server: RunsServer, watcher: Watcher
) -> None:
    broken = strategy(
        sequential("a", "b"), a=scripted("ok"), b=scripted({"text": "so far", "error": "boom 503"})
    )
    messages = await watcher.run(server.strategy(broken), "go")
    assert messages[-1]["error"] == {
        "code": "EXECUTION_ERROR",
        "message": 'Step "b" failed: LLM call failed: boom 503',
    }
    assert messages[-1]["requestId"] == "start"
    assert "step_completed(b)" not in kinds(messages)
    ends = [e for e in server.timeline("r1") if e["type"] == "run_completed"]
    assert (ends[0]["status"], ends[0]["error"]["code"]) == ("error", "EXECUTION_ERROR")


@proves("RUN-12")
@pytest.mark.parametrize(
    ("model", "cause"),
    [
        ("openai/gpt-x", 'No credential found for provider "openai".'),
        ("gpt-x", 'Model "gpt-x" is not listed by any known provider in the catalog.'),
    ],
)
async def test_a_model_nobody_has_fails_only_when_it_is_called(
    server: RunsServer, watcher: Watcher, model: str, cause: str
) -> None:
    source = strategy(sequential("a"), a={"model": model})
    message = (await watcher.run(server.strategy(source)))[-1]["error"]["message"]
    assert message.startswith(f'Step "a" failed: LLM call failed: {cause}')


@proves("RUN-26")
async def test_shutdown_cancels_runs_and_then_says_going_away(
    tmp_path_factory: pytest.TempPathFactory,
) -> None:
    folder = tmp_path_factory.mktemp("down")
    async with serving(folder) as server:
        watcher = await server.watcher()
        await watcher.ask("prepare_run", runId="r", strategyPath=str(server.strategy(SLOW)))
        await watcher.send("start_run", runId="r")
        await watcher.until("agent_streaming")
        await server.service.stop()
        assert await watcher.closed() == (1001, "Server shutting down")
        assert watcher.seen[-1]["error"]["code"] == "CANCELLED"
        ends = [e for e in server.timeline("r") if e["type"] == "run_completed"]
        assert [end["status"] for end in ends] == ["cancelled"]
        await server.service.stop()


async def test_policies_are_changed_per_tool_and_shown(
    server: RunsServer, watcher: Watcher
) -> None:
    await watcher.ask("prepare_run", runId="r", strategyPath=str(server.strategy(TWO)))
    await watcher.send("update_policy", runId="r", mode="read", allow=["**"], requestId="none")
    await watcher.send("update_policy", runId="r", tool="read_file", mode="read", deny=["x/**"])
    updated = await watcher.receive()
    assert (updated["type"], updated["tool"]) == ("policy_updated", "read_file")
    assert "requestId" not in updated


async def test_lists_tell_runs_in_memory_and_on_disk(server: RunsServer, watcher: Watcher) -> None:
    path = server.strategy(TWO)
    await watcher.run(path, "go", "one")
    await watcher.ask(
        "prepare_run", runId="two", strategyPath=str(path), cwd=str(server.directory / "x")
    )
    listed = await watcher.ask("list_strategies")
    assert [(r["runId"], r["status"], r["strategyName"]) for r in listed["runs"]] == [
        ("one", "completed", "Test"),
        ("two", "pending", "Test"),
    ]
    assert "completedAt" not in listed["runs"][1]
    on_disk = await watcher.ask("list_runs")
    assert [(r["runId"], r["status"]) for r in on_disk["runs"]] == [("one", "completed")]
    protocol = {
        *("runId", "cwd", "strategyName", "strategyPath", "startedAt", "completedAt", "status")
    }
    assert on_disk["runs"][0].keys() == protocol
    detailed = await watcher.ask("list_runs", details=True)
    assert detailed["runs"][0].keys() == protocol | {"usage", "last"}
    assert (await watcher.ask("list_runs", cwd="/elsewhere"))["runs"] == []
    assert server.service.active_runs == 1


async def test_start_in_the_same_breath_as_prepare_is_too_early(
    server: RunsServer, watcher: Watcher
) -> None:
    path = str(server.strategy(TWO))
    await watcher.send("prepare_run", runId="r", strategyPath=path, requestId="p")
    await watcher.send("start_run", runId="r", requestId="s")
    answers = {m["requestId"]: m for m in [await watcher.receive(), await watcher.receive()]}
    assert answers["s"]["code"] == "START_FAILED"
    assert answers["p"]["type"] == "run_prepared"


@proves("RUN-05")
@pytest.mark.parametrize(
    "path", ["x" * 5000, "a\0b.yaml", "/", "~nobody/x.yaml", "@a/b/strategies/c"]
)
async def test_a_path_no_file_can_have_fails_the_preparation(watcher: Watcher, path: str) -> None:
    answer = await watcher.ask("prepare_run", runId="r", strategyPath=path)
    assert (answer["type"], answer["code"]) == ("error", "PREPARE_FAILED")
    assert (await watcher.ask("list_strategies"))["runs"] == []
