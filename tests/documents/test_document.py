"""What a document holds: blocks, directives, shortcuts, references, actions, diagnostics."""

import pytest

from stringd.documents import Menu, MenuEntry, Shortcut, find_block, parse, parse_menu, slug


def shown(source: str, block: str) -> str | None:
    span = find_block(source, block)
    return None if span is None else source[span.start : span.end].strip()


def test_a_marker_block_is_what_stands_between_its_markers() -> None:
    assert shown("<!-- #a -->\n\ntext\n\n<!-- /a -->\n", "a") == "text"


def test_an_empty_block_is_a_block() -> None:
    assert shown("<!-- #a -->\n<!-- /a -->", "a") == ""


@pytest.mark.parametrize(
    "source",
    [
        "<!-- #a -->\nnever closed",
        "<!-- /a -->\n<!-- #a -->",
        "```\n<!-- #a -->\n<!-- /a -->\n```\n",
        "x <!-- #a --> y\n<!-- /a -->",
        "<!--  #a -->\n<!-- /a -->",
    ],
)
def test_markers_that_are_not_a_pair_of_lines_outside_code_make_no_block(source: str) -> None:
    assert find_block(source, "a") is None
    assert parse(source).block_ids == ()


def test_nested_blocks_are_both_listed_and_neither_is_reported() -> None:
    source = "<!-- #a -->\n1\n<!-- #b -->\n2\n<!-- /b -->\n<!-- /a -->\n"
    document = parse(source)
    assert document.block_ids == ("a", "b")
    assert document.diagnostics == ()
    assert shown(source, "b") == "2"


def test_a_heading_is_reached_by_its_explicit_id_and_by_its_slug() -> None:
    source = "# Top\n\n## Plan {#plan}\n\nText\n\n### Deeper\n\n## Next\n"
    assert shown(source, "plan") == "## Plan {#plan}\n\nText\n\n### Deeper"
    assert shown(source, "plan-plan") == shown(source, "plan")
    assert shown(source, "next") == "## Next"


def test_markers_win_over_headings_of_the_same_name() -> None:
    assert shown("# a\nhead\n<!-- #a -->\nmark\n<!-- /a -->\n", "a") == "mark"


def test_headings_inside_code_are_text() -> None:
    source = "# Top\n\n```sh\n# setup\n```\n\nafter\n"
    assert find_block(source, "setup") is None
    assert shown(source, "top") == source.strip()


def test_an_id_is_literal() -> None:
    assert find_block("# abc\n", "a.c") is None
    assert find_block("# abc\n", "") is None


@pytest.mark.parametrize(
    ("heading", "expected"),
    [
        ("MDN Web Docs", "mdn-web-docs"),
        ("C++ (2024)", "c-2024"),
        ("한국어 제목", "한국어-제목"),
        ("Čeština, prosím!", "čeština-prosím"),
        ("हिन्दी पाठ", "हिन्दी-पाठ"),
        ("Cafe\u0301", "café"),
        ("snake_case - dash", "snake_case---dash"),
    ],
)
def test_slugs_keep_letters_of_any_script(heading: str, expected: str) -> None:
    assert slug(heading) == expected
    assert find_block(f"## {heading}\n", expected) is not None


def test_a_heading_block_never_takes_one_marker_of_a_pair() -> None:
    source = "## A\ntext\n<!-- #b -->\n## B\n<!-- /b -->\n"
    assert shown(source, "a") == "## A\ntext"
    inside = "<!-- #x -->\n## In\nbody\n<!-- /x -->\ntail\n"
    assert shown(inside, "in") == "## In\nbody"


def test_directives_count_outside_fences_and_blocks() -> None:
    document = parse(
        "[!nav:main](./nav/main.md)\n  [!menu:side](side.md)\n[!include:part](./o.md#x)\n"
        "[!requirements](./r.md)\n[!requirements](./late.md)\n[!nav:page](./p.md)\n"
        "text [!nav:no](x)\n```\n[!nav:code](x)\n```\n<!-- #b -->\n[!nav:in](x)\n<!-- /b -->\n"
    )
    assert document.menus == {"main": "./nav/main.md", "side": "side.md"}
    assert document.requirements == "./r.md"
    assert [(each.id, each.file, each.block) for each in document.includes] == [
        ("part", "./o.md", "x")
    ]
    assert document.block_ids == ("b", "part")


def test_shortcuts_come_from_links_and_definition_lines() -> None:
    document = parse("[@docs The docs](https://d.test/v2)\n[@api]: ./api.md\n[@docs]: ./other.md\n")
    assert dict(document.shortcuts) == {
        "docs": Shortcut("docs", "The docs", "https://d.test/v2"),
        "api": Shortcut("api", "api", "./api.md"),
    }


def test_a_page_shortcut_has_a_long_form() -> None:
    document = parse("[@docs D](d.md)")
    assert (
        document.shortcut("docs") == document.shortcut("page.docs") == Shortcut("docs", "D", "d.md")
    )
    assert document.shortcut("page.nope") is None
    assert document.warnings() == parse("[D][@page.docs]\n[@docs]: d.md").warnings()


def test_a_duplicate_shortcut_gets_an_id_of_its_own_and_a_warning() -> None:
    document = parse("[@d One](a.md) [@d2 Two](b.md) [@d Three](c.md) [@d Same](a.md)")
    assert {key: each.target for key, each in document.shortcuts.items()} == {
        "d": "a.md",
        "d2": "b.md",
        "d3": "c.md",
    }
    assert document.warnings() == (
        "Line 1: DUPLICATE_SHORTCUT: @d is already defined — this one is @d3",
    )


def test_code_and_escapes_define_nothing() -> None:
    document = parse("`[@a A](x)` ``[@b ` B](x)`` \\[@c C](x)\n```\n[@d D](x)\n```\n")
    assert dict(document.shortcuts) == {}


def test_references_keep_the_first_definition_and_leave_footnotes_alone() -> None:
    document = parse('[a]: <https://one.test> "T"\n[a]: two\n[^1]: note\n[b]: text with words\n')
    assert document.references == {"a": "https://one.test"}


def test_a_use_resolves_on_the_page_then_in_menus_and_else_warns() -> None:
    menu = Menu("main", "file:///nav.md", (MenuEntry("main.docs", "Docs", "d.md"),))
    document = parse("[A][@docs] [B][@main.docs] [C][@nope] `[D][@code]`")
    assert document.warnings([menu]) == ("Unknown shortcut @nope — define with: [@nope C](URI)",)
    assert len(document.warnings()) == 3


def test_a_menu_file_is_its_shortcuts_in_order() -> None:
    menu = parse_menu(
        "main", "# Menu\n- [@b Second](../b.md#part)\n- [@a First](a.md)\n", "file:///m"
    )
    assert menu.entries == (
        MenuEntry("main.b", "Second", "../b.md#part"),
        MenuEntry("main.a", "First", "a.md"),
    )


def test_names_of_wrapped_labels_stand_on_one_line() -> None:
    assert parse_menu("m", "[@a Two\n  lines](a.md)", "").entries[0].label == "Two lines"
    assert parse("[Two\nlines][@x]").warnings() == (
        "Unknown shortcut @x — define with: [@x Two lines](URI)",
    )


def test_diagnostics_name_line_code_and_remedy() -> None:
    source = (
        "[!nav](x)\n<!-- #a -->\n<!-- /a -->\n<!-- #a -->\n<!-- /b -->\n<!-- /a -->\n<!-- /c -->\n"
        "<!-- #open -->\n```act.bad\nnonsense\n```\n"
    )
    assert [str(each) for each in parse(source).diagnostics] == [
        "Line 1: MISSING_IDENTIFIER: [!nav] requires an id — use [!nav:name](path)",
        "Line 4: DUPLICATE_BLOCK_ID: <!-- #a --> already declared in this document",
        "Line 5: MISMATCHED_BLOCK: expected <!-- /a -->, got <!-- /b -->",
        "Line 7: UNEXPECTED_BLOCK_CLOSE: <!-- /c --> has no matching open marker",
        "Line 8: UNCLOSED_BLOCK: <!-- #open --> has no closing <!-- /open -->",
        'Line 9: INVALID_ACTION_BLOCK: could not parse action definition for "bad"',
    ]


def test_fifty_thousand_nested_blocks_are_read_without_recursion() -> None:
    count = 50_000
    opens = "".join(f"<!-- #b{n} -->\n" for n in range(count))
    closes = "".join(f"<!-- /b{n} -->\n" for n in reversed(range(count)))
    document = parse(opens + closes)
    assert len(document.block_ids) == count
    assert document.diagnostics == ()


def test_a_byte_order_mark_hides_neither_frontmatter_nor_heading() -> None:
    assert parse("\ufeff---\ntitle: T\n---\n# H\n").title == "T"
    assert find_block("\ufeff# H\ntext", "h") is not None


def test_a_higher_format_version_is_noticed() -> None:
    assert parse('---\nsfmd: "0.1"\n---\n').unsupported_version is None
    assert parse('---\nsfmd: "0.2"\n---\n').unsupported_version == "0.2"
    assert parse("---\nsfmd: soon\n---\n").unsupported_version is None


@pytest.mark.parametrize("filler", [" ", "\t", " \t", ")", ") ", "(", "a "])
def test_a_directive_of_any_length_is_read_in_one_pass(filler: str) -> None:
    """With a pattern that backtracks, four kilobytes of this took 22 seconds."""
    line = "[!nav:a](" + filler * 300_000
    assert parse(line + "x\n").menus == {}
    assert len(parse(line + ")\n").menus) == 1
