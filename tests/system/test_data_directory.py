"""A data directory is used only where this account made it."""

import json
import os
import shutil
import tarfile
from pathlib import Path

import pytest

from stringd.system.data_directory import (
    MARKER,
    ForeignDirectoryError,
    adopt,
    belongs_to_owner,
    claim,
)
from stringd.system.trust import TrustStore


@pytest.fixture
def trust(tmp_path: Path) -> TrustStore:
    return TrustStore(tmp_path / "own" / "trust.json")


@pytest.fixture
def clone(tmp_path: Path) -> Path:
    (tmp_path / "clone" / ".git").mkdir(parents=True)
    return tmp_path / "clone"


def mode(path: Path) -> int:
    return path.stat().st_mode & 0o777


def refused(path: Path, trust: TrustStore, *, chosen: bool) -> str:
    before = sorted(path.rglob("*"))
    with pytest.raises(ForeignDirectoryError) as error:
        claim(path, chosen=chosen, trust=trust)
    assert sorted(path.rglob("*")) == before
    return str(error.value)


@pytest.mark.parametrize("chosen", [True, False])
def test_a_new_directory_is_made_private_and_found_again(
    tmp_path: Path, trust: TrustStore, chosen: bool
) -> None:
    data = tmp_path / "a" / "b"
    for _ in range(2):
        claim(data, chosen=chosen, trust=trust)
        assert mode(data) == mode(data.parent) == 0o700
        assert mode(data / MARKER) == 0o600
    assert [each.path for each in trust.entries()] == [str(data)]


def test_our_own_directory_inside_a_repository_stays_ours(clone: Path, trust: TrustStore) -> None:
    claim(clone / ".stringd", chosen=False, trust=trust)
    (clone / ".stringd" / "users.json").write_text("{}")
    claim(clone / ".stringd", chosen=False, trust=trust)


@pytest.mark.parametrize("chosen", [True, False])
def test_what_came_with_a_clone_is_not_used(clone: Path, trust: TrustStore, chosen: bool) -> None:
    data = clone / "deep" / ".stringd"
    data.mkdir(parents=True, mode=0o700)
    (data / "mcp.json").write_text("{}")
    told = refused(data, trust, chosen=chosen)
    assert f"it came with the repository {clone}" in told
    assert f"stringd trust --data-dir {data}" in told
    assert trust.entries() == []


@pytest.mark.parametrize("chosen", [True, False])
def test_a_copy_of_a_genuine_one_is_not_used(
    tmp_path: Path, clone: Path, trust: TrustStore, chosen: bool
) -> None:
    genuine = tmp_path / "genuine"
    claim(genuine, chosen=True, trust=trust)
    for copy in (clone / ".stringd", tmp_path / "copy"):
        shutil.copytree(genuine, copy)
        copy.chmod(0o700)
        refused(copy, trust, chosen=chosen)
    claim(genuine, chosen=True, trust=trust)


def test_a_forged_marker_inside_a_clone_does_not_count(clone: Path, trust: TrustStore) -> None:
    data = clone / ".stringd"
    data.mkdir(mode=0o700)
    marks = {"path": str(data), "uid": os.geteuid(), "inode": data.stat().st_ino}
    (data / MARKER).write_text(json.dumps(marks))
    refused(data, trust, chosen=False)


def test_a_directory_that_took_the_place_of_ours_is_not_used(
    clone: Path, trust: TrustStore
) -> None:
    data = clone / ".stringd"
    claim(data, chosen=False, trust=trust)
    data.rename(clone / "old")
    shutil.copytree(clone / "old", data)
    data.chmod(0o700)
    refused(data, trust, chosen=False)


@pytest.mark.parametrize("before", [0o700, 0o755, 0o775])
def test_one_of_an_earlier_version_is_adopted_and_narrowed(
    tmp_path: Path, trust: TrustStore, before: int
) -> None:
    data = tmp_path / "data"
    data.mkdir()
    (data / "users.json").write_text("{}")
    data.chmod(before)
    claim(data, chosen=True, trust=trust)
    assert mode(data) == 0o700
    assert (data / MARKER).exists()


def test_a_default_one_is_adopted_only_if_nobody_else_could_enter_it(
    tmp_path: Path, trust: TrustStore
) -> None:
    data = tmp_path / ".stringd"
    data.mkdir()
    (data / "mcp.json").write_text("{}")
    data.chmod(0o755)
    assert "your stringd did not make it" in refused(data, trust, chosen=False)
    data.chmod(0o700)
    claim(data, chosen=False, trust=trust)


@pytest.mark.parametrize("chosen", [True, False])
def test_one_that_came_in_an_archive_is_not_used(
    tmp_path: Path, trust: TrustStore, chosen: bool
) -> None:
    """An archive has no repository around it, and can hold a directory that is 0700."""
    made, place = tmp_path / "made", tmp_path / "place"
    data = made / "project" / ".stringd"
    (data / "strategies").mkdir(mode=0o700, parents=True)
    data.chmod(0o700)
    evil = data / "mcp.json"
    evil.write_text("{}")
    os.utime(evil, (1_700_000_000, 1_700_000_000))
    place.mkdir()
    with tarfile.open(tmp_path / "a.tar", "w") as archive:
        archive.add(made / "project", "project")
    with tarfile.open(tmp_path / "a.tar") as archive:
        archive.extractall(place, filter="fully_trusted")
    unpacked = place / "project" / ".stringd"
    assert mode(unpacked) == 0o700
    assert "were unpacked or copied here" in refused(unpacked, trust, chosen=chosen)
    adopt(unpacked, trust)
    claim(unpacked, chosen=chosen, trust=trust)


def test_one_that_everybody_can_write_to_is_not_used(tmp_path: Path, trust: TrustStore) -> None:
    data = tmp_path / "data"
    data.mkdir()
    (data / "mcp.json").write_text("{}")
    data.chmod(0o777)
    assert "every account can write to it" in refused(data, trust, chosen=True)


def test_a_link_is_not_followed_where_nobody_chose_it(tmp_path: Path, trust: TrustStore) -> None:
    (tmp_path / "elsewhere").mkdir(mode=0o700)
    (tmp_path / ".stringd").symlink_to(tmp_path / "elsewhere")
    assert "it is a link" in refused(tmp_path / ".stringd", trust, chosen=False)
    claim(tmp_path / ".stringd", chosen=True, trust=trust)
    (tmp_path / "nowhere").symlink_to(tmp_path / "gone")
    refused(tmp_path / "nowhere", trust, chosen=True)


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can give files away")
def test_another_accounts_directory_is_not_used(tmp_path: Path, trust: TrustStore) -> None:
    data = tmp_path / "data"
    data.mkdir(mode=0o700)
    os.chown(data, 12345, 12345)
    assert "another account" in refused(data, trust, chosen=True)
    with pytest.raises(ForeignDirectoryError):
        adopt(data, trust)


def test_the_owner_can_say_that_one_is_theirs(clone: Path, trust: TrustStore) -> None:
    data = clone / ".stringd"
    data.mkdir()
    (data / "users.json").write_text("{}")
    adopt(data, trust)
    assert mode(data) == 0o700
    claim(data, chosen=False, trust=trust)


def test_without_a_list_that_can_be_written_ours_still_works(tmp_path: Path) -> None:
    (tmp_path / "blocked").write_text("")
    trust = TrustStore(tmp_path / "blocked" / "trust.json")
    for _ in range(2):
        claim(tmp_path / "data", chosen=True, trust=trust)


def test_a_home_that_is_a_repository_keeps_its_own_state(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HOME", str(tmp_path))
    (tmp_path / ".git").mkdir()
    assert belongs_to_owner(tmp_path / ".string" / "daemon")
    assert not belongs_to_owner(tmp_path / "project" / ".stringd")
