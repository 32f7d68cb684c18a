"""Diffs in the layout replies use."""

from stringd.documents import diff
from stringd.documents.matching import common_lines


def test_a_changed_line() -> None:
    assert diff("red\ngreen\nblue\n", "red\nGREEN\nblue\n").text == (
        "1 1 | red\n2   - green\n  2 + GREEN\n3 3 | blue"
    )


def test_equal_texts_and_final_newlines_are_no_changes() -> None:
    assert diff("a\n", "a").text == "(no changes)"
    assert diff("", "").text == "(no changes)"
    assert diff("a", "a").summary == "No changes"


def test_a_missing_final_newline_is_no_change_in_any_newline_style() -> None:
    assert diff("a\r\nb\r\n", "a\r\nb").text == "(no changes)"
    assert diff("b\r\n", "b").text == "(no changes)"
    assert diff("b", "b\r\nc").summary == "Added 1 line"
    assert diff("a\r\nb\r\n", "x\r\nb").summary == "Added 1 line, removed 1 line"


def test_a_new_text_has_one_number_column() -> None:
    text = diff("", "\n".join("abcdefghij") + "\n").text
    assert text.split("\n")[::9] == [" 1 + a", "10 + j"]


def test_an_emptied_text() -> None:
    assert diff("a\nb\n", "").text == "1   - a\n2   - b"


def test_distant_changes_are_parted_by_a_gap() -> None:
    old = "\n".join(str(number) for number in range(1, 13))
    new = old.replace("1\n", "one\n", 1).replace("\n12", "\ntwelve")
    assert diff(old, new, context=1).text == (
        " 1    - 1\n    1 + one\n 2  2 | 2\n       ...\n11 11 | 11\n12    - 12\n   12 + twelve"
    )


def test_neighbouring_contexts_join() -> None:
    assert "..." not in diff("a\nb\nc\nd\ne", "A\nb\nc\nd\nE", context=2).text


def test_no_context_shows_only_changes() -> None:
    assert diff("a\nb\nc", "a\nB\nc", context=0).text == "2   - b\n  2 + B"


def test_a_long_diff_is_cut_and_says_how_much_is_missing() -> None:
    new = "".join(f"{number}\n" for number in range(60))
    lines = diff("", new).text.split("\n")
    assert len(lines) == 51
    assert lines[-1] == "... (10 more lines changed, truncated at 50 lines)"
    padded = diff("a\nb\nc\nd\ne", "a\nb\nC\nd\ne", max_lines=3).text
    assert padded.endswith("... (truncated at 3 lines)")


def test_the_transport_form_and_its_summary() -> None:
    found = diff("## D\n(none yet)\n<!-- /d -->\n", "## D\n1. A\n2. B\n<!-- /d -->\n")
    assert found.summary == "Added 2 lines, removed 1 line"
    assert found.chanflow == ("1  │ ## D\n2 -│ (none yet)\n2 +│ 1. A\n3 +│ 2. B\n4  │ <!-- /d -->")


def test_texts_too_different_for_the_shortest_diff_still_get_a_true_one() -> None:
    old = [str(number % 97) for number in range(3000)]
    new = [str(number * 7 % 89) for number in range(3000)] + ["only"] + old[:50]
    pairs = list(common_lines(old, new))
    assert all(old[row] == new[column] for row, column in pairs)
    assert pairs == sorted(set(pairs))


def test_shuffled_lines_keep_their_longest_common_run_of_anchors() -> None:
    old = [f"line {number}" for number in range(20_000)]
    new = [old[number * 7919 % len(old)] for number in range(len(old))]
    pairs = list(common_lines(old, new))
    assert pairs
    assert all(old[row] == new[column] for row, column in pairs)
