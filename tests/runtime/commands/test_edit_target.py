"""What an editing command asks for: target, switches and text, told apart."""

import pytest

from tests.requirements import proves
from tests.support.person import Person

DOC = "# Doc\n\n<!-- #intro -->\nOld.\n<!-- /intro -->\n\n## Tasks\n\n- one\n"


@proves("CMD-12")
@pytest.mark.parametrize("name", ["doc.md", "my doc.md", '"my doc.md"'])
def test_text_after_a_block_on_the_same_line_replaces_it(person: Person, name: str) -> None:
    for file in ("doc.md", "my doc.md"):
        person.put(file, DOC)
    shown = name.strip('"')
    assert person.gets(f"/edit {name}#intro new words here") == f"Edited {shown}#intro (10 lines)"
    assert person.read(shown).decode() == DOC.replace("Old.", "new words here")
    assert person.gets(f"/write {name}#intro more words") == f"Edited {shown}#intro (10 lines)"
    assert person.read(shown).decode() == DOC.replace("Old.", "more words")


@proves("CMD-02")
@pytest.mark.parametrize(
    "text", ["word " * 2000 + "end", "see /../../../../etc/passwd", "a\tb", "http://x.test is it"]
)
def test_a_text_on_the_same_line_may_be_anything(person: Person, text: str) -> None:
    size = len(text.encode())
    assert person.gets(f"/write a.md {text}") == f"Written: a.md ({size} bytes, 1 lines)"
    assert person.gets(f"/append a.md {text}") == f"Appended to: a.md (now {size * 2 + 1} bytes)"
    assert person.gets(f"/edit a.md {text}") == "Edited a.md (1 lines, whole file)"
    assert person.read("a.md") == text.encode()


@proves("FILE-13")
def test_on_one_line_a_switch_at_the_end_is_text(person: Person) -> None:
    person.gets("/write a.md run it with --force")
    assert person.read("a.md") == b"run it with --force"
    person.gets("/write --force a.md forced")
    assert person.read("a.md") == b"forced"
    assert person.gets("/edit a.md --force").startswith("[editing: a.md]\n")
    assert person.fails("/write a.md --force").message.startswith("Usage: /write")
    assert person.read("a.md") == b"forced"


def test_a_name_with_spaces_that_exists_may_be_followed_by_text(person: Person) -> None:
    person.put("my long notes.md", "# A\nx\n")
    said = person.gets("/append my long notes.md and more")
    assert said == "Appended to: my long notes.md (now 14 bytes)"
    person.gets("/edit my long notes.md#a other words")
    assert person.read("my long notes.md") == b"# A\nother words"
    assert (
        person.gets("/write my long notes.md new") == "Written: my long notes.md (3 bytes, 1 lines)"
    )
    assert [path.name for path in person.home.iterdir()] == ["my long notes.md"]


def test_two_dashes_end_the_switches(person: Person) -> None:
    assert person.gets("/write -- --force\nx") == "Written: --force (1 bytes, 1 lines)"
    assert (
        person.gets("/write --new -- notes --new\nx") == "Written: notes --new (1 bytes, 1 lines)"
    )
    assert person.fails("/write --new -- --force\ny").code == "CONFLICT"
    assert person.gets("/append -- --force --bogus") == "Appended to: --force (now 9 bytes)"
    assert person.gets("/edit -- --force").startswith("[editing: --force]\n")
    assert person.gets("/replace --all -- --force\nx\n---\ny").endswith(" in --force")


@pytest.mark.parametrize(
    ("command", "message"),
    [
        ("/write --bogus a.md\nx", "Unknown switch: --bogus\nUsage: /write"),
        ("/write a.md --bogus\nx", "Unknown switch: --bogus\nUsage: /write"),
        ("/write --bogus a.md x", "Unknown switch: --bogus\nUsage: /write"),
        ("/write a.md --all\nx", "Unknown switch: --all\nUsage: /write"),
        ("/edit a.md --bogus", "Unknown switch: --bogus\nUsage: /edit"),
        ("/append a.md --force\nx", "Unknown switch: --force\nUsage: /append"),
        ("/write a.md --help", "Usage: /write"),
        ("/edit --help", "Usage: /edit"),
        ("/edit a.md -h", "Usage: /edit"),
        ("/replace --help a.md\nx", "Usage: /replace"),
    ],
)
def test_a_switch_nobody_knows_never_becomes_a_name_or_text(
    person: Person, command: str, message: str
) -> None:
    person.put("a.md", "text\n")
    refused = person.fails(command)
    assert refused.code == "INVALID_TARGET"
    assert refused.message.startswith(message)
    assert person.read("a.md") == b"text\n"
    assert [*person.home.iterdir()] == [person.home / "a.md"]


def test_a_quoted_name_may_look_like_a_switch(person: Person) -> None:
    assert person.gets('/write "--odd"\nx') == "Written: --odd (1 bytes, 1 lines)"
    assert person.gets('/edit "--odd"').startswith("[editing: --odd]\n")


@pytest.mark.parametrize("form", ["/edit a.md#", "/edit a.md#\nx", "/replace a.md#\nx"])
def test_a_block_without_a_name_is_refused(person: Person, form: str) -> None:
    person.put("a.md", "text\n")
    refused = person.fails(form)
    assert refused.code == "INVALID_TARGET"
    assert refused.message.startswith("Usage: /")


def test_a_name_that_ends_in_a_slash_is_no_file(person: Person) -> None:
    for form in ("/write new/\nx", "/edit new/\nx"):
        refused = person.fails(form)
        assert (refused.code, refused.message) == (
            "INVALID_TARGET",
            "A name that ends in / is a directory's: new/",
        )
    assert not (person.home / "new").exists()


@pytest.mark.parametrize("target", ["a.md:L1-", "a.md:L", "a.md:L2-x", "a.md:l1", "a.md:5-10"])
@pytest.mark.parametrize("command", ["write", "edit", "append", "replace"])
def test_half_a_line_range_is_no_file_name(person: Person, command: str, target: str) -> None:
    person.put("a.md", "text\n")
    refused = person.fails(f"/{command} {target}\nx\n---\ny")
    assert refused.code == "INVALID_TARGET"
    assert refused.message.startswith(f"Not a line range: {target}\nUsage: /{command}")
    assert [*person.home.iterdir()] == [person.home / "a.md"]


@pytest.mark.parametrize(
    "command",
    [
        "/write HTTP://x.test/a.md\nx",
        "/edit https://x.test:80/a.md#b\nx",
        "/append http://x.test:80\nx",
        "/replace http://x.test/a.md\nx\n---\ny",
        "/verify chanflow://x.test/a.md#b",
        "/ls http://x.test/a",
    ],
)
def test_a_web_address_is_no_file_name(person: Person, command: str) -> None:
    refused = person.fails(command)
    assert refused.code == "INVALID_TARGET"
    assert refused.message.startswith("Not a file: ")
    assert refused.message.endswith("\nRecovery: /open takes web addresses.")
    assert [*person.home.iterdir()] == []


def test_a_shortcut_is_no_file_name(person: Person) -> None:
    person.put("a.md", "[@docs Docs](sub/docs.md)\n")
    person.gets("/open a.md")
    for form in ("/write @docs\nx", "/edit @docs#b", "/append @docs\nx", "/replace @docs:L1\nx"):
        refused = person.fails(form)
        assert (refused.code, refused.message) == (
            "INVALID_TARGET",
            "@docs is a shortcut, and only files are edited.\nRecovery: it leads to sub/docs.md",
        )
    assert person.gets("/write @other\nx") == "Written: @other (1 bytes, 1 lines)"


def test_parts_of_the_open_document_are_named_by_its_path(person: Person) -> None:
    person.put("sub/doc.md", DOC)
    person.gets("/open sub/doc.md")
    assert person.gets("/edit #intro").startswith("[editing: sub/doc.md#intro]\n")
    assert person.fails("/edit #no").message.startswith("Block not found: #no in sub/doc.md\n")
    assert person.fails("/edit :L99").message.startswith(
        "Line range out of bounds: sub/doc.md:L99 (file has 10 lines)\n"
    )
