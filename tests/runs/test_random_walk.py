"""Clients that do anything in any order: nothing breaks, every run ends once, no message is bad."""

import asyncio
import json
import random
from collections import defaultdict
from pathlib import Path
from typing import Any

import pytest

from stringd.runs import RunsConfig, RunService
from stringd.runs.handlers.client import ConnectedClient
from stringd.system.trust import TrustStore
from tests.runs.schema import problems
from tests.runs.support import RunsServer, scripted, sequential, strategy, wait_until

pytestmark = pytest.mark.anyio

RUNS = [f"r{number}" for number in range(8)]
SOURCE = strategy(
    {**sequential("u", "a"), "type": "cycle", "cycles": 2, "observer": "o"},
    u={"type": "user"},
    a={
        **scripted("hi", {"tools": [{"name": "ask_question", "args": {"question": "?"}}]}, "ho"),
        "tools": ["ask_question"],
    },
    o=scripted("more", "done", {"error": "tired"}, "done"),
)


def request(dice: random.Random, path: str, questions: list[str]) -> dict[str, Any]:
    run: dict[str, Any] = {"runId": dice.choice(RUNS), "requestId": str(dice.random())}
    choices: list[dict[str, Any]] = [
        {"type": "prepare_run", **run, "strategyPath": path},
        {"type": "prepare_run", **run},
        {"type": "start_run", **run, "input": dice.choice(["", "go"])},
        {"type": "continue_run", **run, "input": "on", "resume": dice.random() < 0.5},
        {"type": "stop_run", **run},
        {"type": "user_input", **run, "agentName": "u", "text": "text"},
        {
            "type": "question_response",
            **run,
            "questionRequestId": dice.choice(questions or ["none"]),
            "response": "yes",
        },
        {
            "type": "steer_run",
            **run,
            "text": "steer",
            "receipt": True,
            "mode": dice.choice(["call", "steer"]),
        },
        {"type": "subscribe", **run},
        {"type": "subscribe", **run, "fromSeq": dice.randint(-1, 40)},
        {"type": "unsubscribe", **run},
        {"type": "update_policy", **run, "mode": "read", "tool": "glob"},
        {"type": "list_runs"},
        {"type": "list_strategies"},
        {"type": "ping"},
    ]
    weights = [0.3 if choice["type"] == "stop_run" else 1.0 for choice in choices]
    return dice.choices(choices, weights)[0]


async def walk(folder: Path, seed: int, steps: int) -> list[dict[str, Any]]:
    service = RunService(RunsConfig(folder / "data", folder))
    await service.start()
    path = str(RunsServer(service, folder, TrustStore(folder / "trust.json")).strategy(SOURCE))
    dice, observed = random.Random(seed), list[dict[str, Any]]()
    clients = [service.connect(lambda: None) for _ in range(3)]
    watcher = clients[0]
    questions: list[str] = []
    for _ in range(steps):
        dice.choice(clients).receive(json.dumps(request(dice, path, questions)))
        for run_id in RUNS:
            watcher.receive(json.dumps({"type": "subscribe", "runId": run_id}))
        for _ in range(dice.choice([0, 0, 1, 4])):
            # A trip through a thread, as every sync takes one too.
            await asyncio.to_thread(int)
        collect(clients, observed, questions)
    stopping = asyncio.create_task(service.stop())
    await wait_until(lambda: all(client.closing for client in clients))
    collect(clients, observed, questions)
    for client in clients:
        client.gone()
    await stopping
    assert service.active_runs == 0
    return observed


def collect(
    clients: list[ConnectedClient], seen: list[dict[str, Any]], questions: list[str]
) -> None:
    for client in clients:
        for frame in client.take():
            message = json.loads(frame)
            assert problems(message) == [], message
            seen.append(message)
            if message["type"] == "request_question":
                questions.append(message["requestId"])


def check(folder: Path, seen: list[dict[str, Any]]) -> None:
    codes = {message["code"] for message in seen if message["type"] == "error"}
    assert "INTERNAL_ERROR" not in codes
    for run_id in RUNS:
        path = folder / "data" / "runs" / f"{run_id}.jsonl"
        if not path.exists():
            continue
        events = [json.loads(line) for line in path.read_text("utf-8").splitlines()]
        ends = [e["type"] for e in events if e["type"] in ("run_started", "run_completed")]
        assert ends == ["run_started", "run_completed"] * (len(ends) // 2)
        frames = (folder / "data" / "runs" / "events" / f"{run_id}.jsonl").read_text("utf-8")
        numbers = [json.loads(line)["seq"] for line in frames.splitlines()]
        assert numbers == list(range(1, len(numbers) + 1))
    by_seq: dict[tuple[str, int], set[str]] = defaultdict(set)
    for message in seen:
        if "seq" in message:
            by_seq[message["runId"], message["seq"]].add(json.dumps(message, sort_keys=True))
    assert {len(versions) for versions in by_seq.values()} == {1}


@pytest.mark.parametrize("seed", range(4))
async def test_random_clients_break_nothing(
    tmp_path: Path, seed: int, caplog: pytest.LogCaptureFixture
) -> None:
    before = asyncio.all_tasks()
    seen = await walk(tmp_path, seed, 600)
    check(tmp_path, seen)
    assert {"strategy_error", "run_prepared"} <= {m["type"] for m in seen}
    assert "lost broadcasts" not in caplog.text
    assert asyncio.all_tasks() == before


@pytest.mark.soak
@pytest.mark.parametrize("seed", range(100, 160))
async def test_random_clients_break_nothing_for_long(tmp_path: Path, seed: int) -> None:
    check(tmp_path, await walk(tmp_path, seed, 3000))
