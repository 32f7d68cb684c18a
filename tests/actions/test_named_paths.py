"""Which paths a call names, and how much around each is opened."""

from pathlib import Path

import pytest

from stringd.actions.named_paths import named_paths, paths_in, place_around


@pytest.mark.parametrize(
    ("value", "found"),
    [
        ("/data/x.db", "/data/x.db"),
        ("/data/a/../b", "/data/b"),
        ("~/notes.md", "/home/me/notes.md"),
        ("file:///data/x", "/data/x"),
        ("./there/file", "{here}/there/file"),
        ("there/file", "{here}/there/file"),
        ("there/gone", None),
        ("a word", None),
        ("https://example.test/x", None),
        ("/data/x\nrm", None),
        ("/" + "x" * 5000, None),
        ("", None),
    ],
)
def test_a_value_names_a_path(tmp_path: Path, value: str, found: str | None) -> None:
    (tmp_path / "there").mkdir()
    (tmp_path / "there" / "file").touch()
    expected = [] if found is None else [Path(found.format(here=tmp_path))]
    assert list(named_paths([value], tmp_path, "/home/me")) == expected


def test_the_place_around_a_path(tmp_path: Path) -> None:
    home = tmp_path.resolve()
    (home / "project").mkdir()
    (home / "project" / "data.db").touch()
    (home / "notes.md").touch()
    around = {
        "project": home / "project",
        "project/data.db": home / "project",
        "project/new/deep": home / "project",
        # A whole home is not opened for a file that is in it already.
        "notes.md": home / "notes.md",
        "new.md": home,
    }
    for name, place in around.items():
        assert place_around(home / name, [str(home)]) == place
    for machine in ("/", "/etc/passwd", "/usr/bin/env", "/dev/null", "/proc/self/status"):
        assert place_around(Path(machine), [str(home)]) is None


def test_a_link_counts_as_what_it_leads_to(tmp_path: Path) -> None:
    (tmp_path / "link").symlink_to("/etc")
    assert place_around(tmp_path / "link" / "passwd", []) is None


@pytest.mark.parametrize(
    ("command", "found"),
    [
        ("cat /data/x.db", ["/data/x.db"]),
        ("echo x >>~/notes.md", ["~/notes.md"]),
        ('cat "$DIR/a.txt" ${DIR}/b', ["/data/a.txt", "/data/b"]),
        ("tool --out=/data/x '/data/y z'", ["/data/x", "/data/y"]),
        ("cd ../up; ./run a/b", ["../up", "./run"]),
        ("sed s/a/b/ <x; curl https://example.test/a/b", []),
        ("cat $NOWHERE/x", ["/x"]),
    ],
)
def test_a_command_line_names_paths(command: str, found: list[str]) -> None:
    assert list(paths_in(command, {"DIR": "/data"})) == found


def test_of_many_paths_the_first_count() -> None:
    assert len(list(paths_in("/a " * 5000, {}))) == 100
