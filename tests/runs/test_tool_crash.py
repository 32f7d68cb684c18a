"""The daemon is killed at thirty points of ten tool calls; a resumed run repeats none of them."""

import hashlib
import json
import signal
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple

import pytest
import yaml
from websockets.asyncio.client import connect
from websockets.exceptions import ConnectionClosed

from stringd.runs.tools.trash import Trash
from tests.requirements import proves
from tests.runs.support import TERMINAL, Json, Watcher, scripted, sequential, strategy
from tests.runs.test_crash import timeline
from tests.support.daemon import Daemon

pytestmark = pytest.mark.anyio

OLD = "old\n"
SHA = hashlib.sha256(OLD.encode()).hexdigest()
LOG = "END\n"


@dataclass
class Scene:
    """Everything the calls work on. `marks` gets a line from each shell that runs."""

    work: Path
    outside: Path
    trash: Trash
    archive: str = ""

    @classmethod
    def at(cls, base: Path, data_dir: Path) -> "Scene":
        work, outside = base / "work", base / "outside"
        for folder in (work, outside):
            folder.mkdir()
            (folder / "log").write_text(LOG, "utf-8")
        for name in ("written", "moving", "victim"):
            (work / name).write_text(OLD, "utf-8")
        scene = cls(work, outside, Trash(data_dir / "trash", work))
        scene.archive = str(
            scene.trash.put("restored", OLD.encode(), 0o644, run_id="r", agent_name="a")
        )
        child = {**scripted(_asked(_marked("child")), "child done"), "tools": ["run_command"]}
        plan = {**strategy(sequential("c"), c=child), "name": "plan"}
        (work / "plan.json").write_text(json.dumps(plan), "utf-8")
        return scene

    def marks(self, word: str) -> int:
        path = self.work / "marks"
        return path.read_text("ascii").split().count(word) if path.exists() else 0

    def holds(self, name: str, text: str) -> int:
        path = self.work / name
        return int(path.exists() and path.read_text("utf-8") == text)


Call = tuple[str, Json]


def _marked(word: str) -> Call:
    return "run_command", {"command": f"echo {word} >> marks"}


def _asked(*calls: Call) -> Json:
    return {"tools": [{"name": name, "args": args} for name, args in calls]}


def _edit(path: str) -> Call:
    return "edit_file", {"path": path, "edits": [{"oldText": "END", "newText": "edit\nEND"}]}


class Step(NamedTuple):
    """A call, and how often it took effect."""

    call: Callable[[Scene], Call]
    effects: Callable[[Scene], int]


STEPS: dict[str, Step] = {
    "run_command": Step(lambda _: _marked("command"), lambda s: s.marks("command")),
    "create_file": Step(
        lambda _: ("create_file", {"path": "made", "content": "x"}), lambda s: s.holds("made", "x")
    ),
    "edit_file": Step(
        lambda _: _edit("log"), lambda s: (s.work / "log").read_text("utf-8").count("edit")
    ),
    "write_file": Step(
        lambda _: ("write_file", {"path": "written", "content": "new", "expectedSha256": SHA}),
        lambda s: s.holds("written", "new"),
    ),
    "move_file": Step(
        lambda _: (
            "move_file",
            {"fromPath": "moving", "toPath": "moved", "expectedSha256": SHA},
        ),
        lambda s: s.holds("moved", OLD),
    ),
    "delete_file": Step(
        lambda _: ("delete_file", {"path": "victim"}),
        lambda s: sum(each.metadata.original_path == "victim" for each in s.trash.entries()),
    ),
    "restore_file": Step(
        lambda s: ("restore_file", {"trashedPath": s.archive}), lambda s: s.holds("restored", OLD)
    ),
    "edit_file after a question": Step(
        lambda s: _edit(str(s.outside / "log")),
        lambda s: (s.outside / "log").read_text("utf-8").count("edit"),
    ),
    "launch_strategy": Step(
        lambda _: ("launch_strategy", {"name": "plan.json", "input": "go"}),
        lambda s: s.marks("child"),
    ),
    "string": Step(
        lambda _: ("string", {"topic": "bash:run", "command": "echo string >> marks"}),
        lambda s: s.marks("string"),
    ),
}
NAMES = list(STEPS)
# One by one: `test_parallel_tool_crash.py` asks for several in one answer.
TURNS = [[name] for name in NAMES]


class Point(NamedTuple):
    """Where the daemon dies: at which event of which call, and what is known of it then."""

    step: str
    state: str

    @property
    def doom(self) -> str:
        if self.state == "waiting":
            return "tool_waiting:1:after"
        kind, moment = {
            "begun": ("tool_started", "after"),
            "acted": ("tool_finished", "before"),
            "torn": ("tool_finished", "torn"),
            "recorded": ("tool_finished", "after"),
        }[self.state]
        return f"{kind}:{NAMES.index(self.step) + 1}:{moment}"


def _first_state(step: str) -> str:
    """A call that asks first is not begun before it has its answer."""
    return "waiting" if "question" in step else "begun"


POINTS = [
    Point(step, state) for step in STEPS for state in (_first_state(step), "acted", "recorded")
]
QUICK = [
    Point("run_command", "begun"),
    Point("edit_file", "acted"),
    Point("move_file", "recorded"),
    Point("edit_file after a question", "waiting"),
    Point("launch_strategy", "acted"),
    Point("string", "torn"),
]


class Doomed(Daemon):
    program = ("-P", str(Path(__file__).with_name("doomed.py")))


def source(scene: Scene) -> Json:
    calls = {name: step.call(scene) for name, step in STEPS.items()}
    replies = [_asked(*(calls[name] for name in turn)) for turn in TURNS]
    tools = sorted({name for name, _ in calls.values()})
    return strategy(sequential("a"), a={**scripted(*replies, "all done"), "tools": tools})


async def follow(watcher: Watcher, *, answer: bool) -> Json:
    """To the end of the run, allowing what is asked for."""
    while (message := await watcher.receive())["type"] not in TERMINAL:
        if message["type"] == "request_permission" and answer:
            await watcher.send(
                "permission_decision",
                runId="r",
                permissionRequestId=message["requestId"],
                decision="allow",
            )
    return message


async def first_life(daemon: Daemon, scene: Scene, path: Path, point: Point) -> None:
    """Run until the daemon dies, which it must."""
    daemon.start()
    async with connect(f"ws://127.0.0.1:{daemon.port}/ws", max_queue=None, proxy=None) as socket:
        watcher = Watcher(socket)
        fields = {"runId": "r", "strategyPath": str(path), "cwd": str(scene.work)}
        assert (await watcher.ask("prepare_run", **fields))["type"] == "run_prepared"
        await watcher.send("start_run", runId="r", input="go")
        with pytest.raises(ConnectionClosed):
            await follow(watcher, answer=point.state != "waiting")
    assert daemon.stop() == -signal.SIGKILL


async def second_life(daemon: Daemon) -> None:
    with daemon:
        url = f"ws://127.0.0.1:{daemon.port}/ws"
        async with connect(url, max_queue=None, proxy=None) as socket:
            watcher = Watcher(socket)
            assert (await watcher.ask("prepare_run", runId="r"))["type"] == "run_prepared"
            await watcher.send("continue_run", runId="r", input="", resume=True)
            assert (await follow(watcher, answer=True))["result"] == "all done"


def finished(daemon: Daemon) -> dict[str, str]:
    """What is on record of each call that ended, by key; never twice."""
    events = [event for event in timeline(daemon, "r") if event["type"] == "tool_finished"]
    found = {event["key"]: event["output"] for event in events}
    assert len(found) == len(events)
    return found


def told(daemon: Daemon) -> list[str]:
    """What the model was told of each call, in order."""
    record = next(e["record"] for e in timeline(daemon, "r") if e["type"] == "agent_call")
    answers = [m["content"] for m in record["responseMessages"] if m["role"] == "tool"]
    return [part["output"]["value"] for answer in answers for part in answer]


async def crash(tmp_path: Path, point: Point) -> None:
    dying = Doomed(tmp_path, DOOM=point.doom)
    scene = Scene.at(tmp_path, dying.data_dir)
    path = tmp_path / "s.yaml"
    path.write_text(yaml.safe_dump(source(scene)), "utf-8")
    await first_life(dying, scene, path, point)
    number = NAMES.index(point.step)
    before = finished(dying)
    assert len(before) == number + (point.state == "recorded")
    reached = point.state not in ("begun", "waiting")
    assert [step.effects(scene) for step in STEPS.values()] == [
        int(index < number or (index == number and reached)) for index in range(len(STEPS))
    ]
    daemon = Daemon(tmp_path)
    await second_life(daemon)
    check(daemon, scene, point, before)


def check(daemon: Daemon, scene: Scene, point: Point, before: dict[str, str]) -> None:
    number, after = NAMES.index(point.step), finished(daemon)
    assert {key: after[key] for key in before} == before
    assert len(after) == len(STEPS)
    unknown = point.state in ("begun", "acted", "torn")
    outputs = told(daemon)
    assert ["was interrupted" in output for output in outputs] == [
        unknown and index == number for index in range(len(STEPS))
    ]
    assert not [output for output in outputs if "Error" in output]
    assert [step.effects(scene) for step in STEPS.values()] == [
        0 if point.state == "begun" and index == number else 1 for index in range(len(STEPS))
    ]


@proves("RUN-34")
@pytest.mark.parametrize("point", QUICK, ids="-".join)
async def test_a_kill_during_a_tool_call_repeats_none(tmp_path: Path, point: Point) -> None:
    await crash(tmp_path, point)


def test_the_points_are_thirty() -> None:
    assert len(set(POINTS)) == 30


@pytest.mark.soak
@proves("RUN-34")
@pytest.mark.parametrize("point", POINTS, ids="-".join)
async def test_thirty_kills_during_tool_calls_repeat_none(tmp_path: Path, point: Point) -> None:
    await crash(tmp_path, point)
