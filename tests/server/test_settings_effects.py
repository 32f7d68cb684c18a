"""Settings of runs and secrets, from the environment of a real daemon to what they change.

The other settings are proved so where their subject is tested; `test_settings.py` counts them all.
"""

from collections.abc import Iterator
from pathlib import Path

import pytest
import yaml

from stringd.system.sandbox import Nothing, available
from tests.runs.support import Json, Watcher, scripted, sequential, strategy, watching
from tests.support.daemon import Daemon
from tests.support.person import Person

pytestmark = pytest.mark.anyio

CALL = {"tools": [{"name": "todo_get", "args": {}}]}
COMMAND = {"tools": [{"name": "run_command", "args": {"command": "make nothing"}}]}
HUMAN = {"type": "user"}


@pytest.fixture(scope="module")
def strict(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Daemon]:
    """A daemon with every limit that several tests can share."""
    with Daemon(
        tmp_path_factory.mktemp("strict"),
        STRINGD_RUN_MAX_TOKENS="500",
        STRINGD_RUN_MAX_TOOL_CALLS="2",
        STRINGD_RUN_MAX_CONCURRENT="1",
        STRINGD_RUN_APPROVE_COMMANDS="^make",
        STRINGD_SHOW_SECRETS="1",
        STRINGD_DIFFS="1",
        STRINGD_OVERWRITE_GUARD="1",
    ) as running:
        yield running


async def start(daemon: Daemon, watcher: Watcher, run_id: str, agent: Json) -> None:
    path = daemon.directory / f"{run_id}.yaml"
    path.write_text(yaml.safe_dump(strategy(sequential("a"), a=agent)), "utf-8")
    await watcher.ask("prepare_run", runId=run_id, strategyPath=str(path))
    await watcher.send("start_run", runId=run_id)


@pytest.mark.parametrize(
    ("run_id", "agent", "text"),
    [
        ("tokens", scripted("word " * 1000), "tokens; its budget is 500"),
        ("calls", {**scripted(CALL, CALL, CALL, "x"), "tools": ["todo_get"]}, "made 2 tool calls"),
    ],
)
async def test_a_run_ends_at_the_limits_of_its_owner(
    strict: Daemon, run_id: str, agent: Json, text: str
) -> None:
    async with watching(strict.port) as watcher:
        await start(strict, watcher, run_id, agent)
        ended = await watcher.ended()
    assert ended["error"]["code"] == "BUDGET_EXCEEDED"
    assert text in ended["error"]["message"]


async def test_a_run_ends_when_its_time_is_up(tmp_path: Path) -> None:
    with Daemon(tmp_path, STRINGD_RUN_TIMEOUT_MS="200") as daemon:
        async with watching(daemon.port) as watcher:
            await start(daemon, watcher, "time", scripted({"text": "x", "delayMs": 600_000}))
            ended = await watcher.ended()
    assert ended["error"]["code"] == "BUDGET_EXCEEDED"
    assert "took 0.2 s" in ended["error"]["message"]


async def test_the_owner_is_asked_about_commands_of_their_list(strict: Daemon) -> None:
    async with watching(strict.port) as watcher:
        await start(strict, watcher, "asks", {**scripted(COMMAND, "end"), "tools": ["run_command"]})
        asked = (await watcher.until("request_permission", "strategy_completed"))[-1]
        assert (asked["operation"], asked["resource"]) == ("fs.exec", "make nothing")
        await watcher.send("stop_run", runId="asks")
        await watcher.ended()


async def test_no_more_runs_work_at_once_than_the_owner_allows(strict: Daemon) -> None:
    async with watching(strict.port) as watcher:
        await start(strict, watcher, "first", HUMAN)
        await watcher.until("request_input")
        await start(strict, watcher, "second", HUMAN)
        while (waiting := await queued(watcher)).get("second") is None:
            pass
        assert (waiting["first"], waiting["second"]) == (None, 1)
        for run_id in ("second", "first"):
            await watcher.send("stop_run", runId=run_id)
            await watcher.ended()


async def queued(watcher: Watcher) -> dict[str, int | None]:
    listed = await watcher.ask("list_strategies")
    return {run["runId"]: run.get("queuePosition") for run in listed["runs"]}


async def test_only_the_newest_runs_keep_their_events(tmp_path: Path) -> None:
    events = tmp_path / "data" / "runs" / "events"
    with Daemon(tmp_path, STRINGD_RUN_EVENTS_KEEP="1") as daemon:
        async with watching(daemon.port) as watcher:
            for run_id in ("older", "newer"):
                await start(daemon, watcher, run_id, scripted("hello"))
                await watcher.ended()
        daemon.stop()
        assert all(lines(events / f"{run_id}.jsonl") > 1 for run_id in ("older", "newer"))
        # Events are forgotten when a daemon starts, and every hour.
        daemon.start()
        async with watching(daemon.port) as watcher:
            while lines(events / "older.jsonl") > 1:
                await watcher.ask("ping")
        assert lines(events / "newer.jsonl") > 1


def lines(path: Path) -> int:
    return len(path.read_bytes().splitlines())


def test_secrets_are_shown_to_an_owner_who_wants_to_see_them(
    strict: Daemon, tmp_path: Path
) -> None:
    owner = Person(strict.port, "owner", tmp_path / "home")
    assert owner.gets('/set $TOKEN = "secret-value"') == '$TOKEN = "secret-value" (global)'


def test_edits_show_themselves_and_spare_what_nobody_read(strict: Daemon, tmp_path: Path) -> None:
    owner = Person(strict.port, "editor", tmp_path / "editor")
    owner.put("a.md", "old\n")
    refused = owner.fails("/write a.md\nnew\n")
    assert refused.code == "CONFLICT"
    assert "Recovery: run /edit a.md" in refused.text
    assert owner.gets("/write --force a.md\nnew\n").endswith("\n---\n1 -│ old\n1 +│ new")


async def test_the_owner_decides_how_far_commands_reach_and_what_they_see(tmp_path: Path) -> None:
    seen = tmp_path / "seen"
    seen.mkdir()
    (seen / "key").write_text("CANARY\n", "utf-8")
    command = {"command": f"cat {seen}/key; touch made && echo wrote"}
    agent = {
        **scripted({"tools": [{"name": "run_command", "args": command}]}, "end"),
        "tools": ["run_command"],
    }
    walls = not isinstance(available(), Nothing)
    for level, wrote in (("read-only", not walls), ("open", True)):
        with Daemon(
            tmp_path / level, STRINGD_RUN_SANDBOX=level, STRINGD_SANDBOX_HIDE=str(seen)
        ) as daemon:
            async with watching(daemon.port) as watcher:
                await start(daemon, watcher, level, agent)
                messages = await watcher.until("strategy_completed")
        events = [each["event"] for each in messages if each["type"] == "agent_streaming"]
        output = next(each["output"] for each in events if each["type"] == "tool-result")
        assert ("\nwrote" in output, "CANARY" in output) == (wrote, wrote)


@pytest.mark.skipif(isinstance(available(), Nothing), reason="no walls on this machine")
def test_commands_of_actions_stay_where_their_owner_wants_them(tmp_path: Path) -> None:
    for level, reach in (("workspace", {"inside"}), ("open", {"inside", "outside"})):
        base = tmp_path / level
        with Daemon(base, STRINGD_ACTION_SANDBOX=level) as daemon:
            owner = Person(daemon.port, "owner", base / "user")
            page = f"```act.write\nCLI touch inside; touch {base}/outside; echo done\n```\n"
            owner.put("page.md", page)
            owner.says("/open page.md")
            assert "done" in owner.says("/act.write").text
            made = {path.name for path in base.rglob("*") if path.name in ("inside", "outside")}
        assert made == reach


@pytest.mark.skipif(isinstance(available(), Nothing), reason="no walls on this machine")
def test_commands_of_actions_behind_walls_read_no_secret(tmp_path: Path) -> None:
    for level, read in (("workspace", False), ("open", True)):
        home = tmp_path / level / "user"
        with Daemon(tmp_path / level, STRINGD_ACTION_SANDBOX=level, HOME=str(home)) as daemon:
            owner = Person(daemon.port, "owner", home)
            # Inside the directory the command may write to, so that only hiding keeps it safe.
            owner.put(".ssh/id_canary", "CANARY\n")
            owner.put("page.md", "```act.read\nCLI cat .ssh/id_canary; echo done\n```\n")
            owner.says("/open page.md")
            said = owner.says("/act.read").text
        assert ("CANARY" in said, "done" in said) == (read, True)
