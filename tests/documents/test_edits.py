"""Edits change what they name and nothing else."""

import pytest

from stringd.documents import (
    AmbiguousTextError,
    BlockBrokenError,
    BlockNotFoundError,
    LineRangeError,
    LineRangeOutOfBoundsError,
    ReplacementError,
    Target,
    TextNotFoundError,
    append_text,
    block_text,
    line_count,
    lines_text,
    numbered,
    parse_target,
    preview,
    replace_block,
    replace_lines,
    replace_text,
    split_replacement,
)

MARKED = "top\n<!-- #a -->\n\nold\n\n<!-- /a -->\nend"


def test_a_marker_block_keeps_its_markers_and_blank_lines() -> None:
    assert replace_block(MARKED, "a", "new") == "top\n<!-- #a -->\n\nnew\n\n<!-- /a -->\nend"
    assert replace_block(MARKED, "a", "new\n") == "top\n<!-- #a -->\n\nnew\n\n<!-- /a -->\nend"


def test_an_empty_block_can_be_filled() -> None:
    assert replace_block("<!-- #a -->\n<!-- /a -->", "a", "new") == "<!-- #a -->\nnew\n<!-- /a -->"


def test_markers_in_code_are_passed_over() -> None:
    source = "```\n<!-- #a -->\n<!-- /a -->\n```\n<!-- #a -->\nold\n<!-- /a -->\n"
    assert replace_block(source, "a", "new").endswith("```\n<!-- #a -->\nnew\n<!-- /a -->\n")


def test_a_heading_stays_and_what_is_below_it_goes() -> None:
    source = "# T\n\n## One\n\nold\n\n### sub\n\n## Two\nkeep\n"
    expected = "# T\n\n## One\n\nnew\n\n## Two\nkeep\n"
    assert replace_block(source, "one", "new") == expected
    assert replace_block(source, "one", "## One\nnew") == expected


def test_a_heading_right_below_the_frontmatter_is_one_heading() -> None:
    source = "---\ntitle: x\n---\n# One\nold\n# Two\nkeep\n"
    assert block_text(source, "one") == "# One\nold"
    assert replace_block(source, "one", "new") == source.replace("old", "new")


def test_a_heading_on_the_last_line_gets_a_line_below_it() -> None:
    assert replace_block("# T", "t", "new") == "# T\nnew"
    assert replace_block("# T\n# U", "t", "new") == "# T\nnew\n# U"


def test_crlf_and_byte_order_mark_survive() -> None:
    source = "\ufeff# T\r\n<!-- #a -->\r\nold\r\n<!-- /a -->\r\n"
    assert replace_block(source, "a", "one\ntwo") == source.replace("old", "one\r\ntwo")
    assert replace_lines(source, 3, 3, "x\ny\n") == source.replace("old", "x\r\ny")
    assert append_text(source, "end\n") == source + "end\r\n"


@pytest.mark.parametrize("text", ["<!-- /a -->", "```\nunclosed", "<!-- #a -->\nx\n<!-- /a -->"])
def test_text_that_would_break_the_block_is_refused(text: str) -> None:
    with pytest.raises(BlockBrokenError):
        replace_block(MARKED, "a", text)


def test_an_unclosed_fence_may_not_swallow_the_next_heading() -> None:
    with pytest.raises(BlockBrokenError):
        replace_block("# A\nold\n# B\n", "a", "```\nopen")


def test_a_missing_block_names_the_three_ways_to_have_one() -> None:
    with pytest.raises(BlockNotFoundError) as refused:
        replace_block("text", "b", "x")
    lines = refused.value.message("p.md").split("\n")
    assert lines[:2] == [
        "Block #b not found in p.md.",
        "Supported formats (in priority order):",
    ]
    assert lines[5:] == ["This document has no blocks."]
    with pytest.raises(BlockNotFoundError):
        block_text("text", "b")


def test_block_text_includes_the_heading() -> None:
    assert block_text("# A\n\ntext\n\n", "a") == "# A\n\ntext"


@pytest.mark.parametrize(
    ("first", "last", "text", "expected"),
    [
        (2, 2, "B", "a\nB\nc\n"),
        (2, 2, "B\n", "a\nB\nc\n"),
        (1, 2, "x", "x\nc\n"),
        (2, 3, "x\ny\nz", "a\nx\ny\nz\n"),
        (4, 4, "d", "a\nb\nc\nd"),
        (2, 2, "", "a\nc\n"),
        (2, 2, "\n", "a\n\nc\n"),
    ],
)
def test_lines_are_replaced_and_may_grow_or_shrink(
    first: int, last: int, text: str, expected: str
) -> None:
    assert replace_lines("a\nb\nc\n", first, last, text) == expected


def test_line_ranges_are_checked() -> None:
    with pytest.raises(LineRangeError, match="Invalid line range: L3-L2"):
        replace_lines("a\nb\nc", 3, 2, "x")
    with pytest.raises(LineRangeError):
        replace_lines("a", 0, 0, "x")
    with pytest.raises(LineRangeOutOfBoundsError) as refused:
        replace_lines("a\nb\n", 3, 9, "x")
    assert refused.value.message("p.md") == (
        "Line range out of bounds: p.md:L3-L9 (file has 3 lines)\n"
        "Recovery: run /edit p.md for current line numbers."
    )
    with pytest.raises(LineRangeOutOfBoundsError) as single:
        lines_text("a", 2, 2)
    assert single.value.message("p").startswith("Line range out of bounds: p:L2 (file has 1 lines)")


def test_exact_text_is_replaced_literally() -> None:
    assert replace_text("a $1 b", "$1", "$& \\1").source == "a $& \\1 b"
    assert replace_text("x x", "x", "y", every=True) == ("y y", 2)
    assert replace_text("a\r\nb\r\n", "a\nb", "c\nd").source == "c\r\nd\r\n"


def test_text_that_is_missing_or_ambiguous_is_refused() -> None:
    with pytest.raises(TextNotFoundError) as missing:
        replace_text("a", "b", "c")
    assert missing.value.message("p") == "Old text not found in p."
    with pytest.raises(AmbiguousTextError) as twice:
        replace_text("one\nx\ntwo x", "x", "y")
    assert twice.value.message("p").split("\n") == [
        "Old text matched 2 times in p; refusing ambiguous replace.",
        "Give more surrounding text so that it matches once, or use --all.",
        "Matches:",
        "- ...one\\nx\\ntwo x...",
        "- ...one\\nx\\ntwo x...",
    ]


def test_a_replacement_body_is_parted_by_its_first_rule() -> None:
    assert split_replacement("old\n---\nnew\n---\nmore\n") == ("old", "new\n---\nmore")
    assert split_replacement("old\n ---\r\n") == ("old", "")
    with pytest.raises(ReplacementError, match="Missing separator"):
        split_replacement("old")
    with pytest.raises(ReplacementError, match=r"Old text cannot be empty\."):
        split_replacement("---\nnew")


@pytest.mark.parametrize(
    ("written", "expected"),
    [
        ("p.md", Target("p.md")),
        ("p.md#b", Target("p.md", "b")),
        ("p.md:L5", Target("p.md", None, 5, 5)),
        ("p.md:L5-L10", Target("p.md", None, 5, 10)),
        ("p.md:L5-10", Target("p.md", None, 5, 10)),
        (":L5", Target("", None, 5, 5)),
        ("#b", Target("", "b")),
        ("a:L1/b:L2", Target("a:L1/b", None, 2, 2)),
        ("p:L", Target("p:L")),
        ("C#/p.md", Target("C#/p.md")),
        ("C#/p.md#b", Target("C#/p.md", "b")),
        ("C#/p.md:L5", Target("C#/p.md", None, 5, 5)),
        ("https://x.test/p#/b", Target("https://x.test/p", "/b")),
        ("@p#a/b", Target("@p", "a/b")),
        ("my p.md#b and/or", Target("my p.md", "b and/or")),
        ("#a/b", Target("", "a/b")),
    ],
)
def test_targets(written: str, expected: Target) -> None:
    assert parse_target(written) == expected


def test_appending_starts_on_a_line_of_its_own() -> None:
    assert append_text("", "a") == "a"
    assert append_text("a", "b") == "a\nb"
    assert append_text("a\n", "b") == "a\nb"


def test_a_lone_carriage_return_is_no_newline_style() -> None:
    assert append_text("50%\r100%", "a\nb\n") == "50%\r100%\na\nb\n"


def test_numbered_views_align_their_numbers() -> None:
    assert numbered("a\n") == "1 | a\n2 | \n\n(2 lines)"
    ten = numbered("\n" * 9)
    assert ten.startswith(" 1 | \n")
    assert ten.endswith("10 | \n\n(10 lines)")
    assert numbered("x\r\ny") == "1 | x\n2 | y\n\n(2 lines)"
    assert line_count("") == 1


def test_previews_say_when_they_are_cut() -> None:
    assert preview("x" * 200) == "x" * 200
    assert preview("x" * 201) == "x" * 200 + "..."


@pytest.mark.parametrize("newline", ["\n", "\r\n"])
@pytest.mark.parametrize("sent", ["\n", "\r\n"])
def test_a_replacement_may_be_sent_with_any_line_ends(sent: str, newline: str) -> None:
    source = newline.join(["top", "one", "two", "end", ""])
    body = sent.join(["one", "two", "---", "1", "2", ""])
    old, new = split_replacement(body)
    assert replace_text(source, old, new).source == newline.join(["top", "1", "2", "end", ""])


@pytest.mark.parametrize("sent", ["\n", "\r\n"])
def test_text_is_found_where_lines_end_in_different_ways(sent: str) -> None:
    source = "a\r\nb\nc\r\na\nb\r\nc\n"
    old = sent.join("ab")
    assert replace_text(source, old, "x", every=True).source == "x\nc\r\nx\r\nc\n"
    assert replace_text(source, sent.join("ca"), "x").source == "a\r\nb\nx\nb\r\nc\n"
    with pytest.raises(AmbiguousTextError):
        replace_text(source, old, "x")
