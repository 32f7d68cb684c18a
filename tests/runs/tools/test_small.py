"""To-dos, skills, and what the rest of the daemon offers."""

from collections.abc import Sequence
from pathlib import Path

import pytest

from stringd.runs.tools.built_in import built_in_tools, rebuilding_tools, shell_tools
from stringd.runs.tools.context import DaemonPorts, StringQuestions
from tests.runs.support import RunsServer, Watcher, scripted, sequential, serving, strategy
from tests.runs.tools.support import Call, use

pytestmark = pytest.mark.anyio


def test_what_is_known_about_the_tools_a_strategy_may_name() -> None:
    effects = {
        "inward": "ask_question launch_strategy list_skills list_strategy load_skill lsp_request "
        "todo_add todo_clear todo_complete todo_get todo_get_next todo_remove",
        "reads": "delete_file glob list_directory read_file search_files webfetch",
        "writes": "apply_patch create_file edit_file move_file request_privileged restore_file "
        "run_command string write_file",
    }
    for effect, names in effects.items():
        found = sorted(name for name, tool in built_in_tools().items() if tool.effect == effect)
        assert found == names.split(), effect
    assert shell_tools() == {"run_command", "string"}
    assert rebuilding_tools() == {"todo_add", "todo_clear", "todo_complete", "todo_remove"}


def test_every_tool_describes_its_arguments_without_references() -> None:
    for tool in built_in_tools().values():
        assert tool.parameters["type"] == "object"
        assert "$ref" not in str(tool.parameters)


async def test_the_list_of_a_run_is_kept(
    server: RunsServer, watcher: Watcher, tmp_path: Path
) -> None:
    calls: list[Call] = [
        ("todo_add", {"content": "first"}),
        ("todo_add", {"content": "second"}),
        ("todo_complete", {"id": "1"}),
        ("todo_get", {}),
        ("todo_get_next", {}),
        ("todo_remove", {"id": "#2"}),
        ("todo_complete", {"id": 9}),
        ("todo_clear", {}),
        ("todo_get_next", {}),
    ]
    used = await use(server, watcher, tmp_path, *calls)
    assert used.outputs == [
        "[ ] #1: first",
        "[ ] #2: second",
        "[x] #1: first",
        "[x] #1: first\n[ ] #2: second",
        "[ ] #2: second",
        "Removed #2.\n[x] #1: first",
        "Error (not_found): There is no to-do #9\n\nNext step: call todo_get",
        "The list is empty.",
        "Nothing is left to do.",
    ]


async def test_no_language_service_is_there(
    server: RunsServer, watcher: Watcher, tmp_path: Path
) -> None:
    call: Call = ("lsp_request", {"method": "textDocument/hover", "path": "a.py"})
    used = await use(server, watcher, tmp_path, call)
    assert used.output.startswith("Error (language_unavailable): ")


def put_skill(folder: Path, name: str, text: str) -> None:
    path = folder / "skills" / name / "SKILL.md"
    path.parent.mkdir(parents=True)
    path.write_text(text, "utf-8")


async def test_skills_are_found_listed_loaded_and_required(
    server: RunsServer, watcher: Watcher, tmp_path: Path
) -> None:
    put_skill(tmp_path / "data", "x", "---\nname: brew\ndescription: global tea\n---\nold")
    put_skill(tmp_path / ".stringd", "y", '---\nname: brew\ndescription: "Make tea"\n---\nBoil.\n')
    put_skill(tmp_path / ".comma", "z", "---\nname: abc\ndescription: Letters\n---\nA B C")
    put_skill(tmp_path / ".comma", "bad", "---\nname: Bad Name\ndescription: x\n---\n")
    put_skill(tmp_path / ".comma", "list", "---\nname: l\ndescription: [a]\n---\n")
    server.trust()
    calls: list[Call] = [
        ("list_skills", {}),
        ("load_skill", {"name": "brew"}),
        ("load_skill", {"name": "nope"}),
    ]
    used = await use(server, watcher, tmp_path, *calls, skills=["brew"])
    assert used.outputs == [
        "- abc: Letters\n- brew: global tea",
        "old",
        'Error (not_found): No skill "nope". Available skills: abc, brew',
    ]


async def test_an_unknown_required_skill_fails_the_preparation(
    server: RunsServer, watcher: Watcher
) -> None:
    source = strategy(sequential("a"), a={**scripted("x"), "skills": ["nope"]})
    answer = await watcher.ask("prepare_run", strategyPath=str(server.strategy(source)))
    assert answer["code"] == "PREPARE_FAILED"
    assert answer["message"].startswith('Agent "a" requires unknown skill "nope".')


async def test_agents_reach_topics_and_the_gate_through_ports(tmp_path: Path) -> None:
    seen: list[tuple[object, ...]] = []

    async def string(topic: str, command: str, cwd: Path, questions: StringQuestions) -> str:
        seen.append((topic, command, cwd))
        return "opened"

    async def gate(
        pipeline: Sequence[Sequence[str]], reason: str, cwd: Path, *, privileged: bool
    ) -> str:
        seen.append(([list(stage) for stage in pipeline], reason, privileged))
        return "denied"

    async with serving(tmp_path, ports=DaemonPorts(string, gate)) as server:
        watcher = await server.watcher()
        calls: list[Call] = [
            ("string", {"command": "/open x.md", "topic": "notes"}),
            ("request_privileged", {"pipeline": [["id"], ["cat"]], "reason": "why"}),
        ]
        used = await use(server, watcher, tmp_path, *calls)
    assert used.outputs == ["opened", "denied"]
    assert seen == [("notes", "/open x.md", tmp_path), ([["id"], ["cat"]], "why", True)]


async def test_invalid_arguments_name_every_problem(
    server: RunsServer, watcher: Watcher, tmp_path: Path
) -> None:
    call: Call = ("read_file", {"path": 5, "startLine": 0, "allowBinary": "yes"})
    used = await use(server, watcher, tmp_path, call)
    lines = used.output.split("\n")
    assert lines[0] == "Invalid arguments for `read_file`:"
    assert [line.partition(":")[0] for line in lines[1:4]] == [
        "- `path`",
        "- `startLine`",
        "- `allowBinary`",
    ]
    assert 'Received: {"path":5,"startLine":0,"allowBinary":"yes"}' in lines
    assert lines[-1].startswith("Next step: ")


@pytest.mark.parametrize(
    ("call", "problem"),
    [
        (("webfetch", {"url": "x", "timeout": 0}), "- `timeout`: Number must be greater than 0"),
        (("webfetch", {"url": "x", "timeout": 999}), "- `timeout`: Number must be less than or"),
        (("read_file", {"path": "f", "startLine": 1.5}), "- `startLine`: Expected integer"),
    ],
)
async def test_numbers_out_of_bounds_are_named(
    server: RunsServer, watcher: Watcher, tmp_path: Path, call: Call, problem: str
) -> None:
    used = await use(server, watcher, tmp_path, call)
    assert used.output.split("\n")[1].startswith(problem)


async def test_a_whole_number_may_be_written_with_a_point(
    server: RunsServer, watcher: Watcher, tmp_path: Path
) -> None:
    (tmp_path / "f").write_text("one\ntwo\n", "utf-8")
    args = {"path": "f", "startLine": 2.0, "endLine": 2.0}
    used = await use(server, watcher, tmp_path, ("read_file", args))
    assert used.output.endswith("\ntwo")


def test_models_are_not_offered_a_tool_that_can_only_fail() -> None:
    assert not built_in_tools()["lsp_request"].offered
    assert all(tool.offered for name, tool in built_in_tools().items() if name != "lsp_request")
