"""File tools: whole or not at all, guarded by hashes, with a trash."""

import hashlib
import os
import re
from pathlib import Path

import pytest

from tests.runs.support import RunsServer, Watcher
from tests.runs.tools.support import Call, use

pytestmark = pytest.mark.anyio


def sha(data: bytes) -> str:
    return hashlib.sha256(data).hexdigest()


@pytest.fixture
def work(tmp_path: Path) -> Path:
    path = tmp_path / "work"
    path.mkdir()
    return path


async def test_reading_tells_lines_size_and_hash(
    server: RunsServer, watcher: Watcher, work: Path
) -> None:
    data = b"\xef\xbb\xbfone\r\ntwo\r\nthree\r\n"
    (work / "f.txt").write_bytes(data)
    used = await use(
        server, watcher, work, ("read_file", {"path": "f.txt", "startLine": 2, "endLine": 99})
    )
    head, _, content = used.output.partition("\n")
    assert head == f"f.txt (lines 2-4 of 4, {len(data)} bytes, sha256 {sha(data)})"
    assert content == "two\nthree\n"


async def test_what_was_cut_off_is_not_counted_as_shown(
    server: RunsServer, watcher: Watcher, work: Path
) -> None:
    (work / "f.txt").write_text("one\ntwo\nthree\n", "utf-8")
    args = {"path": "f.txt", "startLine": 2, "maxBytes": 5}
    used = await use(server, watcher, work, ("read_file", args))
    head, _, content = used.output.partition("\n")
    assert head.startswith("f.txt (lines 2-3 of 4, ")
    assert head.endswith(", truncated)")
    assert content == "two\nt"


async def test_a_link_is_found_under_its_own_name(
    server: RunsServer, watcher: Watcher, work: Path
) -> None:
    (work / "sub").mkdir()
    (work / "f.txt").write_text("f", "utf-8")
    (work / "sub" / "link.txt").symlink_to("../f.txt")
    calls: list[Call] = [("glob", {"pattern": "**/*.txt"})]
    calls.append(("glob", {"pattern": "*.txt", "root": "sub"}))
    used = await use(server, watcher, work, *calls)
    assert used.outputs == ["f.txt\nsub/link.txt", "sub/link.txt"]


async def test_binary_files_are_not_poured_into_the_model(
    server: RunsServer, watcher: Watcher, work: Path
) -> None:
    (work / "b").write_bytes(b"\0\1\2")
    calls: list[Call] = [("read_file", {"path": "b"})]
    calls.append(("read_file", {"path": "b", "allowBinary": True}))
    used = await use(server, watcher, work, *calls)
    assert used.outputs[0].startswith("Error (binary_file): b is binary (3 bytes, sha256 ")
    assert "Next step: pass allowBinary" in used.outputs[0]
    assert used.outputs[1].endswith("\nAAEC")


async def test_a_directory_is_no_file(server: RunsServer, watcher: Watcher, work: Path) -> None:
    used = await use(server, watcher, work, ("read_file", {"path": "."}))
    assert used.output.startswith("Error (not_found): ")
    assert "list_directory" in used.output


async def test_a_fifo_does_not_hold_up_the_run(
    server: RunsServer, watcher: Watcher, work: Path
) -> None:
    os.mkfifo(work / "pipe")
    used = await use(server, watcher, work, ("read_file", {"path": "pipe"}))
    assert used.output.startswith("Error (not_found): ")


async def test_creating_never_overwrites(server: RunsServer, watcher: Watcher, work: Path) -> None:
    calls: list[Call] = [
        ("create_file", {"path": "a/b.txt", "content": "x"}),
        ("create_file", {"path": "a/b.txt", "content": "x", "createParentDirectories": True}),
        ("create_file", {"path": "a/b.txt", "content": "y"}),
    ]
    used = await use(server, watcher, work, *calls)
    assert used.outputs[0].startswith("Error (not_found): ")
    assert used.outputs[1].startswith("Created a/b.txt (1 bytes")
    assert used.outputs[2].startswith("Error (already_exists): ")
    assert (work / "a/b.txt").read_text() == "x"
    assert [path.name for path in (work / "a").iterdir()] == ["b.txt"]


async def test_writing_needs_the_hash_of_what_was_read(
    server: RunsServer, watcher: Watcher, work: Path
) -> None:
    (work / "f").write_bytes(b"\xef\xbb\xbfa\r\nb\r\n")
    (work / "f").chmod(0o640)
    before = sha((work / "f").read_bytes())
    calls: list[Call] = [
        ("write_file", {"path": "f", "content": "x", "expectedSha256": "0" * 64}),
        ("write_file", {"path": "f", "content": "c\nd\n", "expectedSha256": before}),
        ("write_file", {"path": "gone", "content": "x", "expectedSha256": before}),
        ("write_file", {"path": "f", "content": "x", "expectedSha256": "ABC"}),
    ]
    used = await use(server, watcher, work, *calls)
    assert used.outputs[0].startswith("Error (stale_file): ")
    assert before in used.outputs[0]
    assert (work / "f").read_bytes() == b"\xef\xbb\xbfc\r\nd\r\n"
    assert (work / "f").stat().st_mode & 0o777 == 0o640
    assert used.outputs[2].startswith("Error (not_found): ")
    assert used.outputs[3].startswith("Invalid arguments for `write_file`:\n- `expectedSha256`: ")
    mutations = [e for e in server.timeline("r") if e["type"] == "tool_mutation"]
    assert [e["success"] for e in mutations] == [False, True, False]
    assert mutations[1]["beforeSha256"] == before
    assert mutations[1]["operation"] == "update"


@pytest.mark.parametrize(
    ("edits", "after"),
    [
        ([{"oldText": "  one  ", "newText": "1"}], "1\ntwo\nthree two\n"),
        ([{"oldText": "three    two", "newText": "3"}], "one\ntwo\n3\n"),
        ([{"oldText": "two", "newText": "2", "expectedOccurrences": 2}], "one\n2\nthree 2\n"),
        ([{"oldText": "one\n?\nthree two", "newText": "gone"}], "gone\n"),
    ],
)
async def test_edits_find_their_place(
    server: RunsServer, watcher: Watcher, work: Path, edits: list[dict[str, object]], after: str
) -> None:
    (work / "f").write_text("one\ntwo\nthree two\n", "utf-8")
    await use(server, watcher, work, ("edit_file", {"path": "f", "edits": edits}))
    assert (work / "f").read_text("utf-8") == after


async def test_an_edit_that_fits_twice_is_refused(
    server: RunsServer, watcher: Watcher, work: Path
) -> None:
    (work / "f").write_text("two\ntwo\n", "utf-8")
    edits = [{"oldText": "two", "newText": "2"}]
    used = await use(server, watcher, work, ("edit_file", {"path": "f", "edits": edits}))
    assert used.output.startswith("Error (multiple_matches): ")
    assert "lines 1, 2" in used.output
    assert (work / "f").read_text("utf-8") == "two\ntwo\n"


async def test_edits_are_all_or_nothing(server: RunsServer, watcher: Watcher, work: Path) -> None:
    (work / "f").write_text("abcdef\n", "utf-8")
    good, bad = {"oldText": "abc", "newText": "X"}, {"oldText": "nope", "newText": ""}
    overlap = {"oldText": "cde", "newText": "Y"}
    calls: list[Call] = [("edit_file", {"path": "f", "edits": [good, bad]})]
    calls.append(("edit_file", {"path": "f", "edits": [good, overlap]}))
    calls.append(("edit_file", {"path": "f", "edits": []}))
    used = await use(server, watcher, work, *calls)
    assert used.outputs[0].startswith("Error (old_text_not_found): ")
    assert used.outputs[1].startswith("Error (overlapping_edits): ")
    assert "Array must contain at least 1 element(s)" in used.outputs[2]
    assert (work / "f").read_text("utf-8") == "abcdef\n"


async def test_deleted_files_come_back_from_the_trash(
    server: RunsServer, watcher: Watcher, work: Path
) -> None:
    (work / "f").write_text("keep me", "utf-8")
    await use(server, watcher, work, ("delete_file", {"path": "f"}))
    assert not (work / "f").exists()
    listed = await watcher.ask("trash_list", cwd=str(work))
    assert listed["totalEntries"] == 1
    entry = listed["workspaces"][0]["entries"][0]
    assert entry["metadata"]["originalPath"] == "f"
    assert entry["metadata"]["runId"] == "r"
    (work / "f").write_text("in the way", "utf-8")
    archive = entry["path"]
    calls: list[Call] = [("restore_file", {"trashedPath": archive})]
    calls.append(("restore_file", {"trashedPath": archive, "targetPath": "g"}))
    used = await use(server, watcher, work, *calls, run_id="r2")
    assert used.outputs[0].startswith("Error (already_exists): ")
    assert (work / "g").read_text("utf-8") == "keep me"
    assert (await watcher.ask("trash_list", cwd=str(work)))["workspaces"] == []


async def test_the_trash_restores_nothing_outside_over_the_wire(
    server: RunsServer, watcher: Watcher, work: Path
) -> None:
    outside = work.with_name("outside")
    outside.mkdir()
    for name, target in (("loop", "loop"), ("out", outside), ("leaf", outside / "x")):
        (work / name).symlink_to(target)
    (work / "f").write_text("f", "utf-8")
    await use(server, watcher, work, ("delete_file", {"path": "f"}))
    entries = (await watcher.ask("trash_list", cwd=str(work)))["workspaces"][0]["entries"]
    archive = entries[0]["path"]
    for target in ("out/x", "leaf", "loop/../out/x", "out/../outside/x", str(outside / "x"), "."):
        fields = {"cwd": str(work), "trashPath": archive, "targetPath": target}
        answer = await watcher.ask("trash_restore", **fields)
        assert answer["message"] == f"Restore target escapes workspace: {target}"
    nowhere = await watcher.ask("trash_restore", cwd=str(work), trashPath="a\0b")
    assert nowhere["message"].startswith("Could not read metadata from trash archive: ")
    assert list(outside.iterdir()) == []


async def test_a_file_is_not_moved_onto_itself(
    server: RunsServer, watcher: Watcher, work: Path
) -> None:
    (work / "f").write_text("f", "utf-8")
    (work / "link").symlink_to("f")
    plain = {"fromPath": "f", "expectedSha256": sha(b"f"), "overwrite": True}
    calls = [("move_file", {**plain, "toPath": target}) for target in ("f", "./f", "link")]
    used = await use(server, watcher, work, *calls)
    assert [output.partition(":")[0] for output in used.outputs] == ["Error (already_exists)"] * 3
    assert (work / "f").read_text("utf-8") == "f"


async def test_the_trash_is_restored_and_cleared_over_the_wire(
    server: RunsServer, watcher: Watcher, work: Path
) -> None:
    for name in ("f", "g"):
        (work / name).write_text(name, "utf-8")
    calls: list[Call] = [("delete_file", {"path": "f"}), ("delete_file", {"path": "g"})]
    await use(server, watcher, work, *calls)
    entries = (await watcher.ask("trash_list", cwd=str(work)))["workspaces"][0]["entries"]
    first = entries[0]["path"]
    cwd = str(work)
    escaped = await watcher.ask("trash_restore", cwd=cwd, trashPath=first, targetPath="../x")
    assert escaped["message"] == "Restore target escapes workspace: ../x"
    assert escaped["code"] == "RESTORE_FAILED"
    wrong = await watcher.ask("trash_restore", cwd=cwd, trashPath="/etc/passwd")
    assert wrong["message"] == "Could not read metadata from trash archive: /etc/passwd"
    done = await watcher.ask("trash_restore", cwd=cwd, trashPath=first, targetPath="a/b/f")
    assert (done["restored"], done["from"]) == (str(work / "a/b/f"), first)
    cleared = await watcher.ask("trash_clear", cwd=cwd)
    assert cleared["cleared"] == 1
    assert cleared["bytesFreed"] > 0
    assert (await watcher.ask("trash_clear", cwd=cwd))["cleared"] == 0


async def test_moving_checks_the_hash_and_the_target(
    server: RunsServer, watcher: Watcher, work: Path
) -> None:
    (work / "f").write_text("f", "utf-8")
    (work / "g").write_text("g", "utf-8")
    (work / "d").mkdir()
    digest = sha(b"f")

    def move(to: str, **more: object) -> Call:
        return "move_file", {"fromPath": "f", "toPath": to, "expectedSha256": digest, **more}

    calls = [move("g"), move("d", overwrite=True), move("no/f"), move("g", overwrite=True)]
    used = await use(server, watcher, work, *calls)
    kinds = [re.match(r"Error \((\w+)\)", output) for output in used.outputs]
    assert [kind and kind[1] for kind in kinds] == [
        "already_exists",
        "already_exists",
        "not_found",
        None,
    ]
    assert "Next step: choose another toPath, or pass overwrite" in used.outputs[0]
    assert (work / "g").read_text("utf-8") == "f"
    assert not (work / "f").exists()
    assert (await watcher.ask("trash_list", cwd=str(work)))["totalEntries"] == 1


async def test_listing_globbing_and_searching(
    server: RunsServer, watcher: Watcher, work: Path
) -> None:
    for name in ("src/a.py", "src/deep/b.py", "node_modules/x.py", ".hidden", "z.txt"):
        path = work / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(f"needle in {name}\n", "utf-8")
    calls: list[Call] = [
        ("list_directory", {"path": "."}),
        ("list_directory", {"path": ".", "recursive": True, "includeHidden": True}),
        ("glob", {"pattern": "**/*.py"}),
        ("glob", {"pattern": "**/*.py", "excludeGlobs": []}),
        ("search_files", {"query": "needle", "mode": "text", "includeGlobs": ["src/**"]}),
        ("search_files", {"query": "n[e]+dle", "mode": "regex", "maxResults": 1}),
        ("search_files", {"query": "b.py", "mode": "path"}),
        ("search_files", {"query": "(", "mode": "regex"}),
    ]
    used = await use(server, watcher, work, *calls)
    assert used.outputs[0].split("\n")[1:] == ["node_modules/", "src/", "z.txt (16 bytes)"]
    assert ".hidden (18 bytes)" in used.outputs[1]
    assert used.outputs[2].split("\n") == ["src/a.py", "src/deep/b.py"]
    assert "node_modules/x.py" in used.outputs[3]
    assert used.outputs[4].split("\n") == [
        "src/a.py:1:1: needle in src/a.py",
        "src/deep/b.py:1:1: needle in src/deep/b.py",
    ]
    assert "(more matches were left out)" in used.outputs[5]
    assert used.outputs[6] == "src/deep/b.py"
    assert used.outputs[7].startswith("Error (command_failed): Not a regular expression")
