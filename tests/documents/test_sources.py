"""Documents kept in several files."""

from stringd.documents import inline_sources, parse


def test_include_lines_become_blocks_that_hold_their_file() -> None:
    files = {"a": "\nfirst\nfile\n\n", "b": ""}
    source = "top\r\n[!include:a]()\r\n```\r\n[!include:c]()\r\n```\r\n[!include:b](x/b.md)"
    assert inline_sources(parse(source), lambda include: files[include.id]) == (
        "top\r\n<!-- #a -->\r\nfirst\r\nfile\r\n<!-- /a -->\r\n"
        "```\r\n[!include:c]()\r\n```\r\n<!-- #b -->\r\n<!-- /b -->"
    )


def test_a_document_without_includes_stays_as_it_is() -> None:
    assert inline_sources(parse("x\n"), lambda _: "never") == "x\n"
