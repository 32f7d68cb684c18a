"""Persistent variables: where they are kept and how they are shown."""

import json
from pathlib import Path

import pytest

from stringd.runtime.errors import CommandError
from stringd.runtime.variables import scopes
from stringd.wire.topic import Topic, parse_topic

FILE = parse_topic("file:main")
APP = parse_topic("app:weather")
CONFIGURED = parse_topic("app:weather:korea")


@pytest.mark.parametrize(
    ("topic", "path", "name"),
    [
        (FILE, "config.json", "global"),
        (APP, "apps/weather/env.json", "weather"),
        (CONFIGURED, "apps/weather/korea/env.json", "weather:korea"),
    ],
)
def test_each_kind_of_topic_has_its_own_place(
    tmp_path: Path, topic: Topic, path: str, name: str
) -> None:
    scope = scopes.store(str(tmp_path), topic, {"KEY": "value"})
    assert (scope.name, scope.path) == (name, tmp_path / path)
    held = json.loads(scope.path.read_bytes())
    assert held == ({"env": {"KEY": "value"}} if name == "global" else {"KEY": "value"})
    assert scope.path.stat().st_mode & 0o777 == 0o600


def test_narrower_scopes_win(tmp_path: Path) -> None:
    home = str(tmp_path)
    scopes.store(home, FILE, {"A": "global", "B": "global", "C": "global"})
    scopes.store(home, APP, {"B": "app", "C": "app"})
    scopes.store(home, CONFIGURED, {"C": "config"})
    assert scopes.visible(home, CONFIGURED) == {"A": "global", "B": "app", "C": "config"}
    assert scopes.visible(home, APP) == {"A": "global", "B": "app", "C": "app"}
    assert scopes.visible(home, FILE) == {"A": "global", "B": "global", "C": "global"}


def test_other_settings_in_the_file_are_kept(tmp_path: Path) -> None:
    (tmp_path / "config.json").write_text('{"theme":"dark","env":{"OLD":"1"}}', encoding="utf-8")
    scopes.store(str(tmp_path), FILE, {"NEW": "2"})
    held = json.loads((tmp_path / "config.json").read_bytes())
    assert held == {"theme": "dark", "env": {"OLD": "1", "NEW": "2"}}


def test_a_broken_file_is_not_overwritten(tmp_path: Path) -> None:
    (tmp_path / "config.json").write_text("{broken", encoding="utf-8")
    with pytest.raises(CommandError) as refused:
        scopes.store(str(tmp_path), FILE, {"A": "1"})
    assert refused.value.code == "LOAD_ERROR"
    assert (tmp_path / "config.json").read_text(encoding="utf-8") == "{broken"
