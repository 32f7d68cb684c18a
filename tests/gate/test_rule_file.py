import os
from pathlib import Path

import pytest

from stringd.gate.rule_file import MAX_BYTES, parse_rules
from stringd.gate.rule_places import keep_accepted, read_accepted, read_rules
from stringd.gate.rules import (
    AnyWord,
    Effect,
    ExactWord,
    NameWord,
    PathUnder,
    WholeNumber,
    WordOf,
)
from tests.gate.rulebook import FILE, allow
from tests.requirements import proves

WHOLE = """\
# What may run unasked.
[[rule]]
effect = "allow"
argv = ["/usr/bin/journalctl", "-u", { one_of = ["a", "b"] }, { int = true }, { int = [1, 9] },
        { name = true }, { path_under = "/var/log/" }]
env = { LANG = "C" }
limit = 5
note = "for the logs"

  [[ rule ]]  # the second
effect = "deny"
argv = ["rm", { any = true }, { rest = true }]
"""


def problem(text: str, *, for_root: bool = False) -> tuple[int, str]:
    found = parse_rules(text, FILE, for_root=for_root)
    assert found.rules == ()
    return found.problems[0]


@proves("GATE-RULE-01")
def test_a_file_is_read_into_rules_with_their_lines() -> None:
    found = parse_rules(WHOLE, FILE, for_root=False)
    assert found.problems == ()
    first, second = found.rules
    assert (first.effect, first.program, first.line) == (Effect.ALLOW, "/usr/bin/journalctl", 2)
    assert first.words == (
        ExactWord("-u"),
        WordOf(("a", "b")),
        WholeNumber(),
        WholeNumber(1, 9),
        NameWord(),
        PathUnder("/var/log"),
    )
    assert (dict(first.env), first.limit, first.root) == ({"LANG": "C"}, 5, False)
    assert (second.effect, second.line, second.has_rest) == (Effect.DENY, 10, True)
    assert second.words == (AnyWord(),)


@pytest.mark.parametrize(
    ("text", "line", "why"),
    [
        ("[[rule]]\neffect = 'maybe'\nargv=['/bin/x']", 1, "effect must be"),
        ("\n[[rule]]\nargv=['/bin/x']", 2, "effect must be"),
        (allow('["git", "status"]'), 1, "by its full path"),
        (allow('["/usr/bin/../bin/x"]'), 1, "by its full path"),
        (allow("[]"), 1, "argv must be a list"),
        (allow('"/usr/bin/x"'), 1, "argv must be a list"),
        (allow("[{ name = true }]"), 1, "argv must be a list"),
        (allow('["/usr/bin/x", { rest = true }]'), 1, "an allow says every word"),
        (allow('["/usr/bin/x", { any = true }]'), 1, "an allow says every word"),
        (allow('["/usr/bin/x", { rest = true }, "y"]'), 1, "is not a slot"),
        (allow('["/usr/bin/x", { glob = "*" }]'), 1, "is not a slot"),
        (allow('["/usr/bin/x", { name = true, int = true }]'), 1, "is not a slot"),
        (allow('["/usr/bin/x", { name = false }]'), 1, "name is true"),
        (allow('["/usr/bin/x", {}]'), 1, "is not a word"),
        (allow('["/usr/bin/x", 3]'), 1, "is not a word"),
        (allow('["/usr/bin/x", { one_of = ["-f"] }]'), 1, "never matches an option"),
        (allow('["/usr/bin/x", { one_of = [] }]'), 1, "one_of is a list"),
        (allow('["/usr/bin/x", { int = [5, 1] }]'), 1, "int is true or a list"),
        (allow('["/usr/bin/x", { int = [-5, 1] }]'), 1, "int is true or a list"),
        (allow('["/usr/bin/x", { int = [true, 1] }]'), 1, "int is true or a list"),
        (allow('["/usr/bin/x", { path_under = "/" }]'), 1, "path_under is"),
        (allow('["/usr/bin/x", { path_under = "/a/../b" }]'), 1, "path_under is"),
        (allow('["/usr/bin/git", { name = true }]'), 1, "only exact words"),
        (allow('["/usr/bin/x"]', "root = true"), 1, "only root can change"),
        (allow('["/usr/bin/x"]', "root = 1"), 1, "root is true or false"),
        (allow('["/usr/bin/x"]', "limit = 0"), 1, "limit is a number"),
        (allow('["/usr/bin/x"]', "limit = true"), 1, "limit is a number"),
        (allow('["/usr/bin/x"]', "env = { A = 1 }"), 1, "env is a table"),
        (allow('["/usr/bin/x"]', "unless = 1"), 1, "'unless' is not known"),
        (allow('["/usr/bin/x", "a\\u202Eb"]'), 1, "direction-changing"),
        ("[[rule]]\neffect='deny'\nargv=['rm']\nlimit=3", 1, "are for rules that allow"),
        ("default = 'allow'", 1, "'default' is not known here"),
        ("[rule]\neffect='deny'\nargv=['rm']", 1, "must begin with a line [[rule]]"),
        ("rule = [{effect='deny', argv=['rm']}]", 1, "must begin with a line [[rule]]"),
        ('[["rule"]]\neffect="deny"\nargv=["rm"]', 1, "must begin with a line [[rule]]"),
        ("[[rule]]\nnote='''\n[[rule]]\n'''\neffect='deny'\nargv=['rm']", 2, "several lines"),
        ("[[rule]]\neffect = \n", 2, "Invalid value"),
    ],
)
def test_a_bad_file_is_refused_as_a_whole_with_its_line(text: str, line: int, why: str) -> None:
    good = "[[rule]]\neffect='deny'\nargv=['mkfs']\n"
    assert parse_rules(good, FILE, for_root=False).rules
    found = problem(text)
    assert found[0] == line
    assert why in found[1]


def test_every_bad_rule_is_named() -> None:
    found = parse_rules(
        allow('["x"]') + allow('["/usr/bin/y"]') + allow('["z"]'), FILE, for_root=False
    )
    assert [each.line for each in found.problems] == [1, 7]


def test_a_file_that_is_not_there_is_none_and_one_that_cannot_be_read_is_a_problem(
    tmp_path: Path,
) -> None:
    assert read_rules(tmp_path / "none", for_root=False) is None
    large, foreign, folder = tmp_path / "large", tmp_path / "foreign", tmp_path / "folder"
    large.write_bytes(b"#" * (MAX_BYTES + 1))
    foreign.write_bytes(b"\xff")
    folder.mkdir()
    for path in (large, foreign, folder):
        found = read_rules(path, for_root=False)
        assert found is not None
        assert found.problems


@proves("GATE-RULE-02")
def test_a_rule_keeps_the_file_it_is_about_and_wants_its_real_path(tmp_path: Path) -> None:
    path = tmp_path / "rules.toml"
    real = os.path.realpath("/usr/bin/env")
    path.write_text(allow(f'["{real}"]') + allow('["/usr/bin/not-installed"]'))
    found = read_rules(path, for_root=False)
    assert found is not None
    assert found.problems == ()
    assert found.rules[0].identity is not None
    assert found.rules[0].identity.inode == Path(real).stat().st_ino
    assert found.rules[1].identity is None

    link = tmp_path / "link"
    link.symlink_to(real)
    path.write_text(allow(f'["{link}"]'))
    linked = read_rules(path, for_root=False)
    assert linked is not None
    assert f"leads to {real}: write that" in linked.problems[0].why


@proves("GATE-RULE-02")
def test_a_program_others_can_change_cannot_be_allowed(tmp_path: Path) -> None:
    program, path = tmp_path / "tool", tmp_path / "rules.toml"
    program.write_text("#!/bin/sh\n")
    program.chmod(0o777)
    path.write_text(allow(f'["{os.path.realpath(program)}"]'))
    found = read_rules(path, for_root=False)
    assert found is not None
    assert "it cannot be allowed" in found.problems[0].why


@proves("GATE-RULE-04")
def test_roots_file_counts_only_where_nobody_else_can_change_it(tmp_path: Path) -> None:
    path = tmp_path / "rules.toml"
    path.write_text(allow('["/usr/bin/head"]', "root = true"))
    path.chmod(0o666)
    found = read_rules(path, for_root=True)
    assert found is not None
    assert found.rules == ()
    assert "it does not count" in found.problem_lines()[0]


def test_what_was_accepted_is_kept_beside_and_only_for_us(tmp_path: Path) -> None:
    path = tmp_path / "rules.toml"
    assert read_accepted(path) is None
    keep_accepted(path, "text\n")
    assert read_accepted(path) == "text\n"
    assert (tmp_path / "rules.toml.accepted").stat().st_mode & 0o777 == 0o600
