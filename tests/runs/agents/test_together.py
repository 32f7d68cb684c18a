"""Tool calls of one answer are made side by side, bounded, and in turns where they must be."""

import asyncio
import json
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

import pytest

from stringd.runs import RunLimits
from stringd.runs.agents.together import Work, together
from stringd.runs.tools.claims import Claims
from tests.requirements import proves
from tests.runs.support import (
    Json,
    Watcher,
    kinds,
    scripted,
    sequential,
    serving,
    strategy,
    watching,
)
from tests.support.daemon import WAIT_SECONDS, Daemon

pytestmark = pytest.mark.anyio


def asks(*calls: tuple[str, Json]) -> Json:
    return {"tools": [{"name": name, "args": args} for name, args in calls]}


def question(text: str) -> tuple[str, Json]:
    return "ask_question", {"question": text}


def agent(*calls: tuple[str, Json]) -> Json:
    return {**scripted(asks(*calls), "done"), "tools": sorted({name for name, _ in calls})}


async def started(watcher: Watcher, path: Path, work: Path) -> None:
    fields = {"runId": "r", "strategyPath": str(path), "cwd": str(work)}
    assert (await watcher.ask("prepare_run", **fields))["type"] == "run_prepared"
    await watcher.send("start_run", runId="r", input="go")


async def answer(watcher: Watcher, request_id: str, text: str) -> None:
    fields = {"runId": "r", "questionRequestId": request_id, "response": text}
    await watcher.send("question_response", **fields)


async def run(tmp_path: Path, *calls: tuple[str, Json], **options: Any) -> list[Json]:
    async with serving(tmp_path, **options) as server:
        watcher = await server.watcher()
        path = server.strategy(strategy(sequential("a"), a=agent(*calls)))
        return await watcher.run(path, "go")


def outputs(messages: list[Json]) -> dict[str, str]:
    """What each call gave, by the number it was asked under."""
    events = [m["event"] for m in messages if m["type"] == "agent_streaming"]
    return {e["toolCallId"]: e["output"] for e in events if e["type"] == "tool-result"}


NOTHING = Claims()


class Stage:
    """Work that says when it begins, and ends when it is let."""

    def __init__(self) -> None:
        self.begun: list[str] = []
        self.gates: dict[str, asyncio.Event] = {}
        self.moved = asyncio.Event()

    def work(self, name: str, claims: Claims = NOTHING) -> Work:
        self.gates[name] = asyncio.Event()

        async def begin() -> None:
            self.begun.append(name)
            self.moved.set()
            await self.gates[name].wait()

        return Work(claims, begin)

    async def until(self, *names: str) -> None:
        async with asyncio.timeout(WAIT_SECONDS):
            while self.begun != list(names):
                self.moved.clear()
                await self.moved.wait()

    async def settled(self) -> None:
        """Long enough for anything that could begin to do so."""
        for _ in range(20):
            await asyncio.sleep(0)


async def test_no_more_work_at_once_than_allowed() -> None:
    stage = Stage()
    task = asyncio.create_task(together([stage.work(n) for n in "abcd"], 2))
    await stage.until("a", "b")
    await stage.settled()
    assert stage.begun == ["a", "b"]
    stage.gates["b"].set()
    await stage.until("a", "b", "c")
    for gate in stage.gates.values():
        gate.set()
    await task
    assert stage.begun == ["a", "b", "c", "d"]


FILE, OTHER, FOLDER = Path("/w/a"), Path("/w/b"), Path("/w")


@pytest.mark.parametrize(
    ("first", "second", "waits"),
    [
        (Claims(writes=(FILE,)), Claims(writes=(FILE,)), True),
        (Claims(writes=(FILE,)), Claims(reads=(FILE,)), True),
        (Claims(reads=(FILE,)), Claims(writes=(FILE,)), True),
        (Claims(reads=(FILE,)), Claims(reads=(FILE,)), False),
        (Claims(writes=(FILE,)), Claims(writes=(OTHER,)), False),
        (Claims(writes=(FILE,)), Claims(reads=(FOLDER,)), True),
        (Claims(reads=(FOLDER,)), Claims(writes=(FILE,)), True),
        (Claims(reads=(FOLDER,)), Claims(reads=(FOLDER,)), False),
        (Claims(writes=(Path("/w/ab"),)), Claims(writes=(FILE,)), False),
        (Claims(state="todos"), Claims(state="todos"), True),
        (Claims(state="todos"), Claims(state="topic x"), False),
        (Claims(), Claims(), False),
    ],
)
async def test_work_waits_for_what_uses_the_same(
    first: Claims, second: Claims, waits: bool
) -> None:
    stage = Stage()
    works = [stage.work("first", first), stage.work("second", second)]
    task = asyncio.create_task(together(works, 8))
    await stage.until(*(["first"] if waits else ["first", "second"]))
    await stage.settled()
    assert stage.begun == (["first"] if waits else ["first", "second"])
    for gate in stage.gates.values():
        gate.set()
    await task
    assert stage.begun == ["first", "second"]


async def test_the_first_failure_ends_the_others_and_is_raised() -> None:
    stage, ended = Stage(), asyncio.Event()

    async def fails() -> None:
        raise ValueError("broken")

    def endless() -> Callable[[], Awaitable[None]]:
        async def begin() -> None:
            try:
                await asyncio.Event().wait()
            finally:
                ended.set()

        return begin

    works = [Work(Claims(), endless()), Work(Claims(), fails), stage.work("later")]
    with pytest.raises(ValueError, match="broken"):
        await together(works, 8)
    assert ended.is_set()


@proves("RUN-50")
async def test_calls_are_shown_first_and_questions_are_open_together(tmp_path: Path) -> None:
    async with serving(tmp_path) as server:
        watcher = await server.watcher()
        source = strategy(sequential("a"), a=agent(*map(question, ("one?", "two?", "three?"))))
        await started(watcher, server.strategy(source), tmp_path)
        prompts: dict[str, str] = {}
        seen: list[Json] = []
        while len(prompts) < 3:
            message = await watcher.receive()
            seen.append(message)
            if message["type"] == "request_question":
                prompts[message["question"]] = message["requestId"]
        assert kinds(seen)[-6:-3] == ["a:tool-call"] * 3
        for text in ("three?", "one?", "two?"):
            await answer(watcher, prompts[text], f"answer to {text}")
        messages = await watcher.until("strategy_completed", "strategy_error")
        assert messages[-1]["result"] == "done"
        record = next(e["record"] for e in server.timeline("r") if e["type"] == "agent_call")
        told = record["responseMessages"][1]["content"]
        assert [part["output"]["value"] for part in told] == [
            f'User response: "answer to {text}"' for text in ("one?", "two?", "three?")
        ]


async def test_commands_that_wait_for_each_other_both_end(tmp_path: Path) -> None:
    wait = "touch {0}; for i in $(seq 1000); do [ -e {1} ] && echo met && exit; sleep 0.02; done"
    one, two = wait.format("a", "b"), wait.format("b", "a")
    calls = [("run_command", {"command": each}) for each in (one, two)]
    messages = await run(tmp_path, *calls)
    assert ["met" in text for text in outputs(messages).values()] == [True, True]


async def test_edits_of_one_file_are_made_in_the_order_they_were_asked_for(tmp_path: Path) -> None:
    (tmp_path / "log").write_text("0\n", "utf-8")
    edits: list[tuple[str, Json]] = [
        ("edit_file", {"path": path, "edits": [{"oldText": f"{n}\n", "newText": f"{n + 1}\n"}]})
        for n, path in enumerate(["log", "./log", str(tmp_path / "log"), "log", "log"])
    ]
    calls = [*edits, ("read_file", {"path": "log"}), ("run_command", {"command": "cat log"})]
    messages = await run(tmp_path, *calls)
    assert (tmp_path / "log").read_text("utf-8") == "5\n"
    found = outputs(messages)
    assert "5" in found["demo-0-5"]
    assert "5" in found["demo-0-6"]
    assert not [text for text in found.values() if "Error" in text]


async def test_todos_keep_the_order_they_were_asked_for(tmp_path: Path) -> None:
    adds = [("todo_add", {"content": f"item {n}"}) for n in range(6)]
    messages = await run(tmp_path, *adds, ("todo_get", {}))
    lines = outputs(messages)["demo-0-6"].splitlines()
    assert [line.rpartition(" ")[2] for line in lines] == [str(n) for n in range(6)]


async def test_calls_beyond_the_budget_are_not_made_and_the_others_are(tmp_path: Path) -> None:
    calls: list[tuple[str, Json]] = [
        ("create_file", {"path": f"f{n}", "content": "x"}) for n in range(4)
    ]
    messages = await run(tmp_path, *calls, limits=RunLimits(tool_calls=2))
    assert messages[-1]["error"]["code"] == "BUDGET_EXCEEDED"
    assert [(tmp_path / f"f{n}").exists() for n in range(4)] == [True, True, False, False]


async def test_a_stop_ends_every_call_that_is_open(tmp_path: Path) -> None:
    async with serving(tmp_path) as server:
        watcher = await server.watcher()
        source = strategy(sequential("a"), a=agent(question("one?"), question("two?")))
        await started(watcher, server.strategy(source), tmp_path)
        for _ in range(2):
            await watcher.until("request_question")
        await watcher.send("stop_run", runId="r")
        assert (await watcher.ended())["error"]["code"] == "CANCELLED"
        assert await watcher.quiet() == []


async def test_the_owner_says_how_many_work_at_once(tmp_path: Path) -> None:
    path = tmp_path / "s.json"
    with Daemon(tmp_path, STRINGD_RUN_PARALLEL_TOOLS="1") as daemon:
        async with watching(daemon.port) as watcher:
            source = strategy(sequential("a"), a=agent(question("one?"), question("two?")))
            path.write_text(json.dumps(source), "utf-8")
            await started(watcher, path, tmp_path)
            for text in ("one?", "two?"):
                asked = (await watcher.until("request_question"))[-1]
                assert asked["question"] == text
                assert await watcher.quiet() == []
                await answer(watcher, asked["requestId"], "yes")
            assert (await watcher.ended())["result"] == "done"
