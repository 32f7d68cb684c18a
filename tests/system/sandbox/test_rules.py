"""Which places Landlock is told to allow, for a disk that is a dictionary."""

import pytest

from stringd.system.sandbox.launcher import rules

DISK = {
    "/": ["etc", "home", "usr"],
    "/home": ["me", "you"],
    "/home/me": [".ssh", ".cache", "project", "notes"],
    "/home/me/project": ["data", "src"],
}


def names(path: str) -> list[str]:
    return DISK[path]


def allowed(*entries: str) -> set[tuple[str, str]]:
    return set(rules.allowed_places(list(entries), names))


def test_without_entries_everything_can_be_read() -> None:
    assert allowed() == {("/", "r")}


def test_a_writable_place_is_added_to_the_readable_rest() -> None:
    assert allowed("w/home/me/project") == {("/", "r"), ("/home/me/project", "w")}


def test_a_hidden_place_is_left_out_by_naming_everything_beside_it() -> None:
    assert allowed("h/home/me/.ssh") == {
        ("/etc", "r"),
        ("/usr", "r"),
        ("/home/you", "r"),
        ("/home/me/.cache", "r"),
        ("/home/me/project", "r"),
        ("/home/me/notes", "r"),
    }


def test_a_place_inside_a_hidden_one_can_be_shown() -> None:
    found = allowed("h/home", "w/home/me/project")
    assert found == {("/etc", "r"), ("/usr", "r"), ("/home/me/project", "w")}


def test_a_hidden_place_in_the_workspace_splits_it() -> None:
    found = allowed("w/home/me/project", "h/home/me/project/data")
    assert ("/home/me/project/src", "w") in found
    assert not [path for path, _ in found if path in ("/home/me/project", "/home/me")]


def test_a_readable_place_in_the_workspace_is_not_writable() -> None:
    found = allowed("w/home/me/project", "r/home/me/project/data")
    assert found == {("/", "r"), ("/home/me/project/src", "w")}


def test_a_directory_that_cannot_be_listed_is_not_allowed() -> None:
    def refuse(path: str) -> list[str]:
        raise PermissionError(path)

    assert rules.allowed_places(["h/home/me/.ssh"], refuse) == []


@pytest.mark.parametrize(
    ("version", "count"), [(1, 13), (2, 14), (3, 15), (4, 15), (5, 16), (7, 16)]
)
def test_each_version_handles_the_rights_it_knows(version: int, count: int) -> None:
    assert rules.handled(version) == (1 << count) - 1


@pytest.mark.parametrize("version", range(1, 8))
def test_no_rule_asks_for_a_right_its_version_does_not_know(version: int) -> None:
    for kind in (rules.READ, rules.WRITE):
        for directory in (True, False):
            asked = rules.rights(kind, version, directory=directory)
            assert asked & ~rules.handled(version) == 0
            assert asked


def test_reading_gives_no_right_to_change() -> None:
    execute, read_file, read_directory = 1, 4, 8
    asked = rules.rights(rules.READ, 7, directory=True)
    assert asked == execute | read_file | read_directory


def test_only_harmless_devices_can_be_opened() -> None:
    entries = rules.with_devices([])
    assert entries[0] == "h/dev"
    assert "w/dev/null" in entries
    assert not [each for each in entries if "sda" in each or "shm" in each]
