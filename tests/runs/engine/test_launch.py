"""Strategies launched by agents: seen, counted, bounded, and never a failure of the run."""

import json
from pathlib import Path

import pytest

from tests.runs.support import (
    Json,
    RunsServer,
    Watcher,
    kinds,
    scripted,
    sequential,
    serving,
    strategy,
)
from tests.runs.tools.support import finish

pytestmark = pytest.mark.anyio


def launching(name: str, text: str = "go", **more: str) -> Json:
    call = {"name": "launch_strategy", "args": {"name": name, "input": text, **more}}
    return {**scripted({"tools": [call]}, "end"), "tools": ["launch_strategy"]}


def put(server: RunsServer, name: str, source: Json) -> None:
    folder = server.directory / ".stringd" / "strategies"
    folder.mkdir(parents=True, exist_ok=True)
    server.strategy({**source, "name": name}, f".stringd/strategies/{name}.yaml")
    server.trust()


def output(messages: list[Json]) -> str:
    events = [m["event"] for m in messages if m["type"] == "agent_streaming"]
    return str(next(e["output"] for e in reversed(events) if e["type"] == "tool-result"))


async def test_a_child_is_seen_under_its_parent_and_its_result_comes_back(
    server: RunsServer, watcher: Watcher
) -> None:
    prompts = server.directory / ".stringd" / "strategies"
    prompts.mkdir(parents=True)
    (prompts / "p.md").write_text("prompt", "utf-8")
    child = {**scripted("child says {message}"), "systemPrompt": "p.md"}
    put(server, "Child", strategy(sequential("c"), c=child))
    source = strategy(sequential("a"), a=launching("Child", "hi"))
    messages = await watcher.run(server.strategy(source), "x")
    assert kinds(messages) == [
        "strategy_started",
        "step_started(a)",
        "a:step-start",
        "a:tool-call",
        "c:step-start",
        *["c:text"] * 3,
        "c:output",
        "c:done",
        "a:tool-result",
        "a:step-start",
        "a:text",
        "a:output",
        "a:done",
        "step_completed(a)",
        "strategy_completed",
    ]
    assert output(messages) == 'Launched "Child" → child says hi'
    outputs = [m["usage"] for m in messages if m["type"] == "agent_output"]
    total = {key: sum(usage[key] for usage in outputs) for key in outputs[0]}
    assert messages[-1]["usage"] == total
    kept = [event["type"] for event in server.timeline("r1")]
    assert kept.count("agent_call") == 1
    assert {m["runId"] for m in messages} == {"r1"}


async def test_the_input_answers_the_childs_first_prompt(
    server: RunsServer, watcher: Watcher
) -> None:
    child = strategy(
        sequential("quiet", "human", "c"),
        quiet=scripted({"empty": True}),
        human={"type": "user"},
        c=scripted("got {message}"),
    )
    put(server, "Child", child)
    source = strategy(sequential("a"), a=launching("Child", "hi"))
    messages = await watcher.run(server.strategy(source), "x")
    assert output(messages) == 'Launched "Child" → got hi'


@pytest.mark.parametrize("name", ["nobody", "broken.yaml"])
async def test_a_launch_that_fails_is_told_to_the_agent(
    server: RunsServer, watcher: Watcher, name: str
) -> None:
    (server.directory / "broken.yaml").write_text("name: [", "utf-8")
    messages = await watcher.run(server.strategy(strategy(sequential("a"), a=launching(name))))
    assert messages[-1]["type"] == "strategy_completed"
    assert output(messages).startswith("launch_strategy failed: ")


async def test_a_child_that_fails_does_not_fail_the_run(
    server: RunsServer, watcher: Watcher
) -> None:
    put(server, "Child", strategy(sequential("c"), c=scripted({"error": "boom"})))
    source = strategy(sequential("a"), a=launching("Child"))
    messages = await watcher.run(server.strategy(source))
    assert messages[-1]["type"] == "strategy_completed"
    assert output(messages) == 'launch_strategy failed: Step "c" failed: LLM call failed: boom'


async def test_grandchildren_are_seen_and_depth_is_bounded(tmp_path: Path) -> None:
    async with serving(tmp_path, max_depth=3) as server:
        watcher = await server.watcher()
        put(server, "Again", strategy(sequential("again"), again=launching("Again")))
        source = strategy(sequential("a"), a=launching("Again"))
        messages = await watcher.run(server.strategy(source))
        assert messages[-1]["type"] == "strategy_completed"
        assert kinds(messages).count("again:output") == 3
        texts = [m["event"]["output"] for m in messages if m.get("event", {}).get("output")]
        assert texts[0].startswith("launch_strategy failed: Launch depth limit reached")


async def test_stopping_the_run_stops_the_child(server: RunsServer, watcher: Watcher) -> None:
    put(server, "Child", strategy(sequential("c"), c=scripted({"text": "x", "delayMs": 60_000})))
    source = strategy(sequential("a"), a=launching("Child"))
    await watcher.ask("prepare_run", runId="r", strategyPath=str(server.strategy(source)))
    await watcher.send("start_run", runId="r")
    while (await watcher.receive()).get("agentName") != "c":
        pass
    await watcher.send("stop_run", runId="r")
    assert (await watcher.ended())["error"]["code"] == "CANCELLED"
    assert (await watcher.ask("prepare_run", runId="r"))["type"] == "run_prepared"


async def test_strategies_can_be_listed_by_an_agent(server: RunsServer, watcher: Watcher) -> None:
    put(server, "Child", strategy(sequential("c"), c=scripted("x")))
    call = {"tools": [{"name": "list_strategy", "args": {}}]}
    source = strategy(sequential("a"), a={**scripted(call, "end"), "tools": ["list_strategy"]})
    messages = await watcher.run(server.strategy(source))
    assert "- Child" in output(messages).split("\n")


async def test_a_strategy_outside_is_launched_only_with_a_yes(
    server: RunsServer, watcher: Watcher, tmp_path_factory: pytest.TempPathFactory
) -> None:
    outside = tmp_path_factory.mktemp("elsewhere") / "s.yaml"
    inner = server.strategy(strategy(sequential("c"), c=scripted("x")), "inner.yaml")
    outside.write_text(inner.read_text("utf-8"), "utf-8")
    source = strategy(sequential("a"), a=launching(str(outside)))
    await watcher.ask("prepare_run", runId="r", strategyPath=str(server.strategy(source)))
    await watcher.send("start_run", runId="r")
    asked = (await watcher.until("request_permission"))[-1]
    assert (asked["toolName"], asked["resource"]) == ("launch_strategy", str(outside))
    await watcher.send(
        "permission_decision", runId="r", permissionRequestId=asked["requestId"], decision="deny"
    )
    messages = await watcher.until("strategy_completed")
    assert output(messages).startswith("Error (permission_denied): ")


def asked_for(messages: list[Json]) -> list[str]:
    return [m["resource"] for m in messages if m["type"] == "request_permission"]


@pytest.mark.parametrize("form", ["absolute", "dots", "link", "home"])
@pytest.mark.parametrize("key", ["systemPrompt", "systemPromptTemplate"])
async def test_a_prompt_from_outside_needs_a_yes_too(
    server: RunsServer,
    watcher: Watcher,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    key: str,
    form: str,
) -> None:
    """An agent that can write files could otherwise read any text through a strategy of its own."""
    work, outside = tmp_path / "work", tmp_path / "outside"
    for folder in (work, outside):
        folder.mkdir()
    monkeypatch.setenv("HOME", str(outside))
    (outside / "secret.md").write_text("secret", "utf-8")
    (work / "link.md").symlink_to(outside / "secret.md")
    path = {
        "absolute": str(outside / "secret.md"),
        "dots": "../outside/secret.md",
        "link": "link.md",
        "home": "~/secret.md",
    }[form]
    prompt: Json = {key: path if key == "systemPrompt" else {"template": path}}
    server.strategy(strategy(sequential("c"), c={**scripted("hi"), **prompt}), "work/mine.yaml")
    source = server.strategy(strategy(sequential("a"), a=launching("mine.yaml")))
    call = {"runId": "r", "strategyPath": str(source), "cwd": str(work)}
    await watcher.ask("prepare_run", **call)
    await watcher.send("start_run", runId="r")
    used = await finish(watcher, ["deny"])
    assert asked_for(used.messages) == [str(outside / "secret.md")]
    assert used.output.startswith("Error (permission_denied): ")


async def test_a_named_strategy_that_is_a_link_out_of_the_workspace_is_not_found(
    server: RunsServer, watcher: Watcher, tmp_path_factory: pytest.TempPathFactory
) -> None:
    outside = tmp_path_factory.mktemp("elsewhere") / "s.yaml"
    put(server, "Child", strategy(sequential("c"), c=scripted("x")))
    link = server.directory / ".stringd" / "strategies" / "Child.yaml"
    link.rename(outside)
    link.symlink_to(outside)
    source = server.strategy(strategy(sequential("a"), a=launching("Child")))
    await watcher.ask("prepare_run", runId="r", strategyPath=str(source))
    await watcher.send("start_run", runId="r")
    used = await finish(watcher)
    assert "Strategy file not found" in used.output


async def test_a_child_works_under_the_policies_and_without_the_grants_of_its_parent(
    server: RunsServer, watcher: Watcher, tmp_path_factory: pytest.TempPathFactory
) -> None:
    outside = tmp_path_factory.mktemp("elsewhere") / "file"
    outside.write_text("text", "utf-8")
    (server.directory / "closed").write_text("secret", "utf-8")
    paths = ["closed", str(outside)]
    reads = [{"tools": [{"name": "read_file", "args": {"path": path}}]} for path in paths]
    put(
        server,
        "Child",
        strategy(sequential("c"), c={**scripted(*reads, "end"), "tools": ["read_file"]}),
    )
    parent = launching("Child")
    parent["providerOptions"]["demo"]["script"].insert(0, reads[1])
    parent["tools"].append("read_file")
    source = server.strategy(strategy(sequential("a"), a=parent))
    await watcher.ask("prepare_run", runId="r", strategyPath=str(source))
    policy = {"runId": "r", "tool": "read_file", "mode": "read", "deny": ["closed"]}
    await watcher.send("update_policy", **policy)
    await watcher.send("start_run", runId="r")
    used = await finish(watcher, ["allow-session", "deny"])
    assert asked_for(used.messages) == [str(outside), str(outside)]
    assert "denied by read-path-policy" in used.outputs[1]
    assert "was denied by the user" in used.outputs[2]


TOUCH = "touch made-by-child"
SHELL = {"tools": [{"name": "run_command", "args": {"command": TOUCH}}]}
SERVER = {"m": {"transport": "stdio", "command": "/bin/sh", "args": ["-c", TOUCH]}}
CHILDREN: dict[str, Json] = {
    "run_command": strategy(
        sequential("c"), c={**scripted(SHELL, "end"), "tools": ["run_command"]}
    ),
    "the MCP server m": {
        **strategy(sequential("c"), c={**scripted("end"), "mcpServers": ["m"]}),
        "mcpServers": SERVER,
    },
    "the code of @a/b": strategy(sequential("c"), c=scripted("end")),
}


def put_project(server: RunsServer, source: Json) -> None:
    """A project in the workspace whose strategy `Child` comes with code."""
    folder = server.directory / ".stringd" / "strategies" / "project"
    folder.mkdir(parents=True)
    made = server.directory / "made-by-child"
    (folder / "entry.py").write_text(f"open({str(made)!r}, 'w').close()\n", "utf-8")
    manifest = {
        "name": "@a/b",
        "version": "1.0.0",
        "entry": "entry.py",
        "permissions": {"executesCode": True},
        "strategies": {"child": {"path": "child.yaml", "expose": True}},
    }
    (folder / "stringd-project.json").write_text(json.dumps(manifest), "utf-8")
    server.strategy({**source, "name": "Child"}, ".stringd/strategies/project/child.yaml")
    server.trust()


@pytest.mark.parametrize("uses", CHILDREN)
async def test_who_can_write_a_strategy_gains_nothing_by_it_without_a_yes(
    server: RunsServer, watcher: Watcher, uses: str
) -> None:
    if uses.startswith("the code"):
        put_project(server, CHILDREN[uses])
    else:
        put(server, "Child", CHILDREN[uses])
    parent = launching("Child")
    parent["tools"].append("create_file")
    source = server.strategy(strategy(sequential("a"), a=parent))
    await watcher.ask("prepare_run", runId="r", strategyPath=str(source))
    await watcher.send("start_run", runId="r")
    used = await finish(watcher, ["deny"])
    [asked] = used.of("request_permission")
    assert (asked["toolName"], asked["operation"]) == ("launch_strategy", "fs.exec")
    assert asked["details"]["why"] == [f"it uses {uses}, which no agent of this run may"]
    assert used.output.startswith("Error (permission_denied): ")
    assert not (server.directory / "made-by-child").exists()


async def test_who_can_only_launch_may_launch_what_the_owner_put_there(
    server: RunsServer, watcher: Watcher
) -> None:
    put(server, "Child", CHILDREN["run_command"])
    parent = launching("Child")
    parent["tools"].append("read_file")
    source = server.strategy(strategy(sequential("a"), a=parent))
    await watcher.ask("prepare_run", runId="r", strategyPath=str(source))
    await watcher.send("start_run", runId="r")
    used = await finish(watcher)
    assert used.output == 'Launched "Child" → end'
    assert (server.directory / "made-by-child").exists()


async def test_what_was_allowed_above_need_not_be_asked_for_below(
    server: RunsServer, watcher: Watcher
) -> None:
    put(server, "Grandchild", CHILDREN["run_command"])
    put(server, "Child", strategy(sequential("b"), b=launching("Grandchild")))
    parent = launching("Child")
    parent["tools"].append("run_command")
    source = server.strategy(strategy(sequential("a"), a=parent))
    await watcher.ask("prepare_run", runId="r", strategyPath=str(source))
    await watcher.send("start_run", runId="r")
    assert (await finish(watcher)).output == 'Launched "Child" → end'


async def test_what_a_child_changes_is_in_the_timeline_of_its_run(
    server: RunsServer, watcher: Watcher
) -> None:
    write = {"name": "create_file", "args": {"path": "made.txt", "content": "x"}}
    child = {**scripted({"tools": [write]}, "end"), "tools": ["create_file"]}
    put(server, "Child", strategy(sequential("c"), c=child))
    parent = {**launching("Child"), "tools": ["launch_strategy", "create_file"]}
    await watcher.run(server.strategy(strategy(sequential("a"), a=parent)))
    changes = [event for event in server.timeline("r1") if event["type"] == "tool_mutation"]
    assert [(each["agentName"], each["operation"]) for each in changes] == [("c", "create")]
