"""What an edit does to a file, and to nothing else."""

import stat

import pytest

from tests.requirements import proves
from tests.support.daemon import Daemon
from tests.support.http import request
from tests.support.person import Person


@proves("FILE-08")
def test_the_mode_of_a_file_is_kept(person: Person) -> None:
    script = person.put("run.sh", "echo 1\n")
    script.chmod(0o751)
    person.gets("/edit run.sh\necho 2\n")
    assert stat.S_IMODE(script.stat().st_mode) == 0o751
    person.gets("/undo")
    assert stat.S_IMODE(script.stat().st_mode) == 0o751


@proves("FILE-09")
def test_line_ends_and_byte_order_mark_are_kept(person: Person) -> None:
    bom = b"\xef\xbb\xbf"
    person.put("a.md", bom + b"# A\r\n\r\n## B\r\n\r\nold\r\n")
    person.gets("/edit a.md#b\nnew\nlines")
    assert person.read("a.md") == bom + b"# A\r\n\r\n## B\r\n\r\nnew\r\nlines\r\n"
    person.gets("/replace a.md:L1\n# AA")
    person.gets("/append a.md\nend\n")
    assert person.read("a.md") == bom + b"# AA\r\n\r\n## B\r\n\r\nnew\r\nlines\r\nend\r\n"
    person.gets("/edit a.md\none\ntwo\n")
    assert person.read("a.md") == bom + b"one\r\ntwo\r\n"
    person.gets("/write a.md\nthree\n")
    assert person.read("a.md") == bom + b"three\r\n"
    person.gets("/undo")
    assert person.read("a.md") == bom + b"one\r\ntwo\r\n"


@proves("FILE-15")
def test_bytes_that_are_no_text_survive_an_edit_beside_them(person: Person) -> None:
    person.put("a.txt", b"caf\xe9 \xff\xfe\nline\n")
    person.gets("/replace a.txt:L2\nnew")
    assert person.read("a.txt") == b"caf\xe9 \xff\xfe\nnew\n"
    person.gets("/undo")
    assert person.read("a.txt") == b"caf\xe9 \xff\xfe\nline\n"
    assert person.gets("/edit a.txt").startswith("[editing: a.txt]\n---\n1 | caf")


@proves("FILE-10")
@pytest.mark.parametrize(
    "command",
    ["/edit a.md\nmine", "/write a.md\nmine", "/replace a.md:L1\nmine", "/replace a.md\nx\n---\ny"],
)
def test_a_file_that_changed_underneath_is_not_overwritten(person: Person, command: str) -> None:
    person.put("a.md", "x\n")
    person.gets("/open a.md")
    person.put("a.md", "x by another\n")
    refused = person.fails(command)
    assert refused.code == "CONFLICT"
    assert refused.message.startswith("Refusing to overwrite changed file: a.md\n")
    assert person.read("a.md") == b"x by another\n"
    person.gets("/edit a.md")
    person.gets(command)


def test_what_another_topic_wrote_is_a_change_too(person: Person) -> None:
    person.put("a.md", "x\n")
    person.gets("/edit a.md")
    person.gets("/write a.md\nother", "file:other")
    assert person.fails("/edit a.md\nmine").code == "CONFLICT"
    person.gets("/edit a.md --force\nmine")
    assert person.read("a.md") == b"mine"


@pytest.mark.parametrize(
    "command",
    [
        "/write --force a.md#x\nmine",
        "/edit a.md#x --force\nmine",
        "/edit --force a.md:L2\nmine",
        "/replace --force a.md:L2\nmine",
        "/replace a.md --force\ntheirs\n---\nmine",
    ],
)
def test_any_edit_can_be_forced_onto_a_changed_file(person: Person, command: str) -> None:
    person.put("a.md", "# X\nold\n")
    person.gets("/open a.md")
    person.put("a.md", "# X\ntheirs\n")
    assert person.fails(command.replace("--force", "")).code == "CONFLICT"
    person.gets(command)
    assert person.read("a.md") == b"# X\nmine\n"


def test_appending_loses_nothing_and_so_never_conflicts(person: Person) -> None:
    person.put("log.txt", "one\n")
    person.gets("/edit log.txt")
    person.put("log.txt", "one\ntwo\n")
    person.gets("/append log.txt\nthree\n")
    assert person.read("log.txt") == b"one\ntwo\nthree\n"
    assert person.fails("/write log.txt\none").code == "CONFLICT"
    person.gets("/edit log.txt")
    person.gets("/write log.txt\none")


@proves("FILE-02")
def test_a_link_is_written_through_and_stays_a_link(person: Person) -> None:
    target = person.put("real.md", "x\n")
    link = person.home / "link.md"
    link.symlink_to(target)
    person.gets("/edit link.md\ny\n")
    assert link.is_symlink()
    assert target.read_bytes() == b"y\n"


@proves("FILE-11")
def test_a_directory_is_not_overwritten(person: Person) -> None:
    person.put("dir/a.md", "x")
    for command in ("/write dir\nx", "/edit dir\nx"):
        assert person.fails(command).text == (
            "ERROR(INTERNAL_ERROR): Write failed: dir: it is a directory. Use /ls to list it."
        )
    assert person.fails("/append dir\nx").code == "LOAD_ERROR"
    assert person.read("dir/a.md") == b"x"
    assert [*person.home.iterdir()] == [person.home / "dir"]


@proves("FILE-11")
def test_without_a_place_for_the_way_back_nothing_is_written(
    person: Person, daemon: Daemon
) -> None:
    person.put("a.md", "old\n")
    records = daemon.data_dir / "undo" / person.id
    records.parent.mkdir(exist_ok=True)
    records.touch()
    refused = person.fails("/edit a.md\nnew\n")
    assert refused.code == "INTERNAL_ERROR"
    assert refused.message.startswith("Write failed: a.md: the undo copy cannot be kept")
    assert person.read("a.md") == b"old\n"
    assert [*person.home.iterdir()] == [person.home / "a.md"]


def test_edits_of_one_file_from_many_topics_lose_nothing(person: Person) -> None:
    person.put("log.txt")
    blocks = "\n".join(
        f"<𝒞=string:file:t{number}>\n/append log.txt\nline {number}\n\n</𝒞>" for number in range(20)
    )
    replies = person.chanflow(blocks)
    assert replies.count("✓ log.txt — Added 1 line") == 20
    assert sorted(person.read("log.txt").decode().splitlines()) == sorted(
        f"line {number}" for number in range(20)
    )


def test_settings_of_the_diff_are_variables(person: Person) -> None:
    person.put("a.txt", "".join(f"{n}\n" for n in range(1, 30)))
    person.gets("/set\n_diff_context = 0\n_diff_max_lines = nonsense")
    reply = person.chanflow("<𝒞=string:file:main>\n/replace a.txt:L15\nx\n</𝒞>")
    assert "15 -│ 15\n15 +│ x\n</𝒞>" in reply
    assert "14" not in reply.partition("\n\n")[2]
    person.gets("/set _diff_max_lines = 1")
    reply = person.chanflow("<𝒞=string:file:main>\n/write a.txt\none\ntwo\nthree\n</𝒞>")
    assert "more lines changed, truncated at 1 lines)" in reply


def test_a_body_may_be_as_large_as_a_request(person: Person) -> None:
    text = "x" * (9 * 1024 * 1024)
    assert (
        person.gets(f"/write big.txt\n{text}") == f"Written: big.txt ({len(text)} bytes, 1 lines)"
    )
    assert person.read("big.txt") == text.encode()
    assert request(person.port, "GET", "/health").status == 200
