"""`apply_patch`: both forms read as models write them; everything applies or nothing does."""

import subprocess
from pathlib import Path

import pytest

from stringd.runs.guard.workspace import WorkspacePath
from stringd.runs.tools.files import disk
from stringd.runs.tools.files.patch_apply import apply_hunks
from stringd.runs.tools.files.patch_text import parse_patch
from stringd.runs.tools.output import ToolFailure
from tests.runs.support import RunsServer, Watcher
from tests.runs.tools.support import use

pytestmark = pytest.mark.anyio

OLD = "def one():\n    return 1\n\n\ndef two():\n    return 1\n"


def patched(old: str, patch: str) -> str:
    (file,) = parse_patch(patch)
    return apply_hunks(old, file.hunks, file.path)


def envelope(*lines: str) -> str:
    return "\n".join(["*** Begin Patch", *lines, "*** End Patch"])


@pytest.mark.parametrize(
    ("patch", "new"),
    [
        # Line numbers choose between equal places, and wrong ones do no harm.
        (
            "--- a/f\n+++ b/f\n@@ -5,2 +5,2 @@\n def two():\n-    return 1\n+    return 2\n",
            OLD.replace("two():\n    return 1", "two():\n    return 2"),
        ),
        (
            "--- a/f\n+++ b/f\n@@ -60,9 +77,8 @@\n-    return 1\n+    return 2\n",
            OLD.replace("two():\n    return 1", "two():\n    return 2"),
        ),
        # An anchor chooses too.
        (
            envelope("*** Update File: f", "@@ def two():", "-    return 1", "+    return 2"),
            OLD.replace("two():\n    return 1", "two():\n    return 2"),
        ),
        # The file's own white space stays where the patch only mentions a line.
        (
            envelope("*** Update File: f", " def one():  ", "-  return 1", "+    return 3"),
            OLD.replace("one():\n    return 1", "one():\n    return 3"),
        ),
        # Lines without any around them go to the end, or behind their anchor.
        (envelope("*** Update File: f", "@@", "+# end"), OLD + "# end\n"),
        (
            envelope("*** Update File: f", "@@ def one():", "+    # here"),
            OLD.replace("one():\n", "one():\n    # here\n"),
        ),
        # A fence and a here-document around it are taken off.
        (
            "```diff\n--- f\n+++ f\n@@ -1,1 +1,1 @@\n-def one():\n+def uno():\n```\n",
            OLD.replace("one", "uno"),
        ),
        (
            "apply_patch <<'EOF'\n"
            + envelope("*** Update File: f", "-def one():", "+def uno():")
            + "\nEOF\n",
            OLD.replace("one", "uno"),
        ),
    ],
)
def test_a_patch_applies_where_it_is_meant(patch: str, new: str) -> None:
    assert patched(OLD, patch) == new


def test_lines_that_look_like_heads_are_lines() -> None:
    old = "-- a comment\n++ another\nend\n"
    patch = "--- a/f\n+++ b/f\n@@ -1,3 +1,3 @@\n--- a comment\n+-- the comment\n ++ another\n end\n"
    assert patched(old, patch) == "-- the comment\n++ another\nend\n"


@pytest.mark.parametrize(("old", "new"), [("a", "a\n"), ("a\n", "a"), ("a", "b"), ("", "x\n")])
def test_a_newline_at_the_end_comes_and_goes_as_the_diff_says(
    tmp_path: Path, old: str, new: str
) -> None:
    (tmp_path / "old").write_text(old)
    (tmp_path / "new").write_text(new)
    made = subprocess.run(
        ["diff", "-u", "old", "new"], cwd=tmp_path, capture_output=True, text=True, check=False
    )
    assert patched(old, made.stdout) == new


@pytest.mark.parametrize(
    ("patch", "kind"),
    [
        (envelope("*** Update File: f", "-    return 1", "+    return 2"), "multiple_matches"),
        (envelope("*** Update File: f", "-nowhere", "+x"), "old_text_not_found"),
        (envelope("*** Update File: f", "@@ nowhere", "-    return 1"), "old_text_not_found"),
        ("*** Begin Patch\n*** Update File: f\n-def one():\n", "invalid_patch"),
        (envelope("*** Update File: f", "what is this"), "invalid_patch"),
        (envelope("*** Add File: f", " no plus"), "invalid_patch"),
        ("@@ -1 +1 @@\n-a\n+b\n", "invalid_patch"),
        ("Binary files a/x and b/x differ\n", "invalid_patch"),
        ("just words", "invalid_patch"),
    ],
)
def test_what_is_not_clear_is_refused(patch: str, kind: str) -> None:
    with pytest.raises(ToolFailure) as failure:
        patched(OLD, patch)
    assert failure.value.problem.kind == kind


def content(folder: Path) -> dict[str, bytes]:
    return {
        str(path.relative_to(folder)): path.read_bytes()
        for path in folder.rglob("*")
        if path.is_file()
    }


@pytest.fixture
def work(tmp_path: Path) -> Path:
    folder = tmp_path / "work"
    folder.mkdir()
    (folder / "f.py").write_text(OLD)
    (folder / "windows.txt").write_bytes(b"\xef\xbb\xbfone\r\ntwo\r\n")
    (folder / "gone.txt").write_text("bye\n")
    (folder / "named.txt").write_text("old name\n")
    (folder / "f.py").chmod(0o755)
    return folder


ALL = envelope(
    "*** Add File: new/deep.txt",
    "+first",
    "+second",
    "*** Update File: f.py",
    "@@ def two():",
    "-    return 1",
    "+    return 2",
    "*** Update File: windows.txt",
    " one",
    "-two",
    "+zwei",
    "*** Delete File: gone.txt",
    "*** Update File: named.txt",
    "*** Move to: renamed.txt",
    "-old name",
    "+new name",
)


async def test_one_patch_makes_changes_moves_and_deletes(
    server: RunsServer, watcher: Watcher, work: Path
) -> None:
    used = await use(server, watcher, work, ("apply_patch", {"patch": ALL}))
    assert used.output.startswith("Created new/deep.txt\nChanged f.py\n"), used.output
    assert "restore_file brings it back from" in used.output
    found = content(work)
    assert found.pop("f.py").decode().endswith("two():\n    return 2\n")
    assert found == {
        "new/deep.txt": b"first\nsecond\n",
        "windows.txt": b"\xef\xbb\xbfone\r\nzwei\r\n",
        "renamed.txt": b"new name\n",
    }
    assert (work / "f.py").stat().st_mode & 0o777 == 0o755
    kept = [e for e in server.timeline("r") if e["type"] == "tool_mutation"]
    done = [(e["operation"], e["path"], e["success"]) for e in kept]
    assert sorted(done) == [
        ("create", "new/deep.txt", True),
        ("delete", "gone.txt", True),
        ("move", "named.txt", True),
        ("update", "f.py", True),
        ("update", "windows.txt", True),
    ]


@pytest.mark.parametrize(
    "last",
    [
        ["*** Update File: named.txt", "-not there", "+x"],
        ["*** Add File: f.py", "+x"],
        ["*** Delete File: nowhere.txt"],
        ["*** Update File: f.py", "-def one():", "*** Update File: ./f.py", "-def two():"],
    ],
)
async def test_one_part_that_does_not_apply_leaves_everything(
    server: RunsServer, watcher: Watcher, work: Path, last: list[str]
) -> None:
    before = content(work)
    patch = envelope("*** Update File: gone.txt", "-bye", "+ciao", *last)
    used = await use(server, watcher, work, ("apply_patch", {"patch": patch}))
    assert used.output.startswith("Error ("), used.output
    assert content(work) == before


async def test_a_disk_that_fails_in_the_middle_is_taken_back(
    server: RunsServer, watcher: Watcher, work: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    before, remove = content(work), disk.remove

    def broken(place: WorkspacePath) -> None:
        if place.real.name == "named.txt":
            raise OSError(5, "the disk is broken", str(place.real))
        remove(place)

    monkeypatch.setattr(disk, "remove", broken)
    used = await use(server, watcher, work, ("apply_patch", {"patch": ALL}))
    assert "the disk is broken" in used.output
    assert content(work) == before
    kept = [e for e in server.timeline("r") if e["type"] == "tool_mutation"]
    assert {e["success"] for e in kept} == {False}


async def test_every_place_outside_is_asked_for_before_anything_is_touched(
    server: RunsServer, watcher: Watcher, work: Path
) -> None:
    before = content(work.parent)
    patch = envelope("*** Update File: gone.txt", "-bye", "+ciao", "*** Add File: ../out", "+x")
    used = await use(server, watcher, work, ("apply_patch", {"patch": patch}), decisions=["deny"])
    assert "denied by the user" in used.output
    assert {k: v for k, v in content(work.parent).items() if k in before} == before
    assert not (work.parent / "out").exists()


async def test_a_diff_of_git_applies(server: RunsServer, watcher: Watcher, work: Path) -> None:
    def git(*words: str) -> str:
        who = ("-c", "user.name=a", "-c", "user.email=a@b", "-c", "core.autocrlf=false")
        done = subprocess.run(
            ["git", *who, *words], cwd=work, check=True, capture_output=True, text=True
        )
        return done.stdout

    git("init", "-q")
    git("add", ".")
    git("commit", "-qm", "before")
    (work / "f.py").write_text(OLD.replace("one", "uno") + "last\n")
    (work / "gone.txt").unlink()
    (work / "added").write_text("1\n2\n")
    git("mv", "named.txt", "renamed.txt")
    git("add", "-A")
    wanted = {name: data for name, data in content(work).items() if not name.startswith(".git/")}
    diff = git("diff", "--cached", "-M")
    git("reset", "-q", "--hard")
    used = await use(server, watcher, work, ("apply_patch", {"patch": diff}))
    assert not used.output.startswith("Error"), used.output
    found = {name: data for name, data in content(work).items() if not name.startswith(".git/")}
    assert found == wanted
