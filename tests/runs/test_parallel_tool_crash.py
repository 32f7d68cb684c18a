"""The daemon is killed at sixty points of two answers with five calls each, made side by side."""

import json
import signal
from pathlib import Path
from typing import NamedTuple

import pytest
from websockets.asyncio.client import connect
from websockets.exceptions import ConnectionClosed

from tests.requirements import proves
from tests.runs.support import Json, Watcher, scripted, sequential, strategy
from tests.runs.test_crash import timeline
from tests.runs.test_tool_crash import Doomed, finished, follow, second_life, told
from tests.support.daemon import WAIT_SECONDS, Daemon

pytestmark = pytest.mark.anyio

ANSWERS = 2
CALLS = 5
ALL = ANSWERS * CALLS


def calls(answer: int) -> list[tuple[str, Json]]:
    """Three that only meet in the same folder, and two edits of one file."""
    lead = f"{answer}"
    edits = [
        ("edit_file", {"path": "log", "edits": [{"oldText": "END", "newText": f"{lead}{n}\nEND"}]})
        for n in (3, 4)
    ]
    return [
        ("run_command", {"command": f"echo {lead}0 >> marks{lead}0"}),
        ("run_command", {"command": f"echo {lead}1 >> marks{lead}1"}),
        ("create_file", {"path": f"made{lead}2", "content": "x"}),
        *edits,
    ]


def effects(work: Path) -> list[int]:
    """How often each call took effect."""
    log = (work / "log").read_text("utf-8").split()
    found = []
    for answer in range(ANSWERS):
        for number in range(CALLS):
            name = f"{answer}{number}"
            marks = work / f"marks{name}"
            if number < 2:
                found.append(marks.read_text("utf-8").count(name) if marks.exists() else 0)
            elif number == 2:
                found.append(int((work / f"made{name}").exists()))
            else:
                found.append(log.count(name))
    return found


class Point(NamedTuple):
    """At which event of which kind the daemon dies, and when."""

    kind: str
    number: int
    moment: str


POINTS = [
    Point(kind, number, moment)
    for kind in ("tool_started", "tool_finished")
    for number in range(1, ALL + 1)
    for moment in ("before", "torn", "after")
]
QUICK = [
    Point("tool_started", 2, "after"),
    Point("tool_finished", 2, "before"),
    Point("tool_started", 9, "torn"),
    Point("tool_finished", 8, "after"),
]


def source() -> Json:
    replies = [
        {"tools": [{"name": name, "args": args} for name, args in calls(answer)]}
        for answer in range(ANSWERS)
    ]
    tools = ["create_file", "edit_file", "run_command"]
    return strategy(sequential("a"), a={**scripted(*replies, "all done"), "tools": tools})


def begun(daemon: Daemon) -> list[str]:
    return [event["key"] for event in timeline(daemon, "r") if event["type"] == "tool_started"]


async def first_life(daemon: Daemon, path: Path, work: Path) -> None:
    daemon.start()
    url = f"ws://127.0.0.1:{daemon.port}/ws"
    async with connect(url, max_queue=None, proxy=None, open_timeout=WAIT_SECONDS) as socket:
        watcher = Watcher(socket)
        fields = {"runId": "r", "strategyPath": str(path), "cwd": str(work)}
        assert (await watcher.ask("prepare_run", **fields))["type"] == "run_prepared"
        await watcher.send("start_run", runId="r", input="go")
        with pytest.raises(ConnectionClosed):
            await follow(watcher, answer=True)
    assert daemon.stop() == -signal.SIGKILL


async def crash(tmp_path: Path, point: Point) -> None:
    work, path = tmp_path / "work", tmp_path / "s.json"
    work.mkdir()
    (work / "log").write_text("END\n", "utf-8")
    path.write_text(json.dumps(source()), "utf-8")
    # What a sandbox makes of a busy machine is tried elsewhere.
    dying = Doomed(tmp_path, DOOM=":".join(map(str, point)), STRINGD_RUN_SANDBOX="open")
    await first_life(dying, path, work)
    before, started = finished(dying), begun(dying)
    assert len(before) < ALL or point.moment == "after"
    daemon = Daemon(tmp_path, STRINGD_RUN_SANDBOX="open")
    await second_life(daemon)
    check(daemon, work, before, started)


def check(daemon: Daemon, work: Path, before: dict[str, str], started: list[str]) -> None:
    after, outputs, done = finished(daemon), told(daemon), effects(work)
    keys = sorted(after)
    assert len(keys) == len(outputs) == ALL
    assert {key: after[key] for key in before} == before
    # Begun once: what had begun and not ended is not begun again, and the model is told.
    assert sorted(begun(daemon)) == keys
    unknown = {key for key in started if key not in before}
    for key, output, count in zip(keys, outputs, done, strict=True):
        assert ("was interrupted" in output) is (key in unknown)
        assert count in ((0, 1) if key in unknown else (1,)), key
        assert "Error" not in output


@proves("RUN-34", "RUN-50")
@pytest.mark.parametrize("point", QUICK, ids=lambda point: "-".join(map(str, point)))
async def test_a_kill_among_calls_side_by_side_repeats_none(tmp_path: Path, point: Point) -> None:
    await crash(tmp_path, point)


def test_the_points_are_sixty() -> None:
    assert len(set(POINTS)) == 60


@pytest.mark.soak
@pytest.mark.parametrize("point", POINTS, ids=lambda point: "-".join(map(str, point)))
async def test_sixty_kills_among_calls_side_by_side(tmp_path: Path, point: Point) -> None:
    await crash(tmp_path, point)
