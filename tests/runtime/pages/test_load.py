"""Documents from files: their menus, includes and source files."""

import pytest

from stringd.runtime.pages.load import absolute_target
from tests.requirements import proves
from tests.support.person import Person


@pytest.mark.parametrize(
    ("target", "base", "expected"),
    [
        ("../x.md#part", "file:///h/nav/m.md", "/h/x.md#part"),
        ("a%20b.md", "file:///h/m.md", "/h/a b.md"),
        ("x.md#part", "file:///h/C%23/m.md", "file:///h/C%23/x.md#part"),
        ("#part", "file:///h/m.md", "#part"),
        ("~/x.md", "file:///h/m.md", "~/x.md"),
        ("app:weather", "file:///h/m.md", "app:weather"),
        ("https://x.test/y", "file:///h/m.md", "https://x.test/y"),
        ("x.md#p", "https://h.test/nav/m.md", "https://h.test/nav/x.md#p"),
        ("/x", "https://h.test/nav/m.md", "https://h.test/x"),
    ],
)
def test_targets_are_resolved_where_they_stand(target: str, base: str, expected: str) -> None:
    assert absolute_target(target, base) == expected


def test_an_include_is_replaced_by_its_block_or_by_the_reason(person: Person) -> None:
    person.put(
        "page.md",
        "# P\n\n[!include:b](sub/parts.md)\n\n[!include:zz](sub/parts.md)\n\n"
        "[!include:q](gone.md)\n\n[!include:x](page.md)\n",
    )
    person.put("sub/parts.md", "<!-- #b -->\nB [@in In](x.md)\n[!include:b](parts.md)\n<!-- /b -->")
    assert person.gets("/open page.md") == (
        "Opened page.md\n---\n# P\n\n"
        "B [In][@in]\n"
        "⚠ Circular include detected: parts.md (already included in this chain)\n\n"
        "⚠ Include failed: Block #zz not found in sub/parts.md\n"
        "Supported formats:\n"
        "  <!-- #zz --> … <!-- /zz -->\n"
        "  ## Heading {#zz}\n"
        "  ## Heading whose slug is zz\n\n"
        "⚠ Include failed: gone.md - File not found: gone.md\n\n"
        "⚠ Circular include detected: page.md (already included in this chain)"
    )
    person.put("sub/x.md", "# X\n")
    assert person.gets("/open @in") == "Opened sub/x.md\n---\n# X"


def test_directives_write_paths_as_links_do(person: Person) -> None:
    person.put("my parts.md", "## P\n\n[@a A](a.md)\n")
    person.put("doc.md", "[!nav:m](my%20parts.md)\n[!include:p](my%20parts.md)\n")
    assert person.gets("/open doc.md").endswith("[A][@m.a]\n\n## P\n\n[A][@a]")
    assert person.gets("/open #p").endswith("\n## P\n\n[A][@a]")


def test_a_folder_may_be_named_with_a_hash(person: Person) -> None:
    person.put("C#/doc.md", "[!nav:m](nav.md)\n# D\n")
    person.put("C#/nav.md", "[@a A](part.md#p)\n")
    person.put("C#/part.md", "# Part\n\n## P\n\np\n")
    assert person.gets("/open C#/doc.md").startswith("Opened C#/doc.md\n")
    assert person.gets("/open @m.a") == "Opened C#/part.md#p\n---\n## P\n\np"
    assert person.gets("/open ~/C#/part.md#p") == "Opened C#/part.md#p\n---\n## P\n\np"


def test_an_include_stays_inside_what_may_be_read(person: Person) -> None:
    person.put("page.md", "[!include:root](/etc/passwd)\n")
    assert "⚠ Include failed: /etc/passwd - Path outside workspace" in person.gets("/open page.md")


@pytest.mark.parametrize("directory", ["doc.md.source", "doc.source"])
def test_a_document_of_several_files_is_put_together(person: Person, directory: str) -> None:
    source = "# D\n\n[!include:intro]()\n\n[!include:other](parts/o.md)\n\n[!include:new]()\n"
    person.put("doc.md", source)
    person.put(f"{directory}/intro.md", "\n\nIntro.\n\n")
    person.put("parts/o.md", "Other.\n")
    assert person.gets("/open doc.md") == "Opened doc.md\n---\n# D\n\nIntro.\n\nOther."
    assert "blocks:    intro, other, new" in person.gets("/info")
    assert person.gets("/source").endswith(f"\n---\n{source}")
    assert person.gets("/open doc.md#other") == "Opened doc.md#other\n---\nOther."
    assert person.read(f"{directory}/new.md") == b""


def test_an_include_without_a_path_says_what_it_lacks(person: Person) -> None:
    person.put("doc.md", "[!include:a]()\n")
    assert person.gets("/open doc.md").split("\n")[2:] == [
        "⚠ Include failed:  - there is no folder doc.md.source/ beside the document",
    ]


def test_source_files_stay_beside_their_document(person: Person) -> None:
    person.put("dir/doc.md", "[!include:a](../secret.md)\n")
    person.put("secret.md", "<!-- #a -->\nsecret\n<!-- /a -->")
    (person.home / "dir/doc.md.source").mkdir()
    refused = person.fails("/open dir/doc.md")
    assert refused.code == "FILE_NOT_ALLOWED"
    assert refused.message == "Include leaves the document's directory: ../secret.md"


def test_a_missing_menu_is_empty_and_an_unreadable_one_too(person: Person) -> None:
    person.put("page.md", "# P\n\n[!nav:a](gone.md)\n[!nav:b](/etc/passwd)\n")
    assert person.gets("/open page.md").startswith("Opened page.md\n---\n[nav] a, b — /nav <name>")
    assert person.gets("/nav b") == "Menu: b\n---\nMenu b is empty."


def test_a_menu_is_unfolded_once_per_session(person: Person) -> None:
    person.put("page.md", "# P\n\n[!nav:main](nav.md)\n")
    person.put("nav.md", "".join(f"[@e{n} E{n}](e{n}.md)\n" for n in range(25)))
    first = person.gets("/open page.md")
    assert first.startswith("Opened page.md\n---\n[nav] main — first view\n[E0][@main.e0]\n")
    assert "[E19][@main.e19]\n... 5 more — /nav main\n" in first
    folded = "[nav] main — /nav <name>\n"
    assert folded in person.gets("/refresh")
    assert "first view" in person.gets("/open page.md", "file:other")


def test_missing_variables_are_announced_with_the_setup(person: Person) -> None:
    person.put("app/page.md", "---\nrequires: [A_KEY, B_KEY]\n---\n# P\n")
    person.put("app/requirements.md", "# Setup\n")
    assert person.gets("/open app/page.md").startswith(
        "Opened app/page.md\n---\n"
        "[!] Missing required env: $A_KEY, $B_KEY\n"
        '    Set: /set $A_KEY="..." ; /set $B_KEY="..."\n'
        "    Setup: /open requirements.md\n\n# P"
    )
    assert person.gets("/open requirements.md").endswith("# Setup")
    person.gets("/set\n$A_KEY = 1\n$B_KEY = 2")
    assert person.gets("/back") == "Back to app/page.md\n---\n# P"


@proves("DEF-09", "DEF-10", "DEF-11", "DEF-12")
def test_links_keep_their_meaning(person: Person) -> None:
    person.put(
        "page.md",
        "[Docs 2](https://a.test) [Docs](https://b.test) [Docs](https://c.test)\n"
        "[@docs-3 Mine](./m.md) [Docs](https://d.test)\n"
        '![pic](https://e.test/p.png) [T](https://f.test "Title")\n'
        "`[x](https://g.test)`\n"
        "[@a One](./1.md) [@a Two](./2.md)\n",
    )
    assert person.gets("/open page.md") == (
        "Opened page.md\n---\n"
        "[Docs 2][@docs-2] [Docs][@docs] [Docs][@docs-4]\n"
        "[Mine][@docs-3] [Docs][@docs-5]\n"
        "![pic](https://e.test/p.png) [T][@t]\n"
        "`[x](https://g.test)`\n"
        "[One][@a] [Two][@a2]"
    )
    assert person.gets("/info @t") == "@t → https://f.test"
    assert person.gets("/info @a2") == "@a2 → ./2.md"
    assert "DUPLICATE_SHORTCUT" in person.gets("/info")
