"""What rules and grants promise rests on lines, and a test fails when one is taken away."""

from pathlib import Path

import pytest

from tests.gate.mutants import Mutant, copy_with, run_against

FAILED = 1
JUDGE = "test_judge.py::test_every_combination_is_decided_as_the_table_says"
RULES = "test_rules.py::test_"

MUTANTS = [
    Mutant("root", "gate/judge.py", "    if not attempt.as_root:\n", "    if attempt:\n", JUDGE),
    Mutant("agent", "gate/judge.py", "if attempt.forward_agent:", "if False:", JUDGE),
    Mutant(
        "order",
        "gate/judge.py",
        "for effect in (Effect.DENY, Effect.ASK):",
        "for effect in (Effect.ASK, Effect.DENY):",
        JUDGE,
    ),
    Mutant(
        "grant",
        "gate/judge.py",
        "if granted == attempt.granted:",
        "if granted.pipeline == attempt.granted.pipeline:",
        "test_judge.py::test_a_grant_is_for_one_caller",
    ),
    Mutant(
        "limit",
        "gate/judge.py",
        "if uses.get(rule.name, 0) < rule.limit:",
        "if rule.limit:",
        RULES + "beyond_its_limit_a_rule_asks",
    ),
    Mutant(
        "file",
        "gate/rules.py",
        "if rule.identity is None or rule.identity != program.identity:",
        "if rule.identity is None:",
        RULES + "rules_pinned_to_a_file_do_not_match_its_successor",
    ),
    Mutant(
        "environment",
        "gate/rules.py",
        "for name in sorted(rule.env.keys() | command.env.keys()):",
        "for name in sorted(rule.env.keys()):",
        RULES + "the_same_environment_is_allowed_and_the_default_is_none",
    ),
    Mutant(
        "option",
        "gate/rules.py",
        'if word.startswith("-") else None',
        "if not word else None",
        RULES + "everything_else_is_asked_and_the_word_is_named",
    ),
    Mutant(
        "own file",
        "gate/rule_file.py",
        "if rule.root and not for_root:",
        "if not rule and not for_root:",
        RULES + "the_own_file_allows_root_nothing",
    ),
    Mutant(
        "uses",
        "gate/grants.py",
        "each.uses >= GRANT_USES",
        "each.uses > GRANT_USES",
        "test_grants.py::test_a_grant_ends_after_twenty_uses",
    ),
]


@pytest.mark.parametrize("mutant", MUTANTS, ids=[mutant.claim for mutant in MUTANTS])
def test_a_promise_fails_without_its_line(mutant: Mutant, tmp_path: Path) -> None:
    copy_with(mutant, tmp_path)
    code, output = run_against(tmp_path, mutant.test, patience=5.0)
    assert code == FAILED, output


def test_the_tests_pass_on_an_unchanged_copy(tmp_path: Path) -> None:
    copy_with(None, tmp_path)
    code, output = run_against(tmp_path, *{mutant.test for mutant in MUTANTS}, patience=30.0)
    assert code == 0, output
