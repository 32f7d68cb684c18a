"""What must hold for every text, found by generating thousands of them."""

import re

from hypothesis import example, given
from hypothesis import strategies as st
from markdown_it import MarkdownIt

from stringd.documents import (
    BlockBrokenError,
    Document,
    IncludeFailure,
    diff,
    lines_text,
    nav_scaffold,
    numbered,
    parse,
    parse_flags,
    parse_menu,
    render,
    replace_block,
    replace_lines,
    replace_text,
)
from stringd.documents.diffs import Row
from stringd.documents.links import _scan, links
from tests.documents.strategies import LINES, documents
from tests.support.examples import examples

thorough = examples(5000)
ample = examples(1000)


def lines(text: str) -> str:
    """The text with every line ended alike."""
    return re.sub("\r+\n", "\n", text)


@thorough
@given(documents())
def test_no_text_breaks_the_parser_or_the_renderer(source: str) -> None:
    document = parse(source, "file:///d.md")
    assert document.source == source
    rendered = render(document, include=lambda *_: IncludeFailure("no files here"))
    assert rendered.text == rendered.text.strip()
    for block in document.block_ids:
        render(document, block=block)
    assert all(warning for warning in document.warnings())
    assert document.title is None or isinstance(document.title, str)
    assert isinstance(document.requires, tuple)
    nav_scaffold(document)
    parse_menu("m", source, "file:///m.md")
    numbered(source)
    parse_flags(source)


@ample
@given(documents())
def test_every_shortcut_a_rendering_shows_resolves_to_one_target(source: str) -> None:
    document = parse(source)
    rendered = render(document)
    assert not set(rendered.auto_shortcuts) & set(document.shortcuts)


@ample
@given(documents(), st.text(max_size=40) | st.sampled_from(LINES))
def test_a_block_edit_touches_only_its_block(source: str, text: str) -> None:
    for ident in Document(source).block_ids:
        span = Document(source).find_block(ident)
        if span is None:
            continue
        try:
            edited = replace_block(source, ident, text)
        except BlockBrokenError:
            continue
        assert edited.startswith(source[: span.body_start])
        assert edited.endswith(source[span.end :])
        after = Document(edited).find_block(ident)
        assert after is not None
        if text.strip():
            assert lines(text).strip("\n") in lines(edited[after.start : after.end])


@ample
@given(documents())
@example("  <!-- #b -->\n   \r\r\n   \n<!-- /b -->\n")
def test_writing_a_block_back_as_it_was_changes_nothing_but_blank_lines(source: str) -> None:
    for ident, span in Document(source).blocks.items():
        inner = source[span.start : span.end].strip("\r\n")
        if inner:
            edited = replace_block(source, ident, inner)
            assert lines(edited) == lines(source)
            assert replace_block(edited, ident, inner) == edited


def carried_out(rows: tuple[Row | None, ...], old: str) -> list[str]:
    """Apply a complete diff to its old text."""
    lines = old.removesuffix("\n").split("\n") if old else []
    result: list[str] = []
    position = 0
    for row in rows:
        if row is None:
            continue
        if row.new is None:
            assert row.old is not None
            result += lines[position : row.old - 1]
            position = row.old
        elif row.old is None:
            gap = row.new - 1 - len(result)
            result += lines[position : position + gap]
            position += gap
            result.append(row.text)
    return result + lines[position:]


texts = st.lists(st.sampled_from(["a", "b", "c", "d", ""]), max_size=30).map("\n".join)


@ample
@given(texts, texts, st.integers(0, 4))
def test_a_diff_applied_to_the_old_text_gives_the_new_one(old: str, new: str, context: int) -> None:
    found = diff(old, new, context, max_lines=10_000)
    expected = new.removesuffix("\n").split("\n") if new else []
    assert carried_out(found.rows, old) == expected
    before = len(old.removesuffix("\n").split("\n")) if old else 0
    assert before + found.added - found.removed == len(expected)


def shortest_script(old: list[str], new: list[str]) -> int:
    row = list(range(len(new) + 1))
    for a in old:
        previous, row[0] = row[0], row[0] + 1
        for at, b in enumerate(new, 1):
            step = previous if a == b else 1 + min(row[at], row[at - 1])
            previous, row[at] = row[at], step
    return row[-1]


@ample
@given(texts, texts)
def test_a_diff_is_as_short_as_a_diff_can_be(old: str, new: str) -> None:
    before = old.removesuffix("\n").split("\n") if old else []
    after = new.removesuffix("\n").split("\n") if new else []
    found = diff(old, new)
    assert found.added + found.removed == shortest_script(before, after)


@ample
@given(documents(), st.data())
def test_replacing_lines_by_themselves_changes_nothing(source: str, data: st.DataObject) -> None:
    count = source.count("\n") + 1
    first = data.draw(st.integers(1, count))
    last = data.draw(st.integers(first, count))
    same = lines_text(source, first, last)
    if same and "\r" not in source:
        assert replace_lines(source, first, last, same + "\n") == source


@ample
@given(documents(), st.text(min_size=1, max_size=3), st.text(max_size=10))
def test_replaced_text_is_literal(source: str, old: str, new: str) -> None:
    if "\r" in source + old + new or source.count(old) == 0:
        return
    assert replace_text(source, old, new, every=True).source == source.replace(old, new)


@ample
@given(st.text(alphabet="[]()!a@ \\\"'<>:/.x", max_size=40))
def test_simple_lines_read_like_any_other_line(line: str) -> None:
    assert [link for link in links(line, 7) if not link.image] == [
        link for link in _scan(line, 7) if not link.image
    ]


commonmark = MarkdownIt("commonmark")
plain_lines = st.lists(
    st.sampled_from(
        [
            "text",
            "",
            "# One",
            "## Two words",
            "####### no",
            "#no",
            "```",
            "````",
            "~~~",
            "```py",
            "# x #",
        ]
    ),
    max_size=20,
).map("\n".join)


@ample
@given(plain_lines)
def test_fences_and_headings_are_where_commonmark_sees_them(source: str) -> None:
    tokens = commonmark.parse(source)
    document = parse(source)
    fences = [token.map[0] for token in tokens if token.type == "fence" and token.map]
    assert [source.count("\n", 0, fence.start) for fence in document.fences.all] == fences
    headings = [
        (token.map[0], int(token.tag[1:]))
        for token in tokens
        if token.type == "heading_open" and token.map and token.markup.startswith("#")
    ]
    assert [
        (source.count("\n", 0, each.start), each.level) for each in document.headings
    ] == headings
