"""What a spec shows of a disk, and in which order."""

import os
from pathlib import Path

import pytest

from stringd.system.sandbox import Level, SandboxError, SandboxSpec
from stringd.system.sandbox.view import MountAccess, ViewEntry, view
from tests.system.sandbox.cage import NOBODY


@pytest.fixture
def disk(tmp_path: Path) -> Path:
    """Somewhere below /tmp, which a sandbox has of its own: a place shows only when asked for."""
    root = tmp_path.resolve()
    for name in ("home/project/deep/data", "home/.ssh", "home/.config/gh"):
        (root / name).mkdir(parents=True)
    (root / "home/.netrc").write_text("")
    return root


def shown(
    spec: SandboxSpec, root: Path, sockets: tuple[str, ...] = ()
) -> list[tuple[str, MountAccess]]:
    entries = [each for each in view(spec, sockets) if each.path.startswith(f"{root}/")]
    return [(each.path.removeprefix(f"{root}/"), each.access) for each in entries]


def test_outer_places_come_before_inner_ones(disk: Path) -> None:
    spec = SandboxSpec(
        workspace=(disk / "home/project",),
        hidden=(str(disk / "home/project/deep/data"),),
        readable=(disk / "home",),
    )
    assert shown(spec, disk) == [
        ("home", MountAccess.READ),
        ("home/project", MountAccess.WRITE),
        # Not asked for, but it must not be renamed from around what is hidden.
        ("home/project/deep", MountAccess.WRITE),
        ("home/project/deep/data", MountAccess.HIDDEN),
    ]


def test_what_does_not_exist_is_left_out(disk: Path) -> None:
    spec = SandboxSpec(writable=(disk / "gone",), hidden=(str(disk / "gone-too"),))
    assert shown(spec, disk) == []


def test_a_workspace_must_exist(disk: Path) -> None:
    with pytest.raises(SandboxError, match="gone is not a directory"):
        view(SandboxSpec(workspace=(disk / "gone",)))


def test_a_link_counts_as_what_it_leads_to(disk: Path) -> None:
    (disk / "link").symlink_to("home/.ssh")
    spec = SandboxSpec(readable=(disk / "home",), hidden=(str(disk / "link"),))
    assert shown(spec, disk) == [("home", MountAccess.READ), ("home/.ssh", MountAccess.HIDDEN)]


def test_patterns_name_what_is_there(disk: Path) -> None:
    spec = SandboxSpec(
        readable=(disk / "home",), hidden=(f"{disk}/home/.n*", f"{disk}/home/.c*/gh")
    )
    assert shown(spec, disk) == [("home", MountAccess.READ), ("home/.netrc", MountAccess.HIDDEN)]


def test_at_the_same_place_the_stricter_wins(disk: Path) -> None:
    place = disk / "home/.ssh"
    spec = SandboxSpec(workspace=(place,), hidden=(str(place),), readable=(disk / "home",))
    assert shown(spec, disk) == [("home", MountAccess.READ), ("home/.ssh", MountAccess.HIDDEN)]


def test_a_place_inside_a_hidden_one_can_be_shown(disk: Path) -> None:
    spec = SandboxSpec(
        workspace=(disk / "home/project",), hidden=(str(disk / "home"),), readable=(disk,)
    )
    entries = [entry for entry in view(spec) if entry.path.startswith(str(disk))]
    assert entries == [
        ViewEntry(str(disk), MountAccess.READ, True),
        ViewEntry(str(disk / "home"), MountAccess.HIDDEN, True),
        ViewEntry(str(disk / "home/project"), MountAccess.WRITE, True),
    ]


def test_nothing_but_temporary_files_is_writable_at_level_read_only(disk: Path) -> None:
    spec = SandboxSpec(
        Level.READ_ONLY, workspace=(disk / "home/project",), writable=(disk / "home/.config",)
    )
    assert {each.access for each in view(spec)} == {MountAccess.OWN, MountAccess.READ}
    assert shown(spec, disk) == [("home/project", MountAccess.READ)]


def test_sockets_are_hidden_wherever_they_are(disk: Path) -> None:
    (disk / "home/project/s").write_text("")
    spec = SandboxSpec(workspace=(disk / "home/project",))
    found = shown(spec, disk, (str(disk / "home/project/s"),))
    assert found == [("home/project", MountAccess.WRITE), ("home/project/s", MountAccess.HIDDEN)]


def test_the_whole_machine_can_be_a_workspace() -> None:
    entries = view(SandboxSpec(workspace=(Path("/"),)))
    assert entries[0] == ViewEntry("/", MountAccess.WRITE, True)
    assert [each.access for each in entries[1:]].count(MountAccess.OWN) >= 1


@pytest.mark.skipif(os.geteuid() != 0, reason="others cannot make directories that root cannot use")
def test_what_root_could_not_get_to_without_its_rights_is_left_out(disk: Path) -> None:
    theirs = disk / "home/project/deep"
    os.chown(theirs, NOBODY, NOBODY)
    spec = SandboxSpec(
        workspace=(disk / "home/project",), hidden=(str(theirs / "data"),), readable=(disk,)
    )
    inside = [
        ("home/project/deep", MountAccess.WRITE),
        ("home/project/deep/data", MountAccess.HIDDEN),
    ]
    for mode, found in ((0o711, inside), (0o700, inside[:1])):
        theirs.chmod(mode)
        assert shown(spec, disk)[1:] == found
