"""A server on whose runs the tools of a scene are tried, call by call."""

import json
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

from stringd.runs.agents.hooks import CallInfo
from tests.runs.guard.reach import SPELLINGS, Reach, Scene, Tree
from tests.runs.support import Json, RunsServer, Watcher, scripted, sequential, strategy
from tests.runs.tools.support import Call, Used, finish


class Before(NamedTuple):
    outside: Json
    inside: Json


@dataclass
class Stage:
    """A server whose runs begin every tool call with the scene as it was.

    For each call it notes whether the trees outside and inside stayed as they were, and whether the
    watched tool did its work in the watched tree.
    """

    server: RunsServer
    watcher: Watcher
    scene: Scene
    watched: tuple[Reach, Tree] | None = None
    untouched: list[bool] = field(default_factory=list)
    untouched_inside: list[bool] = field(default_factory=list)
    done: list[bool] = field(default_factory=list)
    runs: int = 0

    def _state(self) -> Before:
        scene = self.scene
        return Before({**scene.outside.state(), **scene.beside.state()}, scene.inside.state())

    async def before(self, _info: CallInfo, _tool: str, _args: str) -> None:
        self.scene.reset()
        self._before = self._state()

    async def after(self, _info: CallInfo, _tool: str, output: str) -> None:
        state = self._state()
        self.untouched.append(state.outside == self._before.outside)
        self.untouched_inside.append(state.inside == self._before.inside)
        if self.watched is not None:
            reach, tree = self.watched
            self.done.append(reach.done(tree, output))

    def call(self, reach: Reach, tree: Tree, spelling: str) -> Call:
        self.watched = self.watched or (reach, tree)
        path = SPELLINGS[spelling](self.scene, tree, tree.root / reach.leaf)
        return reach.tool, reach.args(self.scene, tree, path)

    async def prepare(self, calls: Sequence[Call], later: Sequence[Call] = ()) -> str:
        """A run that makes these calls, and the others when it is continued."""
        self.runs += 1
        run_id = f"r{self.runs}"
        replies = [*map(_reply, calls), "end", *map(_reply, later), "end"]
        tools = sorted({name for name, _ in (*calls, *later)})
        source = strategy(sequential("a"), a={**scripted(*replies), "tools": tools})
        path, cwd = self.server.directory / "s.json", str(self.scene.work)
        path.write_text(json.dumps(source), "utf-8")
        await self.watcher.ask("prepare_run", runId=run_id, strategyPath=str(path), cwd=cwd)
        return run_id

    async def use(
        self,
        *calls: Call,
        later: Sequence[Call] = (),
        decisions: Sequence[str] = (),
        policy: Json | None = None,
    ) -> Used:
        """Make calls in a run of their own, under a policy changed before it starts."""
        run_id = await self.prepare(calls, later)
        if policy is not None:
            await self.watcher.send("update_policy", runId=run_id, **policy)
        await self.watcher.send("start_run", runId=run_id)
        return await finish(self.watcher, decisions, run_id)

    async def again(self, *decisions: str) -> Used:
        """The next segment of the latest run."""
        run_id = f"r{self.runs}"
        await self.watcher.ask("prepare_run", runId=run_id)
        await self.watcher.send("continue_run", runId=run_id, input="")
        return await finish(self.watcher, decisions, run_id)


def _reply(call: Call) -> Json:
    name, args = call
    return {"tools": [{"name": name, "args": args}]}


def refused(used: Used) -> list[bool]:
    return [output.startswith("Error (permission_denied): ") for output in used.outputs]


def resources(used: Used) -> list[str]:
    return [request["resource"] for request in used.of("request_permission")]


def place(tree: Tree, reach: Reach) -> str:
    return str(tree.root / reach.leaf)
