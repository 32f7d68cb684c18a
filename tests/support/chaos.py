"""A daemon under mixed load that is killed again and again, and what it must have kept.

Each kind of work knows what it sent and what was acknowledged. What was acknowledged must be there
afterwards, once; what was not may be there once or not at all; nothing may be there in part.
"""

import asyncio
import http.client
import itertools
import json
import os
import random
import shlex
from abc import abstractmethod
from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Final

import yaml
from websockets.asyncio.client import connect
from websockets.exceptions import ConnectionClosed, InvalidHandshake

from stringd.system.temporary_names import is_temporary
from tests.runs.support import TERMINAL, Json, Watcher, scripted, sequential, strategy
from tests.support.daemon import WAIT_SECONDS, Daemon
from tests.support.http import request
from tests.support.person import Person

_GONE: Final = (OSError, http.client.HTTPException, ConnectionClosed, InvalidHandshake)
"""How a client learns that the daemon was killed."""
_LINES: Final = 2000
"""So many lines has a file that is replaced whole: half of it would show."""


class LostError(AssertionError):
    """Something that was acknowledged is gone, or is there in part or twice."""


class Work:
    """One kind of load: `step` does something once, `check` compares with what was promised."""

    def __init__(self, number: int, home: Path, nonce: str) -> None:
        self.topic = f"file:{type(self).__name__.lower()}-{number}"
        self.name = f"{type(self).__name__.lower()}-{number}"
        self.home = home
        self.nonce = nonce
        self.sent: list[str] = []
        self.done: list[str] = []
        self._tokens = (f"{self.name}.{count}" for count in itertools.count(1))

    async def step(self, person: Person) -> None:
        """Do one thing; raises one of `_GONE` when the daemon ends meanwhile."""
        token = next(self._tokens)
        self.sent.append(token)
        if await asyncio.to_thread(self.act, person, token):
            self.done.append(token)

    @abstractmethod
    def act(self, person: Person, token: str) -> bool:
        """Whether what was asked for was acknowledged."""

    @abstractmethod
    def check(self, person: Person) -> None:
        """Raises `LostError`. The daemon runs again."""

    def _check_lines(self, path: Path) -> None:
        text = path.read_text("utf-8") if path.exists() else ""
        if text and not text.endswith("\n"):
            raise LostError(f"{path.name} ends in half a line")
        counted = Counter(text.split("\n")[:-1])
        for token in self.done:
            if counted[token] != 1:
                raise LostError(f"{token} was acknowledged and is there {counted[token]} times")
        for token, times in counted.items():
            if token not in self.sent or times > 1:
                raise LostError(f"{token} is there {times} times")

    def _check_latest(self, found: str | None) -> None:
        """Of values that replace each other, the last one acknowledged or one sent since."""
        if not self.done and found is None:
            return
        after = self.sent[self.sent.index(self.done[-1]) :] if self.done else self.sent
        if found not in after:
            raise LostError(f"{self.name} is {found}, acknowledged was {self.done[-1:]}")


class Appends(Work):
    """`/append` of a line to a document."""

    def act(self, person: Person, token: str) -> bool:
        path = self.home / f"{self.name}.md"
        if not path.exists():
            path.touch()
        return bool(person.says(f"/append {path.name}\n{token}\n", self.topic).head["ok"])

    def check(self, person: Person) -> None:
        path = self.home / f"{self.name}.md"
        if path.exists():
            # The first line is the empty one that the file began with.
            path.write_text(path.read_text("utf-8").lstrip("\n"), "utf-8")
        self._check_lines(path)


class Writes(Work):
    """`/write` of a whole document, and `/set` of a variable of the topic beside it."""

    def act(self, person: Person, token: str) -> bool:
        body = f"{token}\n" * _LINES
        said = person.says(f"/write {self.name}.md\n{body}", self.topic)
        if said.code == "CONFLICT":
            # A write that was never acknowledged is not what this topic has read.
            person.gets(f"/edit {self.name}.md:L1", self.topic)
        return bool(said.head["ok"])

    def check(self, person: Person) -> None:
        path = self.home / f"{self.name}.md"
        lines = path.read_text("utf-8").split("\n") if path.exists() else []
        found = {line for line in lines if line}
        if len(found) > 1 or sum(map(bool, lines)) not in (0, _LINES):
            raise LostError(f"{path.name} holds {found} in {len(lines)} lines")
        self._check_latest(found.pop() if found else None)


class Variables(Work):
    """`/set` of a variable of the topic, which `sessions.db` keeps."""

    def act(self, person: Person, token: str) -> bool:
        return bool(person.says(f'/set {{kept}} = "{token}"', self.topic).head["ok"])

    def check(self, person: Person) -> None:
        self._check_latest(_value(person.gets("/set", self.topic), "{kept}"))


class Names(Work):
    """`/set` of a stored `$NAME`, which a file of the home keeps."""

    def act(self, person: Person, token: str) -> bool:
        return bool(person.says(f'/set ${self._name} = "{token}"', self.topic).head["ok"])

    def check(self, person: Person) -> None:
        path = self.home / "config.json"
        kept = json.loads(path.read_text("utf-8")).get("env", {}) if path.exists() else {}
        self._check_latest(kept.get(self._name))

    @property
    def _name(self) -> str:
        return self.name.upper().replace("-", "_")


def _value(listing: str, name: str) -> str | None:
    found = [line for line in listing.splitlines() if line.startswith(f'{name} = "')]
    return found[0].split('"')[1] if found else None


class Commands(Work):
    """`/exec`, with a job that leaves its session."""

    def act(self, person: Person, token: str) -> bool:
        stays = f"setsid nohup sleep 1000.{self.nonce} >/dev/null 2>&1 </dev/null &"
        line = f"echo {token} >> {self.home}/{self.name}; {stays}"
        return bool(person.says(f"/exec {line}", self.topic).head["ok"])

    def check(self, person: Person) -> None:
        self._check_lines(self.home / self.name)


class Shells(Work):
    """A bash topic with jobs."""

    def act(self, person: Person, token: str) -> bool:
        stays = f"sleep 1000.{self.nonce} & setsid -f sleep 1000.{self.nonce};"
        line = f"echo {token} >> {self.home}/{self.name}; {stays}"
        return bool(person.says(line, f"bash:{self.name}").head["ok"])

    def check(self, person: Person) -> None:
        self._check_lines(self.home / self.name)


class Actions(Work):
    """An action of a page: its command, and the file its template saves."""

    def act(self, person: Person, token: str) -> bool:
        page = self.home / f"{self.name}.md"
        if not page.exists():
            command = f"CLI echo {{word}} | tee -a {self.home / self.name}"
            response = f"save: {{Response.body}}\nto: {self.home}/{self.name}.saved"
            page.write_text(
                f"```act.go\n{command}\n  word: string (required)\n```\n"
                f"```act.go.response\n{response}\n```\n",
                "utf-8",
            )
        if not person.says(f"/open {page.name}", self.topic).head["ok"]:
            return False
        return bool(person.says(f"/act.go {token}", self.topic).head["ok"])

    def check(self, person: Person) -> None:
        self._check_lines(self.home / self.name)
        path = self.home / f"{self.name}.saved"
        self._check_latest(path.read_text("utf-8").strip() if path.exists() else None)


class Installs(Work):
    """An app that is installed again and again, a new version each time."""

    def act(self, person: Person, token: str) -> bool:
        source = self.home / "sources" / self.name
        for file in ("string.md", "more/page.md"):
            path = source / file
            path.parent.mkdir(parents=True, exist_ok=True)
            head = f"---\ntype: app\nname: {self.name}\n---\n"
            action = f"```act.go\nCLI echo {token}\n```\n"
            path.write_text(head + f"{token}\n" * _LINES + action, "utf-8")
        said = person.says(f"/install ./sources/{self.name}", self.topic, self.home)
        if not said.head["ok"]:
            raise LostError(f"{self.name} cannot be installed: {said.text[:300]}")
        return True

    def check(self, person: Person) -> None:
        topic = f"app:{self.name}"
        opened = person.says("/open", topic)
        if not opened.head["ok"]:
            if self.done:
                raise LostError(f"{self.name} was installed and does not open: {opened.text[:300]}")
            return
        said = person.says("/act.go", topic)
        if not said.head["ok"]:
            raise LostError(f"{self.name} was installed and may nothing: {said.text[:300]}")
        self._check_latest(said.text.strip())
        for file in (self.home / "packages" / self.name).rglob("*.md"):
            found = [line for line in file.read_text("utf-8").split("\n") if line == said.text]
            if len(found) < _LINES:
                raise LostError(f"{file} is of another version than the app")


class Users(Work):
    """`POST /users`."""

    def act(self, person: Person, token: str) -> bool:
        body = {"id": token, "home": str(self.home / "others")}
        return request(person.port, "POST", "/users", body).status == 200

    def check(self, person: Person) -> None:
        listed = request(person.port, "GET", "/users").json["users"]
        known = {each["id"] for each in listed} - {person.id}
        if not set(self.done) <= known <= set(self.sent):
            raise LostError(
                f"users: {set(self.done) - known} lost, {known - set(self.sent)} made up"
            )


class Runs:
    """Runs over `/ws` whose tools write down that they began; resumed after each kill."""

    STEPS: Final = 3

    def __init__(self, base: Path, nonce: str) -> None:
        self.work = base / "work"
        self.work.mkdir()
        self.path = base / "run.yaml"
        agents = {f"a{step}": self._agent(step, nonce) for step in range(self.STEPS)}
        self.path.write_text(yaml.safe_dump(strategy(sequential(*agents), **agents)), "utf-8")
        self.accepted: set[str] = set()
        self.completed: set[str] = set()
        self._ids = (f"run-{number}" for number in itertools.count(1))

    def _agent(self, step: int, nonce: str) -> Json:
        line = f'echo "$STRINGD_RUN_ID.{step}" >> begun; setsid -f sleep 1000.{nonce}; true'
        tools = [{"name": "run_command", "args": {"command": line}}]
        return {**scripted({"tools": tools}, f"step {step}"), "tools": ["run_command"]}

    async def step(self, port: int, counted: Callable[[], None], active: int = 2) -> None:
        """Continue what was interrupted and start more, until the daemon is gone."""
        url = f"ws://127.0.0.1:{port}/ws"
        async with connect(url, max_queue=None, proxy=None) as socket:
            watcher = Watcher(socket)
            listed = (await watcher.ask("list_runs"))["runs"]
            self._check_listed(listed)
            left = [run["runId"] for run in listed if run["status"] != "completed"]
            for run_id in left:
                prepared = await watcher.ask("prepare_run", runId=run_id)
                assert prepared["type"] == "run_prepared", prepared
                await watcher.send("continue_run", runId=run_id, input="", resume=True)
            live = len(left)
            while True:
                while live < active:
                    live += 1
                    await self._start(watcher)
                message = await watcher.receive()
                counted()
                if message["type"] == "strategy_started":
                    self.accepted.add(message["runId"])
                elif message["type"] in TERMINAL:
                    assert message["type"] == "strategy_completed", message
                    self.completed.add(message["runId"])
                    live -= 1

    async def _start(self, watcher: Watcher) -> None:
        run_id = next(self._ids)
        fields = {"runId": run_id, "strategyPath": str(self.path), "cwd": str(self.work)}
        prepared = await watcher.ask("prepare_run", **fields)
        assert prepared["type"] == "run_prepared", prepared
        await watcher.send("start_run", runId=run_id, input=run_id)

    def _check_listed(self, listed: list[Json]) -> None:
        status = {run["runId"]: run["status"] for run in listed}
        if not self.accepted <= status.keys():
            raise LostError(f"runs were accepted and are gone: {self.accepted - status.keys()}")
        reopened = {run_id for run_id in self.completed if status[run_id] != "completed"}
        if reopened:
            raise LostError(f"runs had completed and are open again: {reopened}")

    async def finish(self, port: int) -> None:
        """Bring every run to its end."""
        url = f"ws://127.0.0.1:{port}/ws"
        async with connect(url, max_queue=None, proxy=None) as socket:
            watcher = Watcher(socket)
            listed = (await watcher.ask("list_runs"))["runs"]
            self._check_listed(listed)
            for run_id in [run["runId"] for run in listed if run["status"] != "completed"]:
                await watcher.ask("prepare_run", runId=run_id)
                await watcher.send("continue_run", runId=run_id, input="", resume=True)
                assert (await watcher.ended())["type"] == "strategy_completed"
                self.completed.add(run_id)

    def check(self, timelines: Path) -> int:
        """Raises `LostError`; how many tool calls began."""
        path = self.work / "begun"
        begun = Counter(path.read_text("utf-8").split()) if path.exists() else Counter[str]()
        repeated = [call for call, times in begun.items() if times > 1]
        if repeated:
            raise LostError(f"tool calls were repeated: {repeated}")
        for run_id in self.completed:
            missing = [n for n in range(self.STEPS) if f"{run_id}.{n}" not in begun]
            # A call that was interrupted before it acted is not made again, and its agent told.
            told = (timelines / f"{run_id}.jsonl").read_text("utf-8").count("was interrupted")
            if missing and not told:
                raise LostError(f"tool calls of {run_id} were never made: {missing}")
        return begun.total()


KINDS: Final[tuple[type[Work], ...]] = (
    *(Appends, Writes, Variables, Names, Commands, Shells, Actions, Installs, Users),
)


class Chaos:
    """A daemon, its load, and a die that says when it is killed."""

    def __init__(self, base: Path, seed: int) -> None:
        self.dice = random.Random(seed)
        # Digits that no other process has in its arguments.
        self.nonce = f"{os.getpid()}{seed}{base.stat().st_ino}"
        self.base = base
        self.daemon = Daemon(base)
        home = base / "user"
        home.mkdir()
        self.works = [kind(number, home, self.nonce) for kind in KINDS for number in range(1)]
        self.runs = Runs(base, self.nonce)
        self.home = home
        self.acknowledged = 0

    @property
    def done(self) -> int:
        return sum(len(work.done) for work in self.works)

    def person(self) -> Person:
        return Person(self.daemon.port, "u", self.home)

    async def life(self) -> None:
        """Start the daemon, work with it, and kill it at some moment."""
        await asyncio.to_thread(self.daemon.start)
        self._left = self.dice.randint(0, 80)
        self._enough = asyncio.Event()
        delay = self.dice.random() * 0.05
        pause = asyncio.create_task(self._kill(delay))
        loads = [self._load(work) for work in self.works]
        try:
            await asyncio.gather(self._runs(), *loads)
        finally:
            await pause
        await self._wait_for_orphans()

    async def _kill(self, delay: float) -> None:
        if self._left:
            async with asyncio.timeout(WAIT_SECONDS):
                await self._enough.wait()
        # Not a wait for anything: the moment is to be any.
        await asyncio.sleep(delay)
        await asyncio.to_thread(self.daemon.kill)

    def _count(self) -> None:
        self._left -= 1
        if self._left <= 0:
            self._enough.set()

    async def _load(self, work: Work) -> None:
        try:
            person = await asyncio.to_thread(self.person)
            while True:
                await work.step(person)
                self._count()
        except _GONE:
            return

    async def _runs(self) -> None:
        try:
            await self.runs.step(self.daemon.port, self._count)
        except _GONE:
            return

    async def _wait_for_orphans(self) -> None:
        """Nothing that the daemon started is left, without another daemon."""
        try:
            async with asyncio.timeout(WAIT_SECONDS):
                while self.orphans():  # noqa: ASYNC110 - a process tells nobody that it ended
                    await asyncio.sleep(0.01)
        except TimeoutError:
            raise LostError(f"still running: {self.orphans()}") from None

    def orphans(self) -> list[str]:
        """What runs with our digits in its arguments."""
        return [line for line in _command_lines() if self.nonce in line]

    async def check(self) -> dict[str, int]:
        """Compare with what was promised. Raises `LostError`; figures."""
        with self.daemon:
            await self.runs.finish(self.daemon.port)
            person = await asyncio.to_thread(self.person)
            for work in self.works:
                await asyncio.to_thread(work.check, person)
        await self._wait_for_orphans()
        begun = self.runs.check(self.daemon.data_dir / "runs")
        left = self.leftovers()
        if left:
            raise LostError(f"temporary files are left: {left}")
        figures = {work.name: len(work.done) for work in self.works}
        return {
            **figures,
            "runs": len(self.runs.accepted),
            "tool calls": begun,
            "temporary files": len(left),
        }

    def leftovers(self) -> list[str]:
        """Files with a name that only something unfinished has."""
        places = (self.home, self.daemon.data_dir, self.runs.work)
        found = [path for place in places for path in place.rglob("*") if _is_unfinished(path)]
        return [str(path.relative_to(self.base)) for path in found]


def _is_unfinished(path: Path) -> bool:
    return is_temporary(path.name) or path.suffix in (".tmp", ".old", ".part", ".was", ".gone")


def _command_lines() -> Iterator[str]:
    for name in os.listdir("/proc"):  # noqa: PTH208
        if name.isdecimal() and int(name) != os.getpid():
            try:
                yield shlex.join(
                    Path(f"/proc/{name}/cmdline").read_bytes().decode(errors="replace").split("\0")
                )
            except OSError:
                continue


async def kill_often(base: Path, kills: int, seed: int) -> dict[str, int]:
    """So many lives that end by `kill -9`, then what is left of them. Raises `LostError`."""
    print(f"seed {seed}")
    chaos = Chaos(base, seed)
    for _ in range(kills):
        await chaos.life()
    figures = await chaos.check()
    print(f"{kills} kills: {figures}")
    return figures
