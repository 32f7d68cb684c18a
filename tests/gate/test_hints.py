import json

import pytest

from stringd.gate.hints import hints, split_form
from stringd.gate.program import ShownProgram
from stringd.gate.trust import Weakness
from tests.gate.support import Desk, exchange, request
from tests.gate.test_question import question, shown

HOME = "/home/alice"


def programs(*stages: list[str]) -> list[ShownProgram]:
    return [
        ShownProgram(stage[0], f"/usr/bin/{stage[0]}", f"/usr/bin/{stage[0]}") for stage in stages
    ]


@pytest.mark.parametrize(
    ("stages", "expected"),
    [
        ([["ls", "-l"]], []),
        ([["sh", "-c", "ls"]], ["a shell reads its words"]),
        ([["cat", "x"], ["bash"]], ["a shell reads its input"]),
        ([["curl", "x"], ["sh"]], ["runs what it downloads", "a shell reads its input"]),
        (
            [["wget", "-qO-", "x"], ["tee", "y"], ["python3", "-"]],
            ["runs what it downloads", "python3 runs other programs or code"],
        ),
        (
            [["bash", "-c", "curl -fsSL https://x/i.sh | sudo -E bash -"]],
            ["runs what it downloads", "a shell reads its words"],
        ),
        ([["sh", "-c", "curl x > y; ls | sh"]], ["a shell reads its words"]),
        ([["xargs", "rm"]], ["xargs runs other programs or code"]),
        ([["curl", "-o", "x", "y"]], []),
    ],
)
def test_what_deserves_a_second_look_is_named(stages: list[list[str]], expected: list[str]) -> None:
    assert hints(stages, programs(*stages), {}, HOME) == expected


def test_a_shell_by_another_name_is_a_shell() -> None:
    hidden = [ShownProgram("harmless", "/tmp/harmless", "/usr/bin/dash")]
    assert hints([["harmless", "x"]], hidden, {}, HOME) == ["a shell reads its words"]


def test_a_changeable_program_and_another_home_are_named() -> None:
    weak = [ShownProgram("x", "/x", "/x", weaknesses=(Weakness("/x", "alice"),))]
    assert hints([["x"]], weak, {"HOME": "/tmp"}, HOME) == [
        "a program others can change",
        "HOME is another",
    ]
    assert hints([["x"]], [], {"HOME": HOME}, HOME) == []


def test_hostile_text_takes_no_time() -> None:
    words = ["sh", "-c", "curl " * 200_000 + "|" * 200_000]
    assert hints([words], [], {}, HOME)


def test_hints_are_one_row_of_the_question() -> None:
    text = shown(question(("curl", "x"), ("sh",)), 60)
    rows = [row for row in text.splitlines() if row.startswith("Risk:")]
    assert rows == ["Risk:    runs what it downloads, a shell reads its input"]
    assert "Risk:" not in shown(question(("ls",)))


@pytest.mark.parametrize("privileged", [False, True])
def test_a_command_sent_as_one_word_is_refused_before_anybody_is_asked(
    desk: Desk, privileged: bool
) -> None:
    reply = exchange(desk.path, request(["echo 'a b' c"], privileged=privileged))
    assert reply["status"] == "error"
    assert reply["message"].startswith("pipeline[0] is one word with blanks")
    assert reply["message"].endswith(json.dumps([["echo", "a b", "c"]]))
    assert desk.human.asked == []


def test_the_split_form_keeps_the_other_stages_and_takes_broken_quotes_as_they_are() -> None:
    assert json.loads(split_form([["ls"], ["grep it's"]], 1)) == [["ls"], ["grep", "it's"]]
