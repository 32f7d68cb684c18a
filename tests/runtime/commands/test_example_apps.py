"""Every app under `examples/apps`, installed and used as its README says."""

import json
import sqlite3
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.runtime.commands.conftest import Caller, StartDaemon
from tests.support.daemon import WAIT_SECONDS

APPS = Path(__file__).parents[3] / "examples" / "apps"


@pytest.fixture(scope="module")
def call(start_daemon: StartDaemon) -> Caller:
    caller = start_daemon()
    for name in ("files", "git", "sqlite", "weather", "notes"):
        installed = caller("file:main", f"/install ./{name}", cwd=APPS)
        assert installed.content.startswith(f"Installed app:{name}\n"), installed.content
    return caller


@pytest.fixture
def weather_url() -> Iterator[str]:
    process = subprocess.Popen(
        [sys.executable, str(APPS / "weather" / "server.py"), "0"],
        stdout=subprocess.PIPE,
        text=True,
    )
    assert process.stdout is not None
    try:
        yield process.stdout.readline().split()[-1]
    finally:
        process.terminate()
        process.communicate(timeout=WAIT_SECONDS)


def test_every_folder_is_listed_and_tested() -> None:
    folders = {path.name for path in APPS.iterdir() if path.is_dir()}
    assert folders == {"files", "git", "sqlite", "weather", "notes", "mcp"}
    readme = (APPS / "README.md").read_text(encoding="utf-8")
    assert all(f"| `{name}` |" in readme for name in folders)


def test_files_finds_and_searches(call: Caller) -> None:
    folder = call.home / ".string" / "my docs"
    folder.mkdir(parents=True)
    (folder / "plan $(x).md").write_text("tea & 'cake'\n", encoding="utf-8")
    (folder / ".hidden").mkdir()
    (folder / ".hidden" / "other.md").write_text("tea & 'cake'\n", encoding="utf-8")
    assert "packages/" in call("app:files", "/open").content
    found = call("app:files", f"/act.find '*.md' --dir '{folder}'")
    assert found.content == "plan $(x).md"
    hit = call("app:files", f"""/act.search "tea & 'cake'" --dir '{folder}'""")
    assert hit.content == "./plan $(x).md:1:tea & 'cake'"
    missed = call("app:files", f"/act.search nowhere-at-all -d '{folder}'")
    assert missed.content == "nothing found"
    assert "plan" in call("app:files", f"/act.usage -d '{folder}'").content


def test_git_reads_a_repository(call: Caller, tmp_path: Path) -> None:
    def git(*arguments: str) -> None:
        identity = ["-c", "user.name=Ann", "-c", "user.email=a@a.test"]
        subprocess.run(
            ["git", *identity, *arguments], cwd=tmp_path, check=True, capture_output=True
        )

    git("init", "-b", "main")
    (tmp_path / "a.txt").write_text("one\n", encoding="utf-8")
    git("add", ".")
    git("commit", "-m", "First {steps} @here")
    topic = "app:git:test"
    assert "[!] Missing required env: $REPO" in call(topic, "/open").content
    call(topic, f'/set $REPO = "{tmp_path}"')
    log = call(topic, "/act.log").content
    assert log.startswith("1 commits on main\n\n- @commit-1 ")
    assert "First {steps} @here (Ann)" in log
    assert "+one" in call(topic, "/act.show @commit-1").content
    (tmp_path / "a.txt").write_text("two\n", encoding="utf-8")
    assert " M a.txt" in call(topic, "/act.status").content
    assert "+two" in call(topic, "/act.diff").content


def test_sqlite_answers_and_changes_nothing(call: Caller, tmp_path: Path) -> None:
    path = tmp_path / "shop.db"
    with sqlite3.connect(path) as db:
        db.execute("CREATE TABLE items (name TEXT, price REAL)")
        db.execute("INSERT INTO items VALUES ('tea', 2.5), ('cup', 4)")
    db.close()
    topic = "app:sqlite:shop"
    call(topic, f'/set $DB = "{path}"')
    assert call(topic, "/act.tables").content.startswith("- @table-1 items: 2 rows")
    assert call(topic, "/act.columns @table-1").content == "- name TEXT\n- price REAL"
    rows = call(topic, '/act.query "select name from items order by price"')
    assert rows.content == "name\n\ntea\ncup"
    refused = call(topic, '/act.query "delete from items"')
    assert refused.code == "EXIT_1"
    assert "readonly" in refused.content


def test_weather_chains_its_answers(call: Caller, weather_url: str) -> None:
    call("app:weather", f'/set $WEATHER_URL = "{weather_url}"')
    found = call("app:weather", "/act.search l")
    assert found.content == (
        "- @city-1 Seoul, South Korea\n- @city-2 Oslo, Norway\n- @city-3 Lima, Peru\n"
        "- @city-4 Los Angeles, USA\n\nnext: /act.now @city-N · /act.forecast @city-N"
    )
    assert call("app:weather", "/act.now @city-4").content == "Los Angeles: 27 °C, sun"
    assert call("app:weather", "/act.forecast @city-2 --days 1").content == (
        "Oslo, the next 1 days:\n- day 1: 3 to 5 °C"
    )
    call("app:weather:korea", '/set $CITY = "Seoul"')
    assert call("app:weather:korea", "/act.now").content == "Seoul: 21 °C, clear"
    assert "$CITY" in call("app:weather", "/act.now").content


def test_notes_keep_one_notebook_per_configuration(call: Caller) -> None:
    topic = "app:notes:work"
    added = call(topic, """/act.add "Buy 'tea'" --text "for $5; rm -rf {home}" """)
    assert added.content == "Added @note: Buy 'tea'"
    call(topic, "/act.add Second")
    assert call(topic, "/act.list").content.startswith(
        "2 open of 2\n\n- [ ] @note-1 Buy 'tea'\n- [ ] @note-2 Second"
    )
    assert call(topic, "/act.read @note-1").content == "## Buy 'tea'\n\nfor $5; rm -rf {home}"
    assert call(topic, "/act.done @note-2").content == "Done: Second"
    assert "1 open of 2" in call(topic, "/open").content
    assert call(topic, "/act.read 9").content == "ERROR(EXIT_1): No note 9; /act.list shows them."
    assert call("app:notes:home", "/act.list").content.startswith("0 open of 0")
    target = call.home / "exported" / "notes.json"
    assert call(topic, f"/act.export {target}").content == f"Wrote {target}"
    assert [note["title"] for note in json.loads(target.read_text("utf-8"))] == [
        "Buy 'tea'",
        "Second",
    ]
