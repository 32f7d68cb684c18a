"""Two daemons on one data directory: nothing is lost or doubled when both write."""

import json
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
import yaml

from tests.requirements import proves
from tests.runs.support import TERMINAL, scripted, sequential, strategy, watching
from tests.support.daemon import Daemon
from tests.support.http import request
from tests.support.person import Person

pytestmark = pytest.mark.anyio

EACH = 12
"""So many things are done by each daemon, side by side."""


def side_by_side(work: Callable[[Person, int], None], *people: Person) -> None:
    """Each person does it several times, all at once."""
    with ThreadPoolExecutor(2 * len(people)) as pool:
        jobs = [pool.submit(work, person, n) for n in range(EACH) for person in people]
        for job in jobs:
            job.result()


def users(daemon: Daemon) -> dict[str, dict[str, object]]:
    return {each["id"]: each for each in request(daemon.port, "GET", "/users").json["users"]}


def register(daemon: Daemon, user_id: str, home: Path, **more: object) -> None:
    body = {"id": user_id, "home": str(home), **more}
    assert request(daemon.port, "POST", "/users", body).status == 200


@proves("HEALTH-10")
async def test_nothing_is_lost_or_doubled_when_both_write(tmp_path: Path) -> None:
    with Daemon(tmp_path) as one, Daemon(tmp_path) as two:
        assert any("is used by another daemon too" in line for line in two.output)
        people = [Person(each.port, "u", tmp_path / "user") for each in (one, two)]
        people[0].put("shared.md", "start\n")

        def work(person: Person, number: int) -> None:
            word = f"{person.port}-{number}"
            person.gets(f"/append shared.md\n{word}", f"file:{word}")
            person.gets(f'/set {{kept}} = "{word}"', f"file:{word}")
            person.gets(f'/set $NAME_{word.replace("-", "_")} = "value-{word}"', f"file:{word}")
            register(one if person.port == one.port else two, word, tmp_path / "others")

        side_by_side(work, *people)
    words = {f"{each.port}-{number}" for each in (one, two) for number in range(EACH)}
    with Daemon(tmp_path) as later:
        person = Person(later.port, "u", tmp_path / "user")
        assert set(users(later)) == words | {"u"}
        for word in words:
            assert f'{{kept}} = "{word}"' in person.gets("/set", f"file:{word}")
    lines = person.read("shared.md").decode().splitlines()
    assert sorted(lines) == sorted(["start", *words])
    kept = json.loads(person.read("config.json"))["env"]
    assert kept == {f"NAME_{word.replace('-', '_')}": f"value-{word}" for word in words}


@proves("HEALTH-10")
async def test_a_user_that_one_removes_or_changes_does_not_come_back_through_the_other(
    tmp_path: Path,
) -> None:
    with Daemon(tmp_path) as one, Daemon(tmp_path) as two:
        register(one, "removed", tmp_path / "removed")
        register(one, "changed", tmp_path / "changed")
        for user_id in ("removed", "changed"):
            headers = {"X-User-Id": user_id}
            assert request(two.port, "POST", "/exec", {"cmd": "/info"}, headers).status == 200
        assert request(one.port, "DELETE", "/users/removed").status == 200
        register(one, "changed", tmp_path / "changed", allowed_paths=["/srv"])
        register(two, "new", tmp_path / "new")
        assert set(users(two)) == {"changed", "new"}
        assert users(two)["changed"]["allowedPaths"] == ["/srv"]
        register(two, "changed", tmp_path / "elsewhere")
        assert users(two)["changed"]["allowedPaths"] == ["/srv"]
        register(one, "newer", tmp_path / "newer")
        assert set(users(one)) == {"changed", "new", "newer"}
        assert users(one)["changed"]["home"] == str(tmp_path / "elsewhere")


@proves("RUN-39")
async def test_runs_of_both_are_recorded_once(tmp_path: Path) -> None:
    path = tmp_path / "s.yaml"
    path.write_text(yaml.safe_dump(strategy(sequential("a"), a=scripted("done"))), "utf-8")
    names = [f"run-{number}" for number in range(EACH)]
    with Daemon(tmp_path) as one, Daemon(tmp_path) as two:
        async with watching(one.port) as first, watching(two.port) as second:
            for number, name in enumerate(names):
                watcher = (first, second)[number % 2]
                await watcher.ask("prepare_run", runId=name, strategyPath=str(path))
                await watcher.send("start_run", runId=name, input=name)
            for watcher in (first, second):
                while sum(each["type"] in TERMINAL for each in watcher.seen) < EACH // 2:
                    await watcher.receive()
            for watcher in (first, second):
                listed = (await watcher.ask("list_runs"))["runs"]
                assert {run["runId"]: run["status"] for run in listed} == dict.fromkeys(
                    names, "completed"
                )
    for name in names:
        lines = (one.data_dir / "runs" / f"{name}.jsonl").read_text("utf-8").splitlines()
        kinds = [json.loads(line)["type"] for line in lines]
        assert (kinds.count("run_completed"), kinds.count("step_completed")) == (1, 1)
