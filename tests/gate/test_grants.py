"""Grants: the book of them, and two presses of `g` on a real terminal."""

import json
import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from stringd.gate.callers import CallerId
from stringd.gate.grants import GRANT_SECONDS, GRANT_USES, MAX_GRANTS, GrantBook
from tests.gate.rulebook import CALLER, attempt
from tests.gate.support import QUESTION, RunningGate, answer, exchange, request, running_gate
from tests.requirements import proves

PERSON = (sys.executable, str(Path(__file__).with_name("as_person.py")))
GRANTED = attempt(["a"]).granted


class Clock:
    now = 100.0

    def __call__(self) -> float:
        return self.now


@proves("GATE-GRANT-03")
def test_a_grant_ends_after_ten_minutes_by_the_monotonic_clock() -> None:
    clock = Clock()
    book = GrantBook(clock)
    book.give(GRANTED)
    clock.now += GRANT_SECONDS - 0.1
    assert book.live() == {1: GRANTED}
    clock.now += 0.1
    assert book.live() == {}
    assert book.use(1) is None


@proves("GATE-GRANT-03")
def test_a_grant_ends_after_twenty_uses() -> None:
    book = GrantBook(Clock())
    book.give(GRANTED)
    assert [book.use(1) for _ in range(GRANT_USES + 1)] == [*range(1, GRANT_USES + 1), None]
    assert book.listed() == []


@proves("GATE-GRANT-03")
def test_grants_are_revoked_one_by_one_by_caller_or_all() -> None:
    book = GrantBook(Clock())
    other = GRANTED._replace(caller=CALLER._replace(who=CallerId(1, 1)))
    for what in (GRANTED, other, GRANTED, other):
        book.give(what)
    assert book.revoke(9) == []
    assert book.revoke(3) == [3]
    assert book.revoke_of(CALLER.who) == [1]
    assert book.revoke() == [2, 4]
    assert len(book) == 0


def test_numbers_are_not_used_again_and_there_are_only_so_many() -> None:
    book = GrantBook(Clock())
    for _ in range(MAX_GRANTS):
        assert book.give(GRANTED) is not None
    assert book.give(GRANTED) is None
    book.revoke()
    grant = book.give(GRANTED)
    assert grant is not None
    assert grant.number == MAX_GRANTS + 1


@pytest.fixture(scope="module")
def person(tmp_path_factory: pytest.TempPathFactory) -> Iterator[RunningGate]:
    """One gate for all of these; whoever grants ends it again."""
    with running_gate(tmp_path_factory.mktemp("g"), program=PERSON) as running:
        yield running


def grant(gate: RunningGate, message: dict[str, Any]) -> dict[str, Any]:
    with gate.ask(message) as connection:
        gate.terminal.wait_for(QUESTION)
        gate.terminal.type("g")
        gate.terminal.wait_for("━━━ Grant ━━━")
        gate.terminal.wait_for(QUESTION)
        gate.terminal.type("g")
        return answer(connection)


def deny(gate: RunningGate, message: dict[str, Any]) -> None:
    with gate.ask(message) as connection:
        gate.terminal.wait_for(QUESTION)
        gate.terminal.type("N")
        assert answer(connection)["status"] == "denied"
        gate.terminal.wait_for("→ Denied")


@proves("GATE-GRANT-02", "GATE-GRANT-04")
def test_g_twice_runs_it_and_the_same_again_without_a_key(person: RunningGate) -> None:
    first = grant(person, request(["echo", "hello"], session="a"))
    assert (first["status"], first["decided_by"]) == ("ok", "terminal")
    person.terminal.wait_for("needs no key for 10 minutes, 20 times.")
    again = exchange(person.path, request(["echo", "hello"], session="a"))
    assert again["status"] == "ok"
    number = again["decided_by"].removeprefix("grant:")
    person.terminal.wait_for(f"▶ grant:{number}  echo hello")
    records = person.audit()
    given = next(each for each in records if each.get("grant") == int(number))
    assert (given["event"], given["decision"], given["by"]) == ("decided", "approved", "terminal")
    ours = [each["event"] for each in records if each.get("id") == again["id"]]
    assert ours == ["received", "decided", "finished"]
    used = next(each for each in records if each.get("by") == again["decided_by"])
    assert used["programs"]

    # Anything else is a question, and a no to it ends the grant.
    deny(person, request(["echo", "hello", "you"], session="a"))
    assert person.audit()[-1]["revoked"] == [int(number)]
    deny(person, request(["echo", "hello"], session="a"))


@pytest.mark.parametrize(
    "changes",
    [
        {"session": "b"},
        {"env": {"HOME": "/tmp"}},
        {"privileged": True},
        {"forward_agent": True},
        {"pipeline": [["echo", "x"], ["cat"]]},
    ],
    ids=lambda changes: next(iter(changes)),
)
@proves("GATE-GRANT-01")
def test_anything_but_the_same_is_asked(person: RunningGate, changes: dict[str, Any]) -> None:
    whole = {"session": "a"} | changes
    grant(person, request(["echo", "x"], session="a"))
    deny(person, request(["echo", "x"], **whole))


@proves("GATE-GRANT-01")
def test_a_script_that_changes_is_asked_about_again(person: RunningGate, tmp_path: Path) -> None:
    script = tmp_path / "script"
    script.write_text("echo one\n")
    if os.getuid() == 0:
        # What only root can change does not change.
        os.chown(script, 65534, -1)
    message = ["sh", str(script)]
    grant(person, request(message))
    assert exchange(person.path, request(message))["decided_by"].startswith("grant:")
    script.write_text("echo two\n")
    deny(person, request(message))


@proves("GATE-GRANT-02")
def test_nothing_is_granted_to_root_or_with_the_agent(person: RunningGate) -> None:
    for fields, why in (
        ({"privileged": True}, "Nothing is granted to root"),
        ({"forward_agent": True}, "Nothing is granted with your SSH agent"),
    ):
        with person.ask(request(["true"], **fields)) as connection:
            person.terminal.wait_for(QUESTION)
            person.terminal.type("g")
            person.terminal.wait_for(why)
            person.terminal.wait_for(QUESTION)
            person.terminal.type("N")
            assert answer(connection)["status"] == "denied"


@proves("GATE-GRANT-03")
def test_grants_are_listed_and_revoked_from_another_terminal(person: RunningGate) -> None:
    grant(person, request(["echo", "listed"], session="a"))

    def run(*more: str) -> subprocess.CompletedProcess[str]:
        words = [sys.executable, "-m", "stringd", "gate", "grants", "--socket", str(person.path)]
        return subprocess.run([*words, *more], capture_output=True, text=True, check=False)

    listed = json.loads(run("--json").stdout)["grants"]
    assert [each["pipeline"] for each in listed] == [[["echo", "listed"]]]
    assert (listed[0]["uses_left"], listed[0]["session"]) == (GRANT_USES, "a")
    assert "echo listed" in run().stdout
    assert run("revoke", "999").returncode == 1
    assert run("revoke", str(listed[0]["grant"])).stdout.startswith("revoked: ")
    person.terminal.wait_for("Grants ended by")
    assert run().stdout == "nothing is granted\n"
    deny(person, request(["echo", "listed"], session="a"))
