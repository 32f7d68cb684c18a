"""The registry of users, without a wire."""

import json
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from stringd.runtime.topics import users as users_module
from stringd.runtime.topics.users import UserRegistry

GOLDEN = """[
  {
    "id": "default",
    "home": "/home/alice",
    "allowedPaths": [
      "/work"
    ],
    "createdAt": "2026-04-14T05:52:00.000Z"
  }
]
"""


def test_the_file_is_written_as_it_always_was(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(users_module, "timestamp", lambda: "2026-04-14T05:52:00.000Z")
    registry = UserRegistry(tmp_path / "data")
    registry.register("default", "/home/alice", ["/work"])
    assert registry.path.read_text(encoding="utf-8") == GOLDEN
    again = UserRegistry(tmp_path / "data")
    assert list(again) == list(registry)


@given(st.dictionaries(st.text(min_size=1), st.text().map(lambda name: f"/{name}"), max_size=5))
def test_what_was_registered_is_read_back(
    tmp_path_factory: pytest.TempPathFactory, homes: dict[str, str]
) -> None:
    directory = tmp_path_factory.mktemp("data")
    registry = UserRegistry(directory)
    for user_id, home in homes.items():
        assert registry.register(user_id, home).created is True
    read = UserRegistry(directory)
    assert {user.id: user.home for user in read} == homes
    assert len(read) == len(homes)


def test_an_update_tells_whether_the_home_moved(tmp_path: Path) -> None:
    registry = UserRegistry(tmp_path)
    assert registry.register("a", "/one").moved is False
    assert registry.register("a", "/one").moved is False
    assert registry.register("a", "/two").moved is True


def test_registering_the_same_again_writes_nothing(tmp_path: Path) -> None:
    registry = UserRegistry(tmp_path)
    registry.register("a", "/one")
    before = registry.path.stat().st_ino
    registry.register("a", "/one")
    assert registry.path.stat().st_ino == before


def test_removing_forgets_exactly_one(tmp_path: Path) -> None:
    registry = UserRegistry(tmp_path)
    registry.register("a", "/one")
    registry.register("b", "/two")
    assert registry.remove("a") is True
    assert registry.remove("a") is False
    assert [user["id"] for user in json.loads(registry.path.read_bytes())] == ["b"]


def test_fields_of_a_later_version_do_not_lose_the_users(tmp_path: Path) -> None:
    item = {"id": "a", "home": "/h", "allowedPaths": [], "createdAt": "", "color": "red"}
    (tmp_path / "users.json").write_text(json.dumps([item]), encoding="utf-8")
    assert [user.id for user in UserRegistry(tmp_path)] == ["a"]


def test_two_daemons_on_one_directory_keep_each_others_users(tmp_path: Path) -> None:
    first, second = UserRegistry(tmp_path), UserRegistry(tmp_path)
    first.register("ada", "/home/ada")
    second.register("bob", "/home/bob")
    first.register("cyd", "/home/cyd")
    second.remove("bob")
    assert [user.id for user in UserRegistry(tmp_path)] == ["ada", "cyd"]
