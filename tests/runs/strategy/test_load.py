"""Strategy files: what is accepted, and what their authors are told."""

import os
from pathlib import Path
from typing import Any

import pytest
import yaml

from stringd.runs.errors import StrategyFileError
from stringd.runs.strategy import definition as d
from stringd.runs.strategy.load import KnownNames, load_strategy
from tests.requirements import proves
from tests.runs.support import sequential, strategy

KNOWN = KnownNames(tools=("read_file",), agent_types=("robot",), flow_types=("router",))
LLM = {"model": "demo/echo"}


def load(folder: Path, source: Any, name: str = "s.yaml", **options: Any) -> d.Strategy:
    path = folder / name
    path.write_text(source if isinstance(source, str) else yaml.safe_dump(source), "utf-8")
    return load_strategy(path, KNOWN, **options)


def refusal(folder: Path, source: Any, name: str = "s.yaml") -> str:
    with pytest.raises(StrategyFileError) as caught:
        load(folder, source, name)
    return str(caught.value).replace(f"{folder}/", "")


FULL = """\
name: Draft and judge
version: "1.0"
agents:
  asker:  { type: user, config: { requireInput: true } }
  writer:
    model: openai/gpt-4o
    systemPrompt: Write tight prose.
    tools: [read_file]
    modelOptions: { temperature: 0.5, seed: 1 }
    context: { rollingWindow: 5, compaction: { keepRecent: 2, threshold: 4 } }
    maxSteps: 3
  judge:  { type: llm, model: openai/gpt-4o, context: { compaction: false } }
  custom: { type: robot, config: { any: thing } }
flow:
  name: Main
  type: sequential
  description: all of it
  steps:
    - agent: asker
    - name: Improve
      type: cycle
      cycles: "Infinity"
      observer: judge
      breakCycleSignals: ["==OK=="]
      breakCycleSignalMatch: first-line
      steps: [{ agent: writer, description: writes }]
    - { name: All, type: broadcast, separator: " | ", steps: [{ agent: custom }] }
    - { name: Route, type: router, config: { x: 1 }, steps: [{ agent: writer }] }
"""


def test_everything_a_file_may_say_is_understood(tmp_path: Path) -> None:
    found = load(tmp_path, FULL)
    writer = found.agents["writer"]
    assert isinstance(writer, d.LlmAgent)
    assert (writer.max_steps, writer.tools) == (3, ("read_file",))
    assert writer.retention == d.RetentionRule(5, compaction=True, keep_recent=2, threshold=4)
    judge = found.agents["judge"]
    assert isinstance(judge, d.LlmAgent)
    assert not judge.retention.compaction
    cycle = found.flow.steps[1]
    assert isinstance(cycle, d.CycleFlow)
    assert (cycle.cycles, cycle.observer, cycle.match) == (None, "judge", "first-line")
    assert [flow.name for flow in d.flows_within(found.flow)] == ["Main", "Improve", "All", "Route"]


def test_json_may_carry_comments_but_no_trailing_commas(tmp_path: Path) -> None:
    text = (
        '{ // one\n "name": "a // b /* c */", /* two\n lines */ "version": "1",\n'
        ' "agents": {"a": {"model": "demo/echo"}},\n'
        ' "flow": {"name": "F", "type": "sequential", "steps": [{"agent": "a"}]} }'
    )
    assert load(tmp_path, text, "s.JSON").name == "a // b /* c */"
    assert "Failed to parse strategy JSON: " in refusal(tmp_path, '{"name": "x",}', "s.json")


def test_yaml_is_version_1_2(tmp_path: Path) -> None:
    source = 'name: on\nversion: "yes"\nagents: {off: {model: no}}\n'
    source += "flow: {name: y, type: sequential, steps: [{agent: off}]}\n"
    found = load(tmp_path, source)
    assert (found.name, found.version, found.flow.name) == ("on", "yes", "y")
    text = refusal(tmp_path, source.replace('"yes"', "1.0"))
    assert "  - version: Expected string, received number (s.yaml:2:1)" in text


PROBLEMS: list[tuple[dict[str, Any], str]] = [
    ({"name": None}, "name: Expected string, received null (s.yaml:9:1)"),
    ({"name": ""}, "name: String must contain at least 1 character(s)"),
    ({"extra": 1}, ": Unrecognized key(s) in object: 'extra' (s.yaml:4:1)"),
    ({"defaults": {}}, ": Unrecognized key(s) in object: 'defaults'"),
    ({"agents": []}, "agents: Expected object, received array"),
    (
        {"agents": {"a": {**LLM, "temperature": 1}}},
        "agents.a: Unrecognized key(s) in object: 'temperature' (s.yaml:4:5)",
    ),
    ({"agents": {"a": {"model": 5}}}, "agents.a: Invalid input"),
    ({"agents": {"a": {"model": 5}}}, "agents.a.model: Expected string, received number"),
    ({"agents": {"a": {**LLM, "maxSteps": 0}}}, "agents.a.maxSteps: Number must be greater than 0"),
    ({"agents": {"a": {"type": "user", "model": "x"}}}, "agents.a: Unrecognized key(s)"),
    ({"agents": {"a": {"type": "robot", "speed": 1}}}, "agents.a: Unrecognized key(s)"),
    ({"agents": {"a": {**LLM, "modelOptions": {"heat": 1}}}}, "'heat'"),
    ({"agents": {"a": {**LLM, "mcpServers": [""]}}}, "agents.a.mcpServers.0: String must contain"),
    ({"flow": {"name": "F", "type": "sequential", "steps": []}}, "flow.steps: Array must contain"),
    ({"flow": {"type": "sequential", "steps": [{"agent": "a"}]}}, "flow: Invalid input"),
    ({"flow": {"type": "sequential", "steps": [{"agent": "a"}]}}, "flow.name: Required"),
    ({"flow": {**sequential("a"), "cycles": 2}}, "flow: Unrecognized key(s) in object: 'cycles'"),
    ({"flow": {**sequential("a"), "type": "cycle", "cycles": 0}}, "flow.cycles: Number must be gr"),
    ({"flow": {**sequential("a"), "type": "cycle", "cycles": "inf"}}, "flow: Invalid input"),
    (
        {"flow": {**sequential("a"), "type": "cycle", "breakCycleSignals": []}},
        "flow.breakCycleSignals: Array must contain at least 1 element(s)",
    ),
    ({"flow": {"name": "F", "type": "sequential", "steps": [{"agnet": "a"}]}}, "flow.steps.0"),
    ({"flow": {**sequential(), "steps": ["a"]}}, "flow.steps.0: Expected object, received string"),
    ({"flow": "a"}, "flow: Expected object, received string"),
    ({"agents": {"a": "demo/echo"}}, "agents.a: Expected object, received string"),
    ({"mcpServers": {"m": {"transport": "http"}}}, "mcpServers.m.url: Required"),
    ({"mcpServers": {"m": {"transport": "stdio"}}}, "mcpServers.m.command: Required"),
]


@proves("RUN-23")
@pytest.mark.parametrize(("change", "text"), PROBLEMS)
def test_schema_problems_name_path_file_line_and_column(
    tmp_path: Path, change: dict[str, Any], text: str
) -> None:
    source = {**strategy(sequential("a"), a=LLM), **change}
    message = refusal(tmp_path, source)
    assert message.startswith("Strategy validation failed:\n  - ")
    assert text in message
    assert "(s.yaml:" in message


def test_all_problems_are_told_at_once(tmp_path: Path) -> None:
    message = refusal(tmp_path, {"name": 1, "flow": 2, "x": 3})
    assert message.count("\n  - ") == 5


@pytest.mark.parametrize(
    ("change", "text"),
    [
        (
            {"flow": sequential("a", "ghost")},
            'Flow "Main" references agent "ghost" which is not defined. Available agents: [a].',
        ),
        (
            {"flow": {**sequential("a"), "type": "cycle", "observer": "eye"}},
            'Flow "Main" references agent "eye" which is not defined. Available agents: [a].',
        ),
        (
            {"flow": {**sequential("a"), "type": "spiral"}},
            (
                'Flow "Main" references unknown flow type "spiral". Built-in flows: '
                "[sequential, cycle, broadcast]. Registered flows: [router]."
            ),
        ),
        (
            {"agents": {"a": {"type": "cat"}}},
            (
                'Agent "a" references unknown agent type "cat". Built-in agents: [llm, user]. '
                "Registered agents: [robot]."
            ),
        ),
        (
            {"agents": {"a": {**LLM, "tools": ["fly"]}}},
            (
                'Agent "a" references unknown tool "fly". Built-in tools: [read_file]. '
                "Registered tools: []. Custom tools: []."
            ),
        ),
        (
            {"agents": {"a": {}}},
            'Agent "a" has no model. Set a model on the agent definition.',
        ),
        (
            {"agents": {"a": {**LLM, "systemPrompt": "missing.md"}}},
            "System prompt file not found: missing.md",
        ),
        (
            {"agents": {"a": {**LLM, "systemPromptTemplate": {"template": "t.txt"}}}},
            "System prompt template file not found: t.txt",
        ),
    ],
)
def test_references_that_lead_nowhere_are_told(
    tmp_path: Path, change: dict[str, Any], text: str
) -> None:
    assert refusal(tmp_path, {**strategy(sequential("a"), a=LLM), **change}) == text


def test_a_run_wide_model_makes_up_for_a_missing_one(tmp_path: Path) -> None:
    source = strategy(sequential("a"), a={"systemPrompt": "x"})
    assert load(tmp_path, source, model_override="demo/echo").name == "Test"


def test_prompts_in_files_are_read_beside_the_strategy(tmp_path: Path) -> None:
    (tmp_path / "p.md").write_text("be nice", "utf-8")
    source = strategy(sequential("a"), a={**LLM, "systemPrompt": "p.md"})
    agent = load(tmp_path, source).agents["a"]
    assert isinstance(agent, d.LlmAgent)
    assert agent.system_prompt == "be nice"


@pytest.mark.parametrize("kind", ["missing", "folder", "pipe"])
def test_a_prompt_that_is_no_file_is_not_found(tmp_path: Path, kind: str) -> None:
    if kind == "folder":
        (tmp_path / "p.md").mkdir()
    elif kind == "pipe":
        os.mkfifo(tmp_path / "p.md")
    source = strategy(sequential("a"), a={**LLM, "systemPrompt": "p.md"})
    assert refusal(tmp_path, source) == "System prompt file not found: p.md"


BROKEN: list[tuple[str, str, str]] = [
    ("s.yaml", "a: [1\n", "Failed to parse strategy YAML: did not find expected ',' or ']'"),
    ("s.yaml", "a:\n\t- b", "YAML: a tab cannot indent here; use spaces (s.yaml:2:1)"),
    ("s.yaml", "a: @b", "cannot start any token, while scanning for the next token (s.yaml:1:4)"),
    ("s.yaml", "a: &x [*x]", "an anchor holds itself"),
    ("s.yaml", "a: 1\na: 2\n", 'the key "a" is given twice (s.yaml:2:1)'),
    ("s.yaml", "a: !!python/name:os.system x", "is not allowed here (s.yaml:1:4)"),
    ("s.yaml", "a: *nope", "found undefined alias (s.yaml:1:4)"),
    ("s.yaml", "--- 1\n--- 2\n", "expected a single document"),
    ("s.yaml", "a: \x01", "control characters are not allowed"),
    ("s.yaml", "? [a]\n: b\n", "a key must be a plain word"),
    ("s.yaml", "a: 0x\nb: {" * 70, "s.yaml"),
    ("s.yaml", "", ": Expected object, received null (s.yaml:1:1)"),
    ("s.json", "", "Failed to parse strategy JSON: Expecting value (s.json:1:1)"),
    ("s.json", '{"a": 1,\n "a": 2}', 'the key "a" is given twice (s.json:2:2)'),
    ("s.json", '{"a": NaN}', "NaN is not a JSON value"),
    ("s.json", "[" * 5000, "nested too deeply"),
    ("s.json", "[" * 100 + "]" * 100, "nested too deeply"),
    ("s.json", '{"a": ' + "1" * 5000 + "}", "a number has too many digits"),
    ("s.json", '{"name": "\\ud800"}', "a \\u escape is an unpaired surrogate"),
    ("s.yaml", "version: " + "1" * 5000, "is not a number"),
    ("s.yaml", "flow: {cycles: " + "1" * 400 + "}", "version: Required"),
    ("s.jsonc", '{"a": /* never ends', "Failed to parse strategy JSON"),
    ("s.toml", "a = 1", 'Unsupported file extension ".toml"'),
    ("s.yaml", "a: " + "x" * 1_100_000, "is larger than 1024 KiB"),
]


@proves("RUN-23")
@pytest.mark.parametrize(("name", "text", "told"), BROKEN)
def test_broken_files_get_kind_words(tmp_path: Path, name: str, text: str, told: str) -> None:
    assert told in refusal(tmp_path, text, name)


def test_aliases_may_repeat_but_not_explode(tmp_path: Path) -> None:
    layers = "\n".join(f"l{n}: &l{n} [{', '.join([f'*l{n - 1}'] * 9)}]" for n in range(1, 9))
    assert "aliases expand to too many values" in refusal(tmp_path, f"l0: &l0 [x]\n{layers}\n")


def test_a_file_that_is_not_utf8_or_not_there_is_told(tmp_path: Path) -> None:
    (tmp_path / "s.yaml").write_bytes(b"a: 1\nb: \xff")
    with pytest.raises(StrategyFileError, match=r"is not UTF-8: .*s.yaml:2"):
        load_strategy(tmp_path / "s.yaml", KNOWN)
    with pytest.raises(StrategyFileError, match="Strategy file not found: "):
        load_strategy(tmp_path / "none.yaml", KNOWN)
    (tmp_path / "folder.yaml").mkdir()
    with pytest.raises(StrategyFileError, match="Cannot read"):
        load_strategy(tmp_path / "folder.yaml", KNOWN)
