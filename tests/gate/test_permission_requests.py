"""Requests that only ask: the person decides, the gate runs nothing."""

import json
from pathlib import Path
from typing import Any

import pytest

from stringd.gate.decide import Event, KeyAnswer
from stringd.gate.display import paint
from stringd.gate.question import AskingPeer, Question, Size, compose
from stringd.gate.subject import answered_elsewhere
from stringd.wire.gate import RequestAction
from tests.gate.support import (
    QUESTION,
    Desk,
    Human,
    RunningGate,
    answer,
    exchange,
    request,
    serving,
)
from tests.gate.test_validate import valid, validated


def decide(**fields: object) -> dict[str, Any]:
    whole: dict[str, Any] = {
        "action": "decide",
        "pipeline": [],
        "privileged": None,
        "tool": "Bash",
        "text": "ls",
    }
    return request(**(whole | fields))


def test_a_yes_is_an_answer_and_nothing_else(desk: Desk) -> None:
    response = exchange(desk.path, decide())
    assert (response["status"], response["message"]) == ("ok", "allowed")
    assert response["decided_by"] == "test"
    assert "stages" not in response
    assert "stdout" not in response
    records = [json.loads(line) for line in desk.audit.read_text().splitlines()]
    assert [record["event"] for record in records] == ["received", "decided"]
    assert (records[0]["tool"], records[0]["text"]) == ("Bash", "ls")
    assert records[1]["decision"] == "approved"


@pytest.mark.parametrize(("key", "status"), [(Event.NO, "denied"), (Event.SILENCE, "timeout")])
def test_a_no_and_silence_are_told_apart(home: Path, key: Event, status: str) -> None:
    human = Human(lambda _: KeyAnswer(key, by="test", note="not now"))
    with serving(home, human) as desk:
        assert exchange(desk.path, decide())["status"] == status


@pytest.mark.parametrize(
    "fields",
    [
        {"tool": ""},
        {"text": ""},
        {"pipeline": [["id"]]},
        {"env": {"LANG": "C"}},
        {"forward_agent": True},
    ],
)
def test_what_the_question_would_not_show_is_refused(desk: Desk, fields: dict[str, object]) -> None:
    assert exchange(desk.path, decide(**fields))["status"] == "error"
    assert desk.human.asked == []


def test_the_question_shows_every_line_and_says_that_nothing_runs_here(gate: RunningGate) -> None:
    text = "rm -rf build\n# so that it starts from nothing"
    with gate.ask(decide(text=text, client="Claude Code", directory="/home/a/shop")) as caller:
        shown = gate.terminal.wait_for(QUESTION)
        for part in ("Permission request", "Tool:    Bash", "│ rm -rf build", "│ # so that"):
            assert part in shown
        assert "For:     Claude Code" in shown
        assert "in /home/a/shop" in shown
        assert "Allow? [y/N]" in shown
        assert "as root" not in shown
        gate.terminal.type("y")
        gate.terminal.wait_for("Allowed")
        assert answer(caller)["status"] == "ok"


def test_what_is_long_must_be_read_to_its_end(gate: RunningGate) -> None:
    text = "\n".join(f"line {number}" for number in range(60))
    with gate.ask(decide(text=text)) as caller:
        gate.terminal.wait_for(QUESTION)
        gate.terminal.type("y")
        gate.terminal.wait_for("Not yet")
        gate.terminal.type(" ")
        gate.terminal.wait_for("Page 2")
        gate.terminal.type(" ")
        gate.terminal.wait_for("line 59")
        gate.terminal.type("y")
        assert answer(caller)["status"] == "ok"


def test_a_question_answered_elsewhere_says_by_whom(gate: RunningGate) -> None:
    with gate.ask(decide()) as caller:
        gate.terminal.wait_for(QUESTION)
        caller.sendall(b'{"answered_by": "the page"}\n')
    gate.terminal.wait_for("Answered elsewhere: the page")


@pytest.mark.parametrize("said", [b"", b"x", b"[]", b'{"answered_by": 1}'])
def test_a_caller_that_says_nothing_just_went_away(said: bytes) -> None:
    assert "or the agent went away" in answered_elsewhere(said)


def test_no_line_of_the_text_can_pass_for_a_line_of_ours() -> None:
    asked = validated(
        valid(action=RequestAction.DECIDE, pipeline=(), tool="Bash", text="ls\nTool:    Read")
    )
    question = Question(asked, (), AskingPeer(1, 1, "/bin/x"))
    rows = paint(compose(question, Size(40, 30))[0], colour=False).splitlines()
    assert "│ Tool:    Read" in rows
    assert len([row for row in rows if row.startswith("Tool:")]) == 1
