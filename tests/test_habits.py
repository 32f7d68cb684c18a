"""What contributors rely on: the check of commit messages, and the choice of `make quick`."""

import importlib.util
from pathlib import Path

import pytest

from tests.support.quick import ROOT, SLOW, TESTS, answering_for, of_changes, of_room
from tests.support.skips import ALLOWED, refused

GOOD = "gate: refuse what nobody read\n\nA person must see all of it.\n"


def problem(message: str) -> str | None:
    spec = importlib.util.spec_from_file_location("check", ROOT / "scripts" / "commit_message.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    found: str | None = module.problem(message)
    return found


@pytest.mark.parametrize(
    "message", [GOOD, f"{GOOD}# a comment of git\n", "Merge branch 'x'\n", "fixup! gate: x\n"]
)
def test_a_message_with_room_effect_and_reason_passes(message: str) -> None:
    assert problem(message) is None


@pytest.mark.parametrize(
    ("message", "told"),
    [
        ("", "room: what changes"),
        ("Fix it\n\nBecause.\n", "room: what changes"),
        ("gate: fix it.\n\nBecause.\n", "without a period"),
        ("gate: fix it\n", "body"),
        ("gate: fix it\nBecause.\n", "must be empty"),
        (f"gate: {'x' * 100}\n\nBecause.\n", "90 is the most"),
    ],
)
def test_any_other_message_is_refused_with_the_reason(message: str, told: str) -> None:
    assert told in (problem(message) or "")


@pytest.mark.parametrize(
    ("changed", "test"),
    [
        ("src/stringd/runs/guard/globs.py", "tests/runs/guard/test_globs.py"),
        ("src/stringd/documents/scan.py", "tests/documents/test_properties.py"),
        ("tests/test_lock.py", "tests/test_lock.py"),
        ("tests/gate/support.py", "tests/gate/test_audit.py"),
        ("README.md", "tests/test_docs_links.py"),
    ],
)
def test_a_changed_file_has_tests_that_answer_for_it(changed: str, test: str) -> None:
    assert (ROOT / test).exists()
    assert Path(test) in set(answering_for(Path(changed)))


def test_every_module_has_tests_that_answer_for_it() -> None:
    modules = [path.relative_to(ROOT) for path in (ROOT / "src").rglob("*.py")]
    assert [str(path) for path in modules if not any(answering_for(path))] == []


def test_slow_tests_run_quickly_only_where_they_are_meant() -> None:
    assert [str(path) for path in SLOW if not (ROOT / path).exists()] == []
    store = TESTS / "runtime" / "topics" / "test_store.py"
    topics = Path("src/stringd/runtime/topics")
    assert store in of_changes([store])
    assert store in of_changes([topics / "store.py"])
    assert store not in of_changes([topics / "queue.py"])
    assert of_changes([topics / "queue.py"]) != []
    assert store not in of_room(TESTS / "runtime")
    assert of_room(store) == [store]


@pytest.mark.parametrize(
    ("reason", "accepted"), [(ALLOWED[0], True), ("tmux is not installed", False)]
)
def test_ci_accepts_only_skips_on_the_list(reason: str, accepted: bool) -> None:
    report = pytest.TestReport(
        "a::b", ("a", 1, "b"), {}, "skipped", ("a", 1, f"Skipped: {reason}"), "setup"
    )
    assert refused(report) == (None if accepted else reason)
