"""Tools used by an agent of a real run over a real WebSocket."""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tests.runs.support import TERMINAL, Json, RunsServer, Watcher, scripted, sequential, strategy

Call = tuple[str, Json]


@dataclass
class Used:
    """What came of the calls: their outputs, and every message on the way."""

    outputs: list[str]
    messages: list[Json]

    @property
    def output(self) -> str:
        return self.outputs[-1]

    def of(self, type_: str) -> list[Json]:
        return [message for message in self.messages if message["type"] == type_]


def agent(*calls: Call, **more: Any) -> Json:
    """An agent that makes these calls, one per round-trip, then ends."""
    replies = [{"tools": [{"name": name, "args": args}]} for name, args in calls]
    tools = sorted({name for name, _ in calls})
    return {**scripted(*replies, "end"), "tools": tools, **more}


async def start(
    server: RunsServer, watcher: Watcher, work: Path, *calls: Call, run_id: str = "r", **more: Any
) -> None:
    source = strategy(sequential("a"), a=agent(*calls, **more))
    path = str(server.strategy(source, f"{run_id}.yaml"))
    answer = await watcher.ask("prepare_run", runId=run_id, strategyPath=path, cwd=str(work))
    assert answer["type"] == "run_prepared", answer
    await watcher.send("start_run", runId=run_id)


async def finish(
    watcher: Watcher,
    decisions: Sequence[str] = (),
    run_id: str = "r",
    otherwise: str | None = None,
) -> Used:
    """Collect to the end, answering each permission request with the next decision.

    `otherwise` answers those beyond them; without it there must be none.
    """
    waiting = list(decisions)
    messages: list[Json] = []
    while not messages or messages[-1]["type"] not in TERMINAL:
        message = await watcher.receive()
        messages.append(message)
        if message["type"] == "request_permission":
            assert waiting or otherwise, f"unexpected request: {message}"
            await watcher.send(
                "permission_decision",
                runId=run_id,
                permissionRequestId=message["requestId"],
                decision=waiting.pop(0) if waiting else otherwise,
            )
    assert not waiting, f"never asked for: {waiting}"
    events = [m["event"] for m in messages if m["type"] == "agent_streaming"]
    results = [e for e in events if e["type"] == "tool-result"]
    return Used([e.get("error") or e["output"] for e in results], messages)


async def use(
    server: RunsServer,
    watcher: Watcher,
    work: Path,
    *calls: Call,
    decisions: Sequence[str] = (),
    otherwise: str | None = None,
    run_id: str = "r",
    **more: Any,
) -> Used:
    """Make calls in a run that works in `work`."""
    await start(server, watcher, work, *calls, run_id=run_id, **more)
    return await finish(watcher, decisions, run_id, otherwise)
