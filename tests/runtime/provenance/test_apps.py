"""What was installed is the app; what changed or appeared later is not."""

import json
import shutil
import sys
from pathlib import Path

import pytest

from stringd.runtime.editing.paths import RECORD_FILE
from tests.requirements import proves
from tests.runtime.provenance.support import SECRET, Attempt, register
from tests.support.daemon import Daemon
from tests.support.http import request
from tests.support.person import Person
from tests.support.web import WebServer

HELPED = """---
name: helped
type: app
default: go
---
# Helped

```act.go
CLI ./helper
```
"""


def helped(person: Person, directory: Path, output: str) -> Path:
    """Install an app with a script of its own; where the script is."""
    directory.mkdir(parents=True, exist_ok=True)
    (directory / "string.md").write_text(HELPED, encoding="utf-8")
    helper = directory / "helper"
    helper.write_text(f"#!/bin/sh\necho {output}\n", encoding="utf-8")
    helper.chmod(0o755)
    person.gets(f"/install {directory}", cwd=directory)
    return person.home / "packages" / "helped" / "helper"


@proves("PRV-09")
@pytest.mark.parametrize("how", ["changed", "removed", "linked"])
def test_a_file_of_the_package_that_differs_takes_its_rights(
    person: Person, tmp_path: Path, how: str
) -> None:
    source = tmp_path / "helped"
    helper = helped(person, source, "good")
    assert person.gets("/open", "app:helped").endswith("---\n\ngood")
    canary = tmp_path / "canary"
    swapped = tmp_path / "swapped"
    swapped.write_text(f"#!/bin/sh\ntouch {canary}\n", encoding="utf-8")
    swapped.chmod(0o755)
    helper.unlink()
    if how == "changed":
        shutil.copy(swapped, helper)
    elif how == "linked":
        helper.symlink_to(swapped)
    opened = person.says("/open", "app:helped")
    assert opened.message.splitlines()[1:] == [
        "app:helped is not what was installed: helper changed.",
        f"Recovery: look at it, then install it again: /install {source}/string.md",
    ]
    refused = person.fails("/act.go", "app:helped")
    assert refused.code == "FILE_NOT_ALLOWED"
    assert "helper changed" in refused.text
    assert not canary.exists()
    person.gets(f"/install {source}", cwd=source)
    assert person.gets("/open", "app:helped").endswith("---\n\ngood")


@proves("PRV-09")
def test_what_an_app_adds_to_its_folder_takes_nothing_from_it(
    person: Person, tmp_path: Path
) -> None:
    helper = helped(person, tmp_path / "helped", "good")
    (helper.parent / "cache").mkdir()
    (helper.parent / "cache" / "data.bin").write_bytes(b"x")
    assert person.gets("/act.go", "app:helped") == "good"


@proves("PRV-02")
def test_packages_may_be_on_another_disk(person: Person, tmp_path: Path) -> None:
    elsewhere = tmp_path / "disk" / "packages"
    elsewhere.mkdir(parents=True)
    (person.home / "packages").symlink_to(elsewhere)
    fields = {"id": person.id, "home": str(person.home), "allowed_paths": [str(elsewhere)]}
    assert request(person.port, "POST", "/users", fields).status == 200
    helped(person, tmp_path / "helped", "good")
    assert person.gets("/open", "app:helped").endswith("---\n\ngood")
    refused = person.fails(f"/write {elsewhere}/.installed.json\n{{}}")
    assert refused.code == "FILE_NOT_ALLOWED"


@proves("PRV-09")
def test_no_file_command_writes_the_record(person: Person, tmp_path: Path) -> None:
    helped(person, tmp_path / "helped", "good")
    for form in (RECORD_FILE, "./packages/../packages/.installed.json"):
        assert person.fails(f"/write {form}\n{{}}").code == "FILE_NOT_ALLOWED"
        assert person.fails(f"/open {form}").code == "FILE_NOT_ALLOWED"
    assert person.gets("/act.go", "app:helped") == "good"


@proves("PRV-09")
def test_a_command_runs_beside_the_real_file_not_beside_a_link_to_it(
    person: Person, tmp_path: Path
) -> None:
    helper = helped(person, tmp_path / "helped", "good")
    clone = tmp_path / "clone"
    clone.mkdir()
    (clone / "link.md").symlink_to(helper.parent / "string.md")
    (clone / "helper").write_text("#!/bin/sh\necho evil\n", encoding="utf-8")
    (clone / "helper").chmod(0o755)
    person.gets("/open ./link.md", cwd=clone)
    assert person.gets("/act.go", cwd=clone) == "good"


@proves("PRV-10")
def test_apps_of_an_earlier_version_are_taken_over_once(tmp_path: Path, web: WebServer) -> None:
    """Their home has packages and `config.json`, and no record."""
    daemon = Daemon(tmp_path)
    user = json.dumps([{"id": "ada", "home": str(daemon.home), "allowedPaths": []}])
    daemon.data_dir.mkdir()
    daemon.data_dir.chmod(0o700)
    (daemon.data_dir / "users.json").write_text(user, encoding="utf-8")
    early, late = "early", "late"
    for name in (early, late):
        folder = daemon.home / "packages" / name
        folder.mkdir(parents=True)
        text = (
            f"---\nname: {name}\ntype: app\ndefault: go\n---\n"
            f"```act.go\nCLI printf 'default of {name}'\n```\n"
            f'```act.get\nGET {web.url}/x -H "X-Key: $API_KEY"\n```\n'
        )
        (folder / "string.md").write_text(text, encoding="utf-8")
        if name == early:
            config = {"apps": {name: (folder / "string.md").as_uri()}}
            (daemon.home / "config.json").write_text(json.dumps(config), encoding="utf-8")
    with daemon:
        person = Person(daemon.port, "ada", daemon.home)
        assert person.gets("/open", "app:early").endswith("default of early")
        person.gets(f'/set $API_KEY = "{SECRET}"', "app:early")
        person.gets("/act.get", "app:early")
        assert web.last.headers["x-key"] == SECRET
        register(person, late, daemon.home / "packages" / late / "string.md")
        for _ in range(2):
            opened = person.gets("/open", "app:late")
            assert "default of late" not in opened
            assert "late was not installed by /install." in opened
            daemon.stop()
            daemon.start()
        assert person.gets("/open", "app:early").endswith("default of early")


@proves("PRV-11")
def test_what_a_child_of_the_daemon_installs_has_no_rights_until_it_is_confirmed(
    tmp_path: Path, web: WebServer
) -> None:
    program = Path(sys.executable).with_name("string")
    with Daemon(tmp_path) as daemon:
        person = Person(daemon.port, "ada", daemon.home)
        attempt = Attempt(person, tmp_path / "clone", web)
        path = attempt.file(attempt.directory, attempt.declared())
        command = f"STRINGD_PORT={daemon.port} {program} --user ada file:x '/install {path}'"
        said = person.gets(command, "bash:x", cwd=attempt.directory)
        assert f"Installed app:{attempt.name}" in said
        assert "until you type the same /install in your own terminal" in said
        topic = f"app:{attempt.name}"
        person.gets(f'/set $API_KEY = "{SECRET}"', topic)
        tried = attempt.try_everything(topic, "/open")
        assert (tried.ran_default, tried.ran_command, tried.sent) == (False, False, {})
        assert f"string '/install {path}'" in tried.cli.text
        person.gets(f"/install {path}", cwd=attempt.directory)
        tried = attempt.try_everything(topic, "/open")
        assert (tried.ran_default, tried.ran_command) == (True, True)
        assert tried.sent["/named"].headers["x-key"] == SECRET


@proves("PRV-18")
@pytest.mark.parametrize("stop", ["stop", "kill"])
def test_a_restored_page_is_judged_again(tmp_path: Path, web: WebServer, stop: str) -> None:
    """Of an app, a home file, a clone and a web page, each open in a topic of its own."""
    with Daemon(tmp_path) as daemon:
        person = Person(daemon.port, "ada", daemon.home)
        person.gets(f'/set $API_KEY = "{SECRET}"')
        attempts = {name: Attempt(person, tmp_path / name, web) for name in ("app", "own", "clone")}
        topics = {name: f"file:{name}" for name in attempts}
        topics["app"] = attempts["app"].install()
        person.gets("/open", topics["app"])
        own = attempts["own"].file(daemon.home)
        person.gets(f"/open {own.name}", topics["own"])
        clone = attempts["clone"].file(attempts["clone"].directory)
        person.gets(f"/open {clone}", topics["clone"], cwd=clone.parent)
        getattr(daemon, stop)()
        daemon.start()
        for name, attempt in attempts.items():
            cwd = clone.parent if name == "clone" else None
            before = len(web.asked)
            info = person.says("/info", topics[name], cwd)
            tried = attempt.try_actions(topics[name], info, False, before, cwd)
            expected = name != "clone"
            assert (name, tried.ran_command, bool(tried.sent)) == (name, expected, expected)
