"""What authors are told and helped with."""

from stringd.documents import parse
from stringd.documents.authoring import author_diagnostics, source_names, with_includes


def test_names_that_stand_for_two_things_are_told_with_their_lines() -> None:
    source = (
        "[!nav:m](a.md)\n[!menu:m](b.md)\n<!-- #x -->\n<!-- /x -->\n[!include:x](c.md)\n"
        "[!include:y](d.md)\n[!include:y](e.md)\n[!include](f.md)\n[!include:m](g.md)\n"
    )
    assert [str(each) for each in author_diagnostics(parse(source))] == [
        "Line 2: DUPLICATE_MENU_NAME: [!menu:m] already declared in this document",
        "Line 5: BLOCK_ID_COLLISION: [!include:x] has the id of a block of this document",
        "Line 7: DUPLICATE_INCLUDE_ID: [!include:y] already declared in this document",
        "Line 8: MISSING_IDENTIFIER: [!include] requires an id — use [!include:name](path)",
    ]


def test_actions_that_are_named_but_not_there_are_told() -> None:
    action = "```act.list\nGET https://a.test/\n```\n"
    source = f"---\ndefault: lst\n---\n{action}```act.lits.response\nx\n```\n"
    assert [str(each) for each in author_diagnostics(parse(source))] == [
        "Line 1: UNKNOWN_ACTION: default: lst is not an action of this document",
        "Line 7: UNKNOWN_ACTION: act.lits.response belongs to no action of this document",
    ]
    mended = source.replace("lst", "list").replace("lits", "list")
    assert author_diagnostics(parse(mended)) == ()


def test_source_files_are_named_by_include_path_or_block() -> None:
    source = "[!include:a]()\n[!include:b](./d.md.source/c.md#x)\n<!-- #e -->\n<!-- /e -->\n"
    assert source_names(parse(source)) == {"a", "c", "e"}


def test_missing_includes_are_added_on_lines_of_their_own() -> None:
    assert with_includes("# A", ["x", "y"]) == "# A\n[!include:x]()\n[!include:y]()\n"
    assert with_includes("# A\r\n", ["x"]) == "# A\r\n[!include:x]()\r\n"
    assert with_includes("", []) == ""
