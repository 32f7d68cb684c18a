"""`/write`, `/append`, `/edit`, `/replace`, `/verify`, `/undo`."""

import pytest

from tests.requirements import proves
from tests.support.person import Person

DOC = "# Doc\n\n<!-- #intro -->\nOld.\n<!-- /intro -->\n\n## Tasks\n\n- one\n\n## Done\n\nx\n"
OUT_OF_BOUNDS = (
    "Line range out of bounds: {} (file has 3 lines)\n"
    "Recovery: run /edit a.txt for current line numbers."
)


@proves("CMD-22", "CMD-02", "CMD-32", "DEF-13")
def test_writing_counts_bytes_and_lines_and_keeps_every_byte(person: Person) -> None:
    assert person.gets("/write deep/er/a.txt\nré\nsumé") == (
        "Written: deep/er/a.txt (9 bytes, 2 lines)"
    )
    assert person.read("deep/er/a.txt") == "ré\nsumé".encode()
    assert person.gets("/write a.txt\n  x \n\n") == "Written: a.txt (6 bytes, 3 lines)"
    assert person.read("a.txt") == b"  x \n\n"
    assert person.gets("/write a.txt\n") == "Written: a.txt (0 bytes, 1 lines)"
    assert person.read("a.txt") == b""
    assert person.gets("/write one.txt just one line") == "Written: one.txt (13 bytes, 1 lines)"
    assert person.read("one.txt") == b"just one line"


@proves("FILE-13")
def test_writing_a_new_file_only(person: Person) -> None:
    assert person.gets("/write --new a.md\nx") == "Written: a.md (1 bytes, 1 lines)"
    for form in ("/write --new a.md\ny", "/write a.md --new\ny"):
        refused = person.fails(form)
        assert refused.code == "CONFLICT"
    assert person.read("a.md") == b"x"


@proves("CMD-23")
def test_appending_starts_a_line_of_its_own(person: Person) -> None:
    person.put("log.txt", "one")
    assert person.gets("/append log.txt\ntwo\n") == "Appended to: log.txt (now 8 bytes)"
    assert person.gets("/append log.txt three") == "Appended to: log.txt (now 13 bytes)"
    assert person.read("log.txt") == b"one\ntwo\nthree"
    person.put("empty.txt")
    person.gets("/append empty.txt\nx")
    assert person.read("empty.txt") == b"x"
    assert person.fails("/append gone.txt\nx").text == (
        "ERROR(NOT_FOUND): File not found: gone.txt"
    )


@proves("CMD-09", "CMD-10")
def test_source_is_shown_with_numbers(person: Person) -> None:
    person.put("a.txt", "".join(f"line {n}\n" for n in range(1, 11)))
    said = person.gets("/edit a.txt")
    assert said.startswith("[editing: a.txt]\n---\n 1 | line 1\n")
    assert said.endswith("\n10 | line 10\n11 | \n\n(11 lines)")
    assert person.gets("/edit a.txt:L9-10") == (
        "[editing: a.txt:L9-10]\n---\n 9 | line 9\n10 | line 10\n\n(2 lines)"
    )
    person.put("doc.md", DOC)
    assert person.gets("/edit doc.md#intro") == (
        "[editing: doc.md#intro]\n---\n1 | Old.\n\n(1 lines)"
    )
    assert person.fails("/edit doc.md#no").text == (
        "ERROR(NOT_FOUND): Block not found: #no in doc.md\n"
        "Available blocks: intro, doc, tasks, done"
    )
    assert person.fails("/edit no.md").text == "ERROR(NOT_FOUND): File not found: no.md"


@proves("CMD-09")
def test_a_view_is_cut_where_a_variable_says(person: Person) -> None:
    person.put("a.txt", "1\n2\n3\n4\n5")
    person.gets("/set _edit_max_lines = 2")
    assert person.gets("/edit a.txt") == (
        "[editing: a.txt]\n---\n1 | 1\n2 | 2\n... (3 more lines, truncated at 2 lines)\n\n(5 lines)"
    )
    assert person.gets("/edit a.txt:L4-L5").endswith("\n---\n4 | 4\n5 | 5\n\n(2 lines)")
    person.put("long.txt", "\n".join(["x"] * 120))
    for value in ("0", "many"):
        person.gets(f"/set _edit_max_lines = {value}")
        shown = person.gets("/edit long.txt")
        assert "\n100 | x\n... (20 more lines, truncated at 100 lines)\n\n(120 lines)" in shown


@proves("CMD-11")
def test_a_whole_file_is_replaced(person: Person) -> None:
    person.put("a.md", "old\n")
    assert person.gets("/edit a.md\nnew\nlines") == "Edited a.md (2 lines, whole file)"
    assert person.read("a.md") == b"new\nlines"
    assert person.gets("/edit fresh.md\nx") == "Edited fresh.md (1 lines, whole file)"
    refused = person.fails("/edit no/dir/a.md\nx")
    assert refused.code == "INTERNAL_ERROR"
    assert refused.message.startswith("Write failed: ")


@proves("CMD-12")
def test_a_block_is_replaced_and_nothing_else(person: Person) -> None:
    person.put("doc.md", DOC)
    assert person.gets("/edit doc.md#intro\nNew.\nTwo.") == "Edited doc.md#intro (15 lines)"
    assert person.gets("/edit doc.md#tasks\n- two") == "Edited doc.md#tasks (15 lines)"
    assert person.gets("/write doc.md#done\ny") == "Edited doc.md#done (15 lines)"
    expected = DOC.replace("Old.", "New.\nTwo.").replace("- one", "- two")
    assert person.read("doc.md").decode() == expected.replace("\nx\n", "\ny\n")
    refused = person.fails("/edit doc.md#no\nx")
    assert refused.code == "NOT_FOUND"
    assert refused.message.startswith(
        "Block #no not found in doc.md.\nSupported formats (in priority order):\n  1. "
    )


@proves("DEF-06")
def test_the_body_of_a_last_heading_without_newline_is_edited(person: Person) -> None:
    person.put("a.md", "# A\n\n## End")
    person.gets("/edit a.md#end\ntext")
    assert person.read("a.md") == b"# A\n\n## End\ntext"


@proves("DEF-05", "DEF-07", "FILE-11")
def test_markers_and_headings_in_code_are_text(person: Person) -> None:
    source = "```\n## Tasks\n<!-- #b -->\n<!-- /b -->\n```\nsee <!-- #b --> here\n\n## Tasks\n\nx\n"
    person.put("a.md", source)
    person.gets("/edit a.md#tasks\ny")
    assert person.read("a.md").decode() == source.replace("\nx\n", "\ny\n")
    assert person.fails("/edit a.md#b\nz").code == "NOT_FOUND"


@proves("FILE-11")
def test_text_that_would_break_the_block_is_refused(person: Person) -> None:
    person.put("doc.md", DOC)
    for body in ("<!-- /intro -->\nx", "```\nnever closed"):
        refused = person.fails(f"/edit doc.md#intro\n{body}")
        assert refused.code == "INVALID_PAYLOAD"
    assert person.read("doc.md").decode() == DOC


@proves("CMD-28")
def test_lines_are_replaced(person: Person) -> None:
    person.put("a.txt", "1\n2\n3\n4\n")
    assert person.gets("/replace a.txt:L2-L3\ntwo\nthree\nmore") == "Replaced a.txt:L2-L3"
    assert person.gets("/replace a.txt:L1-1\none") == "Replaced a.txt:L1"
    assert person.gets("/edit a.txt:L5\nfour") == "Replaced a.txt:L5"
    assert person.read("a.txt") == b"one\ntwo\nthree\nmore\nfour\n"
    assert person.gets("/replace a.txt:L2-4\n") == "Replaced a.txt:L2-L4"
    assert person.read("a.txt") == b"one\nfour\n"


@proves("CMD-28")
def test_lines_of_the_open_document_need_no_path(person: Person) -> None:
    assert person.fails("/replace :L1\nx").message == "No document open."
    person.put("sub/a.md", "1\n2\n")
    person.gets("/open sub/a.md")
    assert person.gets("/replace :L2\ntwo") == "Replaced sub/a.md:L2"
    assert person.read("sub/a.md") == b"1\ntwo\n"


@proves("CMD-28")
@pytest.mark.parametrize(
    ("target", "message"),
    [
        ("a.txt:L2-L1", "Invalid line range: L2-L1"),
        ("a.txt:L0", "Invalid line range: L0-L0"),
        ("a.txt:L4", OUT_OF_BOUNDS.format("a.txt:L4")),
        ("a.txt:L2-L9", OUT_OF_BOUNDS.format("a.txt:L2-L9")),
    ],
)
def test_bad_ranges_are_refused(person: Person, target: str, message: str) -> None:
    person.put("a.txt", "1\n2\n")
    refused = person.fails(f"/replace {target}\nx")
    assert (refused.code, refused.message) == ("INVALID_TARGET", message)


@proves("CMD-28", "DEF-14")
def test_exact_text_is_replaced_literally(person: Person) -> None:
    person.put("a.txt", "cost: 5\ncost: 5\nprice\n")
    assert person.gets("/replace a.txt\nprice\n---\n$& $1 \\n") == "Replaced 1 occurrence in a.txt"
    assert person.read("a.txt") == b"cost: 5\ncost: 5\n$& $1 \\n\n"
    refused = person.fails("/replace a.txt\ncost\n---\nx")
    assert refused.code == "CONFLICT"
    first, _, matches, *excerpts = refused.message.split("\n")
    assert first == "Old text matched 2 times in a.txt; refusing ambiguous replace."
    assert matches == "Matches:"
    assert excerpts[0] == "- ...cost: 5\\ncost: 5\\n$& $1 \\n\\n..."
    assert person.gets("/replace --all a.txt\ncost\n---\nsum") == "Replaced 2 occurrences in a.txt"
    assert person.gets("/replace a.txt --all\nsum: 5\n---") == "Replaced 2 occurrences in a.txt"


@proves("CMD-28")
@pytest.mark.parametrize(
    ("command", "code", "message"),
    [
        ("/replace a.txt", "INVALID_PAYLOAD", "No replacement given."),
        ("/replace", "INVALID_TARGET", "Usage: /replace"),
        ("/replace\nx", "INVALID_TARGET", "Usage: /replace"),
        ("/replace a.txt\nx", "INVALID_PAYLOAD", "Missing separator"),
        ("/replace a.txt\n---\nx", "INVALID_PAYLOAD", "Old text cannot be empty."),
        ("/replace a.txt\nzz\n---\nx", "NOT_FOUND", "Old text not found in a.txt."),
        ("/replace gone.txt\nzz\n---\nx", "NOT_FOUND", "File not found: gone.txt"),
        ("/replace a.txt:L1-\nx", "INVALID_TARGET", "Not a line range: a.txt:L1-"),
        ("/write", "INVALID_TARGET", "Usage: /write"),
        ("/write a.txt", "INVALID_TARGET", "Usage: /write"),
        ("/append", "INVALID_TARGET", "Usage: /append"),
        ("/append a.txt#b\nx", "INVALID_TARGET", "Usage: /append"),
        ("/edit", "INVALID_TARGET", "Usage: /edit"),
        ("/write a.txt:L1\nx", "INVALID_TARGET", "a.txt:L1 names lines"),
        ("/append a.txt:L1\nx", "INVALID_TARGET", "a.txt:L1 names lines"),
        ("/verify a.txt", "INVALID_TARGET", "Usage: /verify <path>#<blockId>"),
        ("/verify #b", "INVALID_TARGET", "Usage: /verify <path>#<blockId>"),
        ("/verify a.txt#b", "NOT_FOUND", "Block not found: #b in a.txt"),
    ],
)
def test_incomplete_orders_are_refused(
    person: Person, command: str, code: str, message: str
) -> None:
    person.put("a.txt", "text\n")
    refused = person.fails(command)
    assert refused.code == code
    assert refused.message.startswith(message)
    assert person.read("a.txt") == b"text\n"


@proves("CMD-19")
def test_a_block_is_verified_as_an_edit_would_find_it(person: Person) -> None:
    person.put("doc.md", DOC)
    assert person.gets("/verify doc.md#intro") == (
        "Verified doc.md#intro (1 lines, 4 chars)\n---\nOld."
    )
    assert person.gets("/verify doc.md#tasks") == (
        "Verified doc.md#tasks (5 lines, 17 chars)\n---\n## Tasks\n\n- one\n\n"
    )
    person.put("long.md", f"<!-- #b -->\n{'x' * 300}\n<!-- /b -->\n")
    assert person.gets("/verify long.md#b").endswith(f"\n---\n{'x' * 200}...")


@proves("DEF-15")
def test_a_name_with_spaces_is_never_split(person: Person) -> None:
    person.put("my notes.md", "x\n")
    assert person.gets("/edit my notes.md").startswith("[editing: my notes.md]\n")
    assert person.gets('/edit "my notes.md"').startswith("[editing: my notes.md]\n")
    assert person.gets('/write "my other.md" text') == "Written: my other.md (4 bytes, 1 lines)"
    assert person.gets("/write my third.md\ntext") == "Written: my third.md (4 bytes, 1 lines)"
    names = ("my file.md", "my file.md#s", "my file.md:L2")
    for form in (
        *(f"/{verb} {name}" for verb in ("edit", "write") for name in names),
        "/edit some file",
    ):
        refused = person.fails(form)
        assert refused.code == "INVALID_TARGET"
    assert not (person.home / "my").exists()
    assert not (person.home / "some").exists()
    person.put("a b.md", "## T\n\nx\n")
    assert person.gets('/edit "a b.md"#t\ny') == "Edited a b.md#t (4 lines)"


def test_edits_resolve_from_the_open_document_and_tilde_from_home(person: Person) -> None:
    person.put("sub/a.md", "# A\n")
    person.gets("/open sub/a.md")
    person.gets("/write b.md\nx")
    person.gets("/write ~/c.md\nx")
    assert person.read("sub/b.md") == person.read("c.md") == b"x"
