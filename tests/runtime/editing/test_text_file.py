"""Files that are not as expected, and writes that are interrupted."""

import os
import signal
import threading
from http.client import HTTPException
from pathlib import Path

import pytest

from stringd.runtime.editing.paths import FilePath
from stringd.runtime.editing.text_file import make_parents, read_text, remove, write_data
from stringd.runtime.errors import CommandError
from tests.requirements import proves
from tests.support.daemon import WAIT_SECONDS, Daemon
from tests.support.person import Person


@proves("DEF-03", "FILE-16")
@pytest.mark.parametrize(
    "name", ["my notes.md", "Übersicht.md", "한국어.md", "100%25.md", "a;b.md"]
)
def test_names_are_shown_and_taken_as_they_are(person: Person, name: str) -> None:
    person.put(f"dir é/{name}", "# T\n")
    assert person.gets(f"/open dir é/{name}") == f"Opened dir é/{name}\n---\n# T"
    assert person.gets("/info").split("\n")[2:4] == [
        f"file:      dir é/{name}",
        "cwd:       ~/dir é/",
    ]
    assert person.gets("/exec pwd").endswith(f"\n---\n{person.home}/dir é")
    assert person.gets(f"/write {name}\n# U").startswith(f"Written: {name} (")
    assert person.gets("/refresh") == f"Refreshed dir é/{name}\n---\n# U"


@proves("DEF-08")
def test_headings_of_any_script_are_blocks(person: Person) -> None:
    person.put("a.md", "# 서울\n\n## 날씨 예보\n\n맑음\n\n## Überblick: Größe\n\ngroß\n")
    assert person.gets("/open a.md#날씨-예보").endswith("## 날씨 예보\n\n맑음")
    assert person.gets("/edit a.md#überblick-größe\nklein").startswith("Edited ")
    assert person.read("a.md").decode().endswith("## Überblick: Größe\n\nklein\n")


@proves("FILE-16")
def test_an_empty_file_opens_empty(person: Person) -> None:
    person.put("empty.md")
    assert person.gets("/open empty.md") == "Opened empty.md\n---\n"
    assert person.gets("/edit empty.md").endswith("\n---\n1 | \n\n(1 lines)")


@proves("FILE-16")
def test_a_single_line_of_ten_megabytes_opens_and_is_edited(person: Person) -> None:
    line = "word " * (2 * 1024 * 1024)
    person.put("long.md", line)
    assert person.gets("/open long.md") == f"Opened long.md\n---\n{line.strip()}"
    assert person.gets("/refresh").startswith("Refreshed long.md\n")
    assert person.gets("/append long.md\nend").startswith("Appended to: long.md (now ")
    assert len(person.gets("/edit long.md")) > len(line)


@proves("FILE-16")
def test_a_binary_file_is_named_as_one(person: Person) -> None:
    person.put("data.bin", b"\x7fELF\0\0\1" * 100)
    for command in ("/open data.bin", "/edit data.bin", "/append data.bin\nx"):
        refused = person.fails(command)
        assert refused.code == "LOAD_ERROR"
        assert refused.message.startswith("Failed to read data.bin: it is a binary file")


@proves("FILE-13", "CMD-32")
@pytest.mark.parametrize("command", ["/write", "/edit"])
def test_a_binary_file_is_overwritten_whole_and_comes_back(person: Person, command: str) -> None:
    data = b"\x7fELF\r\n\0\xff" * 100
    person.put("data.bin", data)
    reply = person.chanflow(f"<𝒞=string:file:main>\n{command} data.bin\none\ntwo\n</𝒞>")
    assert "✓ data.bin — Added 2 lines (overwrote text this topic had not read" in reply
    assert reply.endswith("\n\n1 +│ one\n2 +│ two\n</𝒞>\n")
    assert person.read("data.bin") == b"one\ntwo"
    person.gets("/undo")
    assert person.read("data.bin") == data


@proves("FILE-16")
def test_a_directory_is_no_document(person: Person) -> None:
    person.put("dir/a.md", "x")
    refused = person.fails("/edit dir")
    assert refused.text == (
        "ERROR(LOAD_ERROR): Failed to read dir: it is a directory. Use /ls to list it."
    )
    assert person.fails("/open dir/a.md/b.md").code == "NOT_FOUND"


@proves("FILE-16")
def test_an_unreadable_file_says_why(person: Person) -> None:
    if os.geteuid() == 0:
        pytest.skip("root reads everything")
    person.put("secret.md", "x").chmod(0)
    refused = person.fails("/open secret.md")
    assert refused.text == "ERROR(LOAD_ERROR): Failed to read secret.md: Permission denied"


@proves("FILE-11")
def test_a_read_only_file_is_not_replaced(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "fixed.md"
    path.write_bytes(b"old")
    path.chmod(0o444)
    if os.geteuid() == 0:
        # To root every file is writable; what others are told must still hold.
        monkeypatch.setattr(os, "access", lambda *_, **__: False)
    with pytest.raises(CommandError) as refused:
        write_data(FilePath("fixed.md", path, path), b"new", 0o444)
    assert refused.value.message == "Write failed: fixed.md: Permission denied"
    assert path.read_bytes() == b"old"


@proves("FILE-16")
def test_a_dangling_link_is_a_missing_file(person: Person) -> None:
    (person.home / "link.md").symlink_to(person.home / "gone.md")
    assert person.fails("/open link.md").message == (
        f"File not found: link.md\nIt is a link to {person.home}/gone.md, which is not there.\n"
        "Recovery: Use /ls to list available files, or check the path spelling."
    )
    assert person.fails("/append link.md\nx").code == "NOT_FOUND"
    (person.home / "loop.md").symlink_to(person.home / "loop.md")
    assert person.fails("/open loop.md").code in ("NOT_FOUND", "LOAD_ERROR")
    assert person.fails("/write loop.md\nx").code in ("NOT_FOUND", "INTERNAL_ERROR")


def test_a_link_nobody_can_follow_stops_nothing_else(person: Person) -> None:
    person.put("a.md", "# A\n")
    (person.home / "far.md").symlink_to("x" * 300)
    assert person.gets("/ls") == "Listing ./\n---\n  a.md\n  far.md"
    refused = person.fails("/open far.md")
    assert refused.message == "Failed to read far.md: File name too long"
    assert person.fails("/ls far.md").message == "Not found: far.md"
    assert person.gets("/edit a.md").startswith("[editing: a.md]")


@proves("FILE-14")
def test_a_pipe_or_device_never_blocks_a_reader(person: Person) -> None:
    os.mkfifo(person.home / "pipe.md")
    for command in ("/open pipe.md", "/edit pipe.md", "/append pipe.md\nx", "/verify pipe.md#x"):
        refused = person.fails(command)
        assert refused.code == "LOAD_ERROR"
        assert refused.message == "Failed to read pipe.md: it is not a regular file"
    refused = person.fails("/write pipe.md\nx")
    assert refused.message == "Write failed: pipe.md: it is not a regular file"
    for device in ("/dev/zero", "/dev/tty"):
        path = Path(device)
        with pytest.raises(CommandError):
            read_text(FilePath(device, path, path))


def test_a_name_that_is_too_long_is_refused(person: Person) -> None:
    for command in ("/open {}", "/write {}\ntext", "/edit {}", "/ls {}", "/verify {}#b"):
        for name in ("x" * 300, "y/" * 3000):
            assert person.fails(command.format(name)).code == "INVALID_PATH"


@proves("FILE-15")
def test_text_that_is_no_utf8_is_shown_with_marks(person: Person) -> None:
    person.put("latin.md", "# Caf\xe9\n[Caf\xe9](https://x.test/)\n".encode("latin-1"))
    assert person.gets("/open latin.md").startswith("Opened latin.md\n---\n# Caf�\n")
    assert "\n1 | # Caf�\n" in person.gets("/edit latin.md")
    assert "\n# Caf�\n" in person.chanflow("<𝒞=string:a>/open latin.md</𝒞>")
    person.gets("/info")
    person.gets("/set {x} = 1")


@proves("FILE-07")
def test_a_crash_while_writing_leaves_the_old_text_or_the_new(tmp_path: Path) -> None:
    texts = [f"{letter * 400_000}\n" for letter in "ab"]
    for round_ in range(2):
        with Daemon(tmp_path / str(round_)) as daemon:
            person = Person(daemon.port, "u", daemon.home)
            path = person.put("a.txt", texts[0])
            written = threading.Event()
            writer = threading.Thread(target=_write_on, args=(person, texts, written), daemon=True)
            writer.start()
            assert written.wait(WAIT_SECONDS)
            daemon.stop(signal.SIGKILL)
            writer.join(WAIT_SECONDS)
            assert path.read_text() in texts
            daemon.start()
            said = person.says("/undo")
            assert said.code in (None, "CONFLICT")
            assert path.read_text() in texts


def _write_on(person: Person, texts: list[str], written: threading.Event) -> None:
    """Write one text after the other until the daemon is gone."""
    try:
        for turn in range(10_000):
            person.gets(f"/write a.txt\n{texts[turn % 2]}")
            if turn == 5:
                written.set()
    except (OSError, HTTPException, AssertionError):
        written.set()


def test_no_temporary_file_is_left_behind(person: Person) -> None:
    for turn in range(5):
        person.gets(f"/write a.txt\n{turn}")
    person.fails("/edit a.txt#none\nx")
    assert [path.name for path in person.home.iterdir()] == ["a.txt"]


def test_a_directory_swapped_for_a_link_after_the_door_leads_nowhere(tmp_path: Path) -> None:
    root = tmp_path.resolve()
    for name, text in (("home", "in"), ("outside", "out")):
        (root / name).mkdir()
        (root / name / "a.md").write_text(text)
    judged = FilePath("a.md", root / "home/a.md", root / "home/a.md")
    (root / "home").rename(root / "was")
    (root / "home").symlink_to("outside")
    deeper = judged._replace(real=root / "home/new/a.md")
    for way, file in ((read_text, judged), (remove, judged), (make_parents, deeper)):
        with pytest.raises(CommandError, match="symbolic links"):
            way(file)
    with pytest.raises(CommandError, match="symbolic links"):
        write_data(judged, b"new")
    assert [path.name for path in (root / "outside").iterdir()] == ["a.md"]
    assert (root / "outside/a.md").read_text() == "out"
