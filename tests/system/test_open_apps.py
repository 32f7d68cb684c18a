"""The apps the owner lets run outside the sandbox."""

from pathlib import Path

import pytest

from stringd.system import open_apps
from stringd.system.open_apps import OpenApps, OpenAppsError


def test_an_app_is_open_until_it_is_closed(tmp_path: Path) -> None:
    apps = OpenApps(tmp_path / "own" / "sandbox.json")
    reader = OpenApps(apps.file)
    assert reader.opened_at("notes") is None
    apps.open("notes")
    apps.open("git")
    assert reader.opened_at("notes") is not None
    assert reader.names() == ["git", "notes"]
    assert apps.close("notes")
    assert not apps.close("notes")
    assert reader.names() == ["git"]
    assert apps.file.stat().st_mode & 0o777 == 0o600


@pytest.mark.parametrize(
    "damage", ["[]", '{"open": 3}', '{"open": [1]}', '{"open": {"notes": "x"}}', "{", ""]
)
def test_a_damaged_file_opens_nothing_and_says_so(tmp_path: Path, damage: str) -> None:
    apps = OpenApps(tmp_path / "sandbox.json")
    apps.file.write_text(damage)
    apps.file.chmod(0o600)
    assert apps.opened_at("notes") is None
    with pytest.raises(OpenAppsError, match="damaged"):
        apps.names()


def test_a_file_that_others_can_write_does_not_count(tmp_path: Path) -> None:
    apps = OpenApps(tmp_path / "sandbox.json")
    apps.open("notes")
    apps.file.chmod(0o622)
    assert apps.opened_at("notes") is None
    with pytest.raises(OpenAppsError, match="chmod 600"):
        apps.open("git")


def test_what_a_daemon_started_opens_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(open_apps, "started_by_a_daemon", lambda: True)
    apps = OpenApps(tmp_path / "sandbox.json")
    with pytest.raises(OpenAppsError, match="a daemon started this program"):
        apps.open("notes")
    assert apps.opened_at("notes") is None
