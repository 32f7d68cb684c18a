"""Five ways to give a model the same tools, and how they are counted."""

from importlib import import_module
from typing import Any

import pytest

from bench.arms import (
    Arm,
    RealTask,
    RealTool,
    Step,
    Turn,
    code,
    conversation,
    cost,
    deferred,
    eager,
    skill,
    skill_file,
    string,
    string_command,
    typed_interface,
)
from bench.arms_table import fifty
from stringd.mcp.catalog import TOOLS

STANDING_TOKENS = 350
SCHEMA = {
    "type": "object",
    "properties": {"limit": {"type": "integer"}, "path": {"type": "string"}},
    "required": ["path"],
}
TOOLS_OF_TWO = [
    RealTool("files", "read-file", "Read a file. It must be text.", SCHEMA),
    RealTool("files", "list", "List a folder.", SCHEMA),
    RealTool("mail", "send", "Send a letter.", {}),
]
READ = RealTask("read file", (Step("files", "read-file", {"path": "a b"}, "text"),))
BOTH = RealTask("list and read", (*READ.steps, Step("files", "list", {"path": "/"}, "a b")))


def words(text: str) -> int:
    return len(text.split())


def test_every_tool_is_in_each_conversation_and_nothing_is_looked_for() -> None:
    arm = eager(TOOLS_OF_TWO)
    assert arm.standing.count('"inputSchema"') == 3
    assert conversation(arm, [READ]) == [
        Turn('{"name":"files_read-file","arguments":{"path":"a b"}}', "text")
    ]


def test_a_search_answers_with_the_definitions_a_task_needs() -> None:
    arm = deferred(TOOLS_OF_TWO)
    assert "read-file" not in arm.standing
    found = arm.discover(BOTH)[0].result
    assert '"files_read-file"' in found
    assert '"files_list"' in found
    assert len(conversation(arm, [BOTH, READ])) == len(conversation(arm, [BOTH])) + 1


def test_a_skill_file_is_read_once_for_a_server() -> None:
    arm = skill(TOOLS_OF_TWO)
    turns = conversation(arm, [READ, BOTH])
    assert [turn.call for turn in turns if "cat skills" in turn.call] == [turns[0].call]
    assert "files read-file --path 'a b'" in turns[1].call
    assert skill_file("files", TOOLS_OF_TWO[:1]) == (
        "# files\nfiles read-file --path [--limit]  Read a file"
    )


def test_code_makes_all_calls_of_a_task_at_once_and_prints_the_last_answer() -> None:
    turns = code(TOOLS_OF_TWO).perform(BOTH)
    assert len(turns) == 1
    assert turns[0].result == "a b"
    assert "print(files.list(path='/'))" in turns[0].call
    assert typed_interface(TOOLS_OF_TWO[:1]) == (
        "def read_file(path: str, limit: int = None) -> str  # Read a file"
    )


def test_string_asks_what_was_recorded_and_calls_by_name() -> None:
    arm = string("standing", {READ.words: [Turn("asked", "found")]})
    assert string_command(READ.steps[0]) == "files.read-file --path 'a b'"
    assert [turn.call for turn in conversation(arm, [READ, READ])][::2][0] == "asked"
    assert len(conversation(arm, [READ, READ])) == 3
    assert len(conversation(arm, [READ], known=True)) == 1


@pytest.mark.parametrize("build", [eager, deferred, skill, code])
def test_each_way_can_do_each_task(build: Any) -> None:
    arm: Arm = build(TOOLS_OF_TWO)
    assert conversation(arm, [BOTH])[-1].result == "a b"


def test_a_turn_reads_all_before_it_and_the_cache_makes_that_a_tenth() -> None:
    spent = cost(words, "s " * 10, [Turn("c c", "r r r"), Turn("c", "r")])
    assert spent.context == 17
    assert spent.read == 10 + 15 + 17
    assert spent.read_cached == pytest.approx(10 + (1 + 5) + (1.5 + 2))


def test_fifty_tools_have_those_in_them_that_are_used() -> None:
    many = [RealTool("x", f"t{number}", "", {}) for number in range(80)]
    chosen = fifty([*many, *TOOLS_OF_TWO], [READ])
    assert len(chosen) == 50
    assert chosen[0] == TOOLS_OF_TWO[0]


def test_the_tools_of_the_server_stay_small() -> None:
    tokens = import_module("bench.tokens")
    count = import_module("rs_bpe.bpe").openai.o200k_base().count
    assert tokens.standing(count, TOOLS) <= STANDING_TOKENS
