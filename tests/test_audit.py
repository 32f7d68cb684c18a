"""What `make audit` says of a report."""

from scripts.audit import verdict

GOOD = {"name": "good", "version": "1", "vulns": []}
BAD = {"name": "bad", "version": "2", "vulns": [{"id": "PYSEC-1", "fix_versions": ["3"]}]}
UNKNOWN = {"name": "unknown", "skip_reason": "not found"}


def test_a_known_vulnerability_is_a_failure_that_says_what_helps() -> None:
    code, said = verdict([GOOD, BAD])
    assert code == 1
    assert "bad 2: PYSEC-1 (fixed in 3)" in said


def test_nothing_known_is_a_success_that_says_how_much_was_looked_at() -> None:
    assert verdict([GOOD, UNKNOWN]) == (
        0,
        "no known vulnerability in 1 packages; 1 could not be looked up",
    )


def test_where_nothing_can_be_looked_up_it_says_so_and_does_not_fail() -> None:
    for report in (None, [], [UNKNOWN]):
        code, said = verdict(report)
        assert code == 0
        assert said.startswith("skipped")
