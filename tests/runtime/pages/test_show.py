"""Showing documents: what a session remembers of a view."""

from stringd.runtime.topics.location import WARNINGS_SHOWN
from tests.support.person import Person


def test_each_view_replaces_the_shortcuts_of_the_last(person: Person) -> None:
    person.put("a.md", "# A\n\n[Docs](https://a.test)\n\n## B\n\n[Other](https://b.test)\n")
    person.gets("/open a.md")
    assert person.gets("/info @docs") == "@docs → https://a.test"
    person.gets("/open #b")
    assert person.gets("/info @other") == "@other → https://b.test"
    assert person.fails("/info @docs").code == "NOT_FOUND"


def test_a_failed_view_keeps_them(person: Person) -> None:
    person.put("a.md", "[Docs](https://a.test)\n")
    person.gets("/open a.md")
    person.fails("/open #gone")
    person.fails("/open gone.md")
    assert person.gets("/info @docs") == "@docs → https://a.test"


def test_auto_shortcuts_avoid_the_ids_of_menus(person: Person) -> None:
    person.put("a.md", "[!nav:main](nav.md)\n\n[Docs](https://a.test)\n")
    person.put("nav.md", "[@docs D](d.md)\n")
    person.gets("/open a.md")
    assert person.gets("/info @main.docs").endswith("/d.md")
    assert person.gets("/info @docs") == "@docs → https://a.test"


def test_documents_are_not_filled_with_variables(person: Person) -> None:
    person.put("a.md", "Hello {name}, $HOME\n")
    person.gets("/set {name} = Ann")
    assert person.gets("/open a.md") == "Opened a.md\n---\nHello {name}, $HOME"


def test_a_block_that_vanished_shows_the_whole_document(person: Person) -> None:
    person.put("a.md", "# A\n\n## S\n\ns\n")
    person.gets("/open a.md#s")
    person.put("a.md", "# A\n\nrest\n")
    said = person.says("/refresh")
    assert said.text == "Refreshed a.md\n---\n# A\n\nrest"
    assert said.meta["current_block"] is None


def test_a_large_document_is_shown_by_every_command(person: Person) -> None:
    person.put("big.md", "# Big\n\n" + "line of text\n" * 50_000 + "\n## End\n\nend\n")
    person.put("b.md", "# B\n")
    assert person.gets("/open big.md").endswith("end")
    assert person.gets("/open big.md#end") == "Opened big.md#end\n---\n## End\n\nend"
    person.gets("/open b.md")
    assert person.gets("/back").startswith("Back to big.md\n---\n## End")
    assert person.gets("/refresh").startswith("Refreshed big.md\n---\n## End")
    assert person.gets("/verify big.md#end").startswith("Verified big.md#end (")


def test_a_reply_carries_the_first_warnings_and_says_that_there_are_more(person: Person) -> None:
    uses = [f"[Use {number}][@u{number}]" for number in range(WARNINGS_SHOWN + 1)]
    person.put("a.md", "\n".join(uses[:-1]))
    assert len(person.says("/open a.md").meta["warnings"]) == WARNINGS_SHOWN
    person.put("a.md", "\n".join(uses))
    found = person.says("/open a.md").meta["warnings"]
    assert found[0] == "Unknown shortcut @u0 — define with: [@u0 Use 0](URI)"
    assert len(found) == WARNINGS_SHOWN + 1
    assert "sfmd validate" in found[-1]


def test_a_large_file_that_is_not_text_is_shown_as_far_as_it_can_be(person: Person) -> None:
    (person.home / "latin.md").write_bytes(b"caf\xe9\n" * 20_000)
    shown = "\n".join(["caf\ufffd"] * 20_000)
    assert person.gets("/open latin.md") == f"Opened latin.md\n---\n{shown}"
