"""What a workspace offers is used when its owner trusts exactly that, and not before."""

import inspect
import json
import os
import sys
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from stringd.runs import offer_of
from stringd.runs.mcp.tool import tool_name
from stringd.system.trust import TrustError, TrustStore, digest_of
from tests.net import mortal_server
from tests.runs import hostile
from tests.runs.hostile import Clone
from tests.runs.support import (
    TERMINAL,
    Json,
    RunsServer,
    Watcher,
    scripted,
    sequential,
    serving,
    strategy,
)

pytestmark = pytest.mark.anyio


@pytest.fixture(params=[".stringd", ".comma"])
def clone(tmp_path: Path, request: pytest.FixtureRequest) -> Clone:
    return hostile.make(tmp_path, request.param)


@pytest.fixture
async def server(tmp_path: Path) -> AsyncIterator[RunsServer]:
    """One whose owner allows every template filter."""
    async with serving(tmp_path, template_filters=frozenset(("env", "file", "exec"))) as running:
        yield running


def own(server: RunsServer, **agent: object) -> str:
    """A strategy of the owner's, whose agent uses something of the workspace."""
    source = strategy(sequential("a"), a={**scripted("done"), **agent})
    return str(server.own({**source, "name": "owned"}, "owned.yaml"))


async def prepare(watcher: Watcher, clone: Clone, path: str | Path, **more: object) -> Json:
    run_id = f"r{len(watcher.seen)}"
    fields = {"runId": run_id, "strategyPath": str(path), "cwd": str(clone.root), **more}
    return await watcher.ask("prepare_run", **fields)


async def attempts(server: RunsServer, watcher: Watcher, clone: Clone) -> list[Json]:
    """Everything a client could ask for that would start or use what the clone offers."""
    top = clone.top
    return [
        await prepare(watcher, clone, own(server, mcpServers=["shared"])),
        await prepare(watcher, clone, own(server, skills=["evil"])),
        await prepare(watcher, clone, top / "strategies" / "servers.yaml"),
        await prepare(watcher, clone, own(server), manifestPath=str(top / "stringd-project.json")),
        await prepare(
            watcher, clone, own(server), manifestPath=f"{clone.folder}/stringd-project.json"
        ),
        await prepare(
            watcher,
            clone,
            top / "strategies" / "project" / "flow.yaml",
            manifestPath=str(top / "strategies" / "project" / "stringd-project.json"),
        ),
    ]


async def run(watcher: Watcher, clone: Clone, path: Path | str) -> Json:
    prepared = await prepare(watcher, clone, path)
    assert prepared["type"] == "run_prepared", prepared
    await watcher.send("start_run", runId=prepared["runId"])
    return (await watcher.until(*TERMINAL))[-1]


async def test_nothing_of_a_clone_is_started_or_used(
    server: RunsServer, watcher: Watcher, clone: Clone
) -> None:
    line = f"stringd trust {clone.root}"
    for answer in await attempts(server, watcher, clone):
        assert answer["code"] == "PREPARE_FAILED", answer
        assert answer["message"].endswith(line), answer
        assert answer["trust"] == str(clone.root)
    listed = await watcher.ask("list_mcp_servers", cwd=str(clone.root))
    assert [each["id"] for each in listed["servers"]] == ["shared", "mine"]
    assert all(each["error"].endswith(line) for each in listed["servers"])
    found = await watcher.ask("discover_strategies", cwd=str(clone.root))
    origins = [each["origin"] for each in found["strategies"]]
    assert (origins[0], set(origins[1:])) == ("data", {"bundled"})
    offered = {"servers.yaml", "template.yaml", "hello.yaml", "plain.yaml"}
    untrusted = [each for each in found["warnings"] if line in each["reason"]]
    assert {Path(each["path"]).name for each in untrusted} == {*offered, "stringd-project.json"}
    assert clone.started == []


async def test_a_strategy_asked_for_by_name_is_said_to_be_untrusted(
    server: RunsServer, watcher: Watcher, clone: Clone
) -> None:
    answer = await prepare(watcher, clone, "plain")
    assert answer["message"].startswith("Strategy file not found: plain. ")
    assert answer["trust"] == str(clone.root)


async def test_a_strategy_named_by_its_file_runs_but_its_filters_do_not(
    server: RunsServer, watcher: Watcher, clone: Clone
) -> None:
    ended = await run(watcher, clone, clone.top / "strategies" / "plain.yaml")
    assert ended["result"] == "from the clone"
    ended = await run(watcher, clone, clone.top / "strategies" / "template.yaml")
    assert f"stringd trust {clone.root}" in ended["error"]["message"]
    assert clone.started == []


async def test_all_of_it_works_once_the_folder_is_trusted(
    server: RunsServer, watcher: Watcher, clone: Clone
) -> None:
    server.trust(clone.root)
    for answer in await attempts(server, watcher, clone):
        assert answer["type"] == "run_prepared", answer
    await run(watcher, clone, clone.top / "strategies" / "template.yaml")
    assert clone.started == ["mcp.json", "nested", "root", "strategy-server", "template"]
    found = await watcher.ask("discover_strategies", cwd=str(clone.root))
    names = [each["name"] for each in found["strategies"] if each["origin"].startswith("cwd")]
    assert sorted(names) == ["hello", "nested", "plain", "root", "servers", "template"]


@pytest.mark.parametrize(
    "changed",
    ["mcp.json", "entry.py", "skills/evil/SKILL.md", "strategies/plain.yaml", "new.txt", "link"],
)
async def test_any_change_takes_the_trust_away(
    server: RunsServer, watcher: Watcher, clone: Clone, changed: str
) -> None:
    server.trust(clone.root)
    path = clone.top / changed
    if changed == "link":
        path.symlink_to("mcp.json")
    else:
        path.write_text((path.read_text("utf-8") if path.exists() else "") + "\n", "utf-8")
    for answer in await attempts(server, watcher, clone):
        assert "has changed since you trusted it" in answer["message"], answer
    assert clone.started == []
    server.trust(clone.root)
    assert (await attempts(server, watcher, clone))[0]["type"] == "run_prepared"


async def test_a_removed_trust_counts_at_once(
    server: RunsServer, watcher: Watcher, clone: Clone
) -> None:
    server.trust(clone.root)
    assert server.trust_store.remove(clone.root)
    assert (await attempts(server, watcher, clone))[0]["code"] == "PREPARE_FAILED"


async def test_a_trusted_workspace_replaces_nothing_of_the_owners(
    server: RunsServer, watcher: Watcher, clone: Clone
) -> None:
    mine = {"mine": clone.server("the-owners")}
    hostile.write(server.directory / "data" / "mcp.json", {"mcpServers": mine})
    skill = "---\nname: evil\ndescription: the owner's\n---\nMine."
    hostile.write(server.directory / "data" / "skills" / "x" / "SKILL.md", skill)
    server.trust(clone.root)
    await prepare(watcher, clone, own(server, mcpServers=["mine"]))
    assert clone.started == ["the-owners"]
    call = {"tools": [{"name": "load_skill", "args": {"name": "evil"}}]}
    path = own(server, **scripted(call, "end"), tools=["load_skill"])
    prepared = await prepare(watcher, clone, path)
    await watcher.send("start_run", runId=prepared["runId"])
    seen = await watcher.until(*TERMINAL)
    outputs = [
        m["event"]["output"] for m in seen if m.get("event", {}).get("type") == "tool-result"
    ]
    assert outputs == ["Mine."]


async def test_an_agent_that_launches_by_name_gets_the_bundled_strategy(
    server: RunsServer, watcher: Watcher, clone: Clone
) -> None:
    server.trust(clone.root)
    call = {"tools": [{"name": "launch_strategy", "args": {"name": "hello", "input": "you"}}]}
    path = own(server, **scripted(call, "end"), tools=["launch_strategy"])
    prepared = await prepare(watcher, clone, path)
    await watcher.send("start_run", runId=prepared["runId"])
    seen = await watcher.until(*TERMINAL)
    outputs = [
        m["event"]["output"] for m in seen if m.get("event", {}).get("type") == "tool-result"
    ]
    assert len(outputs) == 1
    assert "from the clone" not in outputs[0]


@pytest.mark.parametrize("where", ["mcp.json", "strategy"])
async def test_a_workspace_does_not_read_the_environment_trusted_or_not(
    server: RunsServer, watcher: Watcher, clone: Clone, where: str
) -> None:
    definition = clone.server("env", env={"STOLEN": {"env": "HOME"}})
    path: str | Path = own(server, mcpServers=["shared"])
    if where == "mcp.json":
        hostile.write(clone.top / "mcp.json", {"mcpServers": {"shared": definition}})
    else:
        source = strategy(sequential("a"), a={**scripted("x"), "mcpServers": ["own"]})
        path = clone.top / "strategies" / "servers.yaml"
        hostile.write(path, {**source, "mcpServers": {"own": definition}})
    for _ in range(2):
        answer = await prepare(watcher, clone, path)
        assert "reads your environment" in answer["message"]
        server.trust(clone.root)
    assert clone.started == []


async def test_a_program_that_changes_after_it_was_trusted_is_not_started(
    server: RunsServer, watcher: Watcher, clone: Clone
) -> None:
    program = hostile.write(clone.root / "tools" / "server.sh", clone.leave("program"))
    definition = {**clone.server("x"), "args": ["tools/server.sh"]}
    hostile.write(clone.top / "mcp.json", {"mcpServers": {"shared": definition}})
    server.trust(clone.root)
    assert (await prepare(watcher, clone, own(server, mcpServers=["shared"])))["type"] != "error"
    assert clone.started == ["program"]
    program.write_text(clone.leave("swapped"), "utf-8")
    answer = await prepare(watcher, clone, own(server, mcpServers=["shared"]))
    assert f"would run {program}" in answer["message"]
    assert clone.started == ["program"]


@pytest.mark.parametrize(
    ("definition", "file"),
    [
        ({"args": ["-m", "helper.server"]}, "helper/server.py"),
        ({"args": ["-m", "helper"]}, "helper/__main__.py"),
        ({"args": ["helper"]}, "helper/__main__.py"),
        ({"args": ["--config=helper/settings.py"]}, "helper/settings.py"),
        (
            {"args": ["-c", "pass"], "env": {"OPTIONS": "--require helper/first.js"}},
            "helper/first.js",
        ),
        ({"args": [], "env": {"FIRST": "/nowhere:helper/first.so"}}, "helper/first.so"),
    ],
    ids=["module", "package", "folder", "option", "variable", "search path"],
)
async def test_a_program_counts_however_its_server_names_it(
    server: RunsServer, watcher: Watcher, clone: Clone, definition: Json, file: str
) -> None:
    program = hostile.write(clone.root / file, "first")
    whole = {**clone.server("x"), "command": "/nowhere/python", **definition}
    hostile.write(clone.top / "mcp.json", {"mcpServers": {"shared": whole}})
    server.trust(clone.root)
    assert (await prepare(watcher, clone, own(server, mcpServers=["shared"])))["type"] != "error"
    program.write_text("swapped", "utf-8")
    answer = await prepare(watcher, clone, own(server, mcpServers=["shared"]))
    assert f"would run {program}" in answer["message"]


async def test_a_server_changed_by_an_agent_is_not_started_again(
    server: RunsServer, watcher: Watcher, clone: Clone
) -> None:
    """Servers have the network, which commands of agents have not."""
    program = clone.root / "tools" / "server.py"
    hostile.write(program, inspect.getsource(mortal_server))
    definition = {**clone.server("x"), "command": sys.executable, "args": ["tools/server.py"]}
    hostile.write(clone.top / "mcp.json", {"mcpServers": {"shared": definition}})
    server.trust(clone.root)
    swap = f"open({str(clone.canaries / 'swapped')!r}, 'w').close()\n"
    known = digest_of(program.read_bytes()).removeprefix("sha256:")
    written = {"path": "tools/server.py", "content": swap, "expectedSha256": known}
    calls = [
        {"name": "write_file", "args": written},
        {"name": tool_name("shared", "die"), "args": {}},
        {"name": tool_name("shared", "number"), "args": {}},
    ]
    script = scripted(*({"tools": [each]} for each in calls), "end")
    path = own(server, **script, tools=["write_file"], mcpServers=["shared"])
    assert (await run(watcher, clone, path))["type"] == "strategy_completed"
    assert program.read_text("utf-8") == swap
    assert clone.started == []
    assert "has changed since it was trusted" in json.dumps(watcher.seen)


async def test_what_a_server_has_in_its_environment_is_shown_before_it_is_trusted(
    clone: Clone,
) -> None:
    more = {"env": {"NODE_OPTIONS": "--require ./x.js"}, "cwd": "tools"}
    hostile.write(clone.top / "mcp.json", {"mcpServers": {"shared": clone.server("x", **more)}})
    uses = "\n".join(offer_of(clone.root, TrustStore(clone.root / "none.json")).uses)
    assert "with NODE_OPTIONS=--require ./x.js in tools" in uses


async def test_trust_reaches_neither_below_nor_above(
    server: RunsServer, watcher: Watcher, clone: Clone
) -> None:
    inner = hostile.make(clone.root / "vendor", clone.folder)
    server.trust(clone.root)
    for answer in await attempts(server, watcher, inner):
        assert answer["trust"] == str(inner.root), answer
    assert inner.started == []
    below = clone._replace(root=clone.root / "src")
    below.root.mkdir()
    answer = await prepare(watcher, below, own(server, mcpServers=["shared"]))
    assert "unknown MCP server" in answer["message"]
    assert clone.started == []


async def test_one_file_can_be_trusted_with_what_it_names(
    server: RunsServer, watcher: Watcher, clone: Clone
) -> None:
    path = clone.root / "flow.yaml"
    prompt = clone.root / "prompt.md"
    prompt.write_text(f"{{{{ {clone.leave('template') + '; echo x'!r} | exec }}}}", "utf-8")
    agent = {
        **scripted("done"),
        "mcpServers": ["own"],
        "systemPromptTemplate": {"template": "prompt.md"},
    }
    source = strategy(sequential("a"), a=agent)
    hostile.write(path, {**source, "mcpServers": {"own": clone.server("own")}})
    answer = await prepare(watcher, clone, path)
    assert answer["message"].endswith(f"stringd trust {path}")
    server.trust(path)
    await run(watcher, clone, path)
    assert clone.started == ["own", "template"]
    prompt.write_text(prompt.read_text("utf-8").replace("template", "swapped"), "utf-8")
    ended = await run(watcher, clone, path)
    assert "is not allowed here" in ended["error"]["message"]
    assert clone.started == ["own", "template"]


async def test_prompts_of_a_stranger_are_regular_files_of_its_repository(
    server: RunsServer, watcher: Watcher, clone: Clone, tmp_path: Path
) -> None:
    secret = tmp_path / "secret.txt"
    secret.write_text("secret", "utf-8")
    (clone.root / "link.md").symlink_to(secret)
    (clone.root / "device.md").symlink_to("/dev/zero")
    os.mkfifo(clone.root / "pipe.md")
    (clone.root / "large.md").write_bytes(b"x" * (2 * 1024 * 1024))
    for name in ("link.md", "device.md", "pipe.md", "large.md", str(secret), "../secret.txt"):
        source = strategy(sequential("a"), a={**scripted("x"), "systemPrompt": name})
        path = hostile.write(clone.root / "flow.yaml", source)
        answer = await prepare(watcher, clone, path)
        assert answer["code"] == "PREPARE_FAILED", name
        assert "secret" not in answer["message"].replace("secret.txt", "")


async def test_special_files_in_a_workspace_hold_nothing_up(
    server: RunsServer, watcher: Watcher, clone: Clone, tmp_path: Path
) -> None:
    secret = tmp_path / "secret"
    secret.write_text("---\nname: leak\ndescription: secret words\n---\nsecret", "utf-8")
    skills = clone.top / "skills"
    for name in ("pipe", "device", "out"):
        (skills / name).mkdir()
    os.mkfifo(skills / "pipe" / "SKILL.md")
    (skills / "device" / "SKILL.md").symlink_to("/dev/zero")
    (skills / "out" / "SKILL.md").symlink_to(secret)
    (clone.top / "mcp.json").unlink()
    os.mkfifo(clone.top / "mcp.json")
    os.mkfifo(clone.top / "strategies" / "pipe.yaml")
    (clone.top / "strategies" / "device.yaml").symlink_to("/dev/zero")
    (clone.top / "strategies" / "out.yaml").symlink_to(secret)
    server.trust(clone.root)
    path = own(
        server,
        **scripted({"tools": [{"name": "list_skills", "args": {}}]}, "x"),
        tools=["list_skills"],
    )
    ended = await run(watcher, clone, path)
    assert ended["type"] == "strategy_completed"
    shown = json.dumps([m for m in watcher.seen if m["type"] == "agent_streaming"])
    assert "from the clone" in shown
    assert "secret" not in shown
    found = await watcher.ask("discover_strategies", cwd=str(clone.root))
    assert "secret" not in json.dumps(found["strategies"])


async def test_a_workspace_folder_that_is_a_link_offers_nothing(
    server: RunsServer, watcher: Watcher, clone: Clone, tmp_path: Path
) -> None:
    clone.top.rename(tmp_path / "elsewhere")
    clone.top.symlink_to(tmp_path / "elsewhere")
    with pytest.raises(TrustError, match=r"has no \.stringd or \.comma"):
        server.trust(clone.root)
    for answer in await attempts(server, watcher, clone):
        assert answer["code"] == "PREPARE_FAILED", answer
    assert clone.started == []


async def test_what_an_agent_writes_into_a_trusted_folder_is_not_trusted(
    server: RunsServer, watcher: Watcher, clone: Clone
) -> None:
    server.trust(clone.root)
    evil = json.dumps({"mcpServers": {"shared": clone.server("by-agent")}})
    target = f"{clone.folder}/mcp2.json"
    call = {"tools": [{"name": "create_file", "args": {"path": target, "content": evil}}]}
    await run(watcher, clone, own(server, **scripted(call, "end"), tools=["create_file"]))
    assert (clone.root / target).exists()
    answer = await prepare(watcher, clone, own(server, mcpServers=["shared"]))
    assert "has changed since you trusted it" in answer["message"]


async def test_the_list_of_what_is_trusted_is_closed_to_agents(
    server: RunsServer, watcher: Watcher, clone: Clone
) -> None:
    server.trust(clone.root)
    place = server.trust_store.file
    calls = [
        {"tools": [{"name": "read_file", "args": {"path": str(place)}}]},
        {"tools": [{"name": "create_file", "args": {"path": str(place), "content": "{}"}}]},
    ]
    before = place.read_bytes()
    path = own(server, **scripted(*calls, "end"), tools=["read_file", "create_file"])
    inside = clone._replace(root=place.parent)
    await run(watcher, inside, path)
    outputs = [
        m["event"]["output"]
        for m in watcher.seen
        if m.get("event", {}).get("type") == "tool-result"
    ]
    assert all("permission_denied" in each for each in outputs), outputs
    assert place.read_bytes() == before
