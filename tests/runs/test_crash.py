"""The daemon is killed again and again; no run is lost and no step is done twice."""

import json
import random
from collections import Counter
from pathlib import Path

import pytest
import yaml
from websockets.asyncio.client import connect

from tests.requirements import proves
from tests.runs.support import Json, Watcher, scripted, sequential, strategy
from tests.support.daemon import Daemon

pytestmark = pytest.mark.anyio

RUNS = [f"run-{number}" for number in range(8)]
STEPS = [f"s{number}" for number in range(8)]
SOURCE = strategy(
    sequential(*STEPS),
    **{name: scripted({"chunks": ["{message}", f" {name}"], "delayMs": 3}) for name in STEPS},
)


def timeline(daemon: Daemon, run_id: str) -> list[Json]:
    """The parsed timeline; a line torn by the crash is the only one that may not be JSON."""
    path = daemon.data_dir / "runs" / f"{run_id}.jsonl"
    lines = path.read_bytes().split(b"\n") if path.exists() else []
    found = []
    for line in filter(None, lines):
        try:
            found.append(json.loads(line))
        except ValueError:
            assert line.startswith(b"{")
    return found


def finished(daemon: Daemon, run_id: str) -> bool:
    events = timeline(daemon, run_id)
    return bool(events) and events[-1] == {**events[-1], "status": "completed"}


async def accept(watcher: Watcher, path: Path, run_id: str) -> None:
    await watcher.ask("prepare_run", runId=run_id, strategyPath=str(path))
    await watcher.send("start_run", runId=run_id, input=run_id)


async def resume(watcher: Watcher, run_id: str) -> None:
    assert (await watcher.ask("prepare_run", runId=run_id))["type"] == "run_prepared"
    await watcher.send("continue_run", runId=run_id, input="", resume=True)


async def kill_at_random(daemon: Daemon, path: Path, dice: random.Random, known: set[str]) -> None:
    """One life of the daemon: repaired, resumed, and killed after some messages."""
    daemon.start()
    url = f"ws://127.0.0.1:{daemon.port}/ws"
    async with connect(url, max_queue=None, proxy=None) as socket:
        watcher = Watcher(socket)
        listed = {run["runId"]: run for run in (await watcher.ask("list_runs"))["runs"]}
        assert known <= set(listed)
        assert "running" not in {run["status"] for run in listed.values()}
        for run_id in RUNS:
            if run_id not in listed:
                await accept(watcher, path, run_id)
            elif listed[run_id]["status"] != "completed":
                await resume(watcher, run_id)
        for _ in range(dice.randint(1, 60)):
            if all(finished(daemon, run_id) for run_id in RUNS):
                break
            await watcher.receive()
        daemon.kill()
        known |= {m["runId"] for m in watcher.seen if m["type"] == "strategy_started"}


async def crash(tmp_path: Path, kills: int, seed: int) -> None:
    path = tmp_path / "long.yaml"
    path.write_text(yaml.safe_dump(SOURCE), "utf-8")
    daemon, dice = Daemon(tmp_path), random.Random(seed)
    known: set[str] = set()
    for _ in range(kills):
        await kill_at_random(daemon, path, dice, known)
    with daemon:
        url = f"ws://127.0.0.1:{daemon.port}/ws"
        async with connect(url, max_queue=None, proxy=None) as socket:
            watcher = Watcher(socket)
            for run_id in RUNS:
                if not finished(daemon, run_id):
                    known_before = bool(timeline(daemon, run_id))
                    await (
                        resume(watcher, run_id) if known_before else accept(watcher, path, run_id)
                    )
                    assert (await watcher.ended())["type"] == "strategy_completed"
    for run_id in RUNS:
        check(daemon, run_id)


def check(daemon: Daemon, run_id: str) -> None:
    events = timeline(daemon, run_id)
    for kind in ("step_completed", "agent_call"):
        done = Counter(event["path"] for event in events if event["type"] == kind)
        assert done == dict.fromkeys(map(str, range(len(STEPS))), 1), (run_id, kind, done)
    last = [event for event in events if event["type"] == "step_completed"][-1]
    assert last["result"]["text"] == " ".join([run_id, *STEPS])
    frames = daemon.data_dir / "runs" / "events" / f"{run_id}.jsonl"
    numbers = [json.loads(line)["seq"] for line in frames.read_bytes().split(b"\n") if line]
    assert numbers == list(range(1, len(numbers) + 1))


@proves("RUN-31", "RUN-22")
async def test_runs_survive_five_kills_without_repeating_a_step(tmp_path: Path) -> None:
    await crash(tmp_path, kills=5, seed=1)


@pytest.mark.soak
@proves("RUN-31")
@pytest.mark.parametrize("seed", range(6))
async def test_runs_survive_sixty_kills_without_repeating_a_step(tmp_path: Path, seed: int) -> None:
    await crash(tmp_path, kills=10, seed=seed)
