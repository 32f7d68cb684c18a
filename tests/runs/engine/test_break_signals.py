"""When an observer's verdict ends a cycle."""

import pytest

from stringd.runs.engine.flows import breaks
from stringd.runs.strategy.definition import MatchMode
from tests.requirements import proves


@proves("RUN-24")
@pytest.mark.parametrize(
    ("mode", "verdict", "expected"),
    [
        ("substring", "we are NOT DONE yet", True),
        ("substring", "go on", False),
        ("first-line", "\n  Done  \nmore", True),
        ("first-line", "done, almost", False),
        ("first-line", "done now", True),
        ("first-line", "well\ndone", False),
        ("any-line", "well\ndone", True),
        ("any-line", "well\nabandoned", False),
        ("any-line", "undone", False),
        ("exact", "  DONE\n", True),
        ("exact", "done.", False),
    ],
)
def test_each_mode_matches_what_it_says(mode: MatchMode, verdict: str, expected: bool) -> None:
    assert breaks(verdict, ["stop", "done"], mode) is expected


@pytest.mark.parametrize(
    ("mode", "verdict", "expected"),
    [
        ("substring", "goon", False),
        ("substring", "go on", True),
        ("first-line", "go on", False),
        ("any-line", "go on", False),
        ("exact", " ", False),
    ],
)
def test_a_blank_signal_is_found_only_where_it_stands(
    mode: MatchMode, verdict: str, expected: bool
) -> None:
    assert breaks(verdict, [" "], mode) is expected


def test_spaces_around_a_signal_count_inside_a_text_and_not_at_a_line() -> None:
    assert breaks("well done it is", [" done "], "substring")
    assert not breaks("abandoned", [" done "], "substring")
    assert breaks("done", [" done "], "first-line")
