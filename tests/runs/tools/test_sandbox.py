"""Commands of a run inside real walls: what they reach, and what has to be asked first."""

import asyncio
import shutil
import tempfile
from collections.abc import AsyncIterator, Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest

from stringd.runs.tools import sandbox
from stringd.system.sandbox import Level, Nothing, available
from tests.runs.support import Json, RunsServer, Watcher, sequential, serving, strategy
from tests.runs.tools.support import Used, agent, finish, use
from tests.system.sandbox.cage import canary_parent

pytestmark = [
    pytest.mark.anyio,
    pytest.mark.skipif(isinstance(available(), Nothing), reason="no walls on this machine"),
]

SECRET = "CANARY-SECRET"


@dataclass
class Scene:
    """A home with secrets and a workspace in it, outside /tmp: a sandbox has its own /tmp."""

    base: Path

    @property
    def home(self) -> Path:
        return self.base / "home"

    @property
    def work(self) -> Path:
        return self.home / "project"

    def outside(self) -> dict[str, str]:
        """Everything of the home but the workspace."""
        files = [path for path in self.home.rglob("*") if path.is_file()]
        kept = [path for path in files if not path.is_relative_to(self.work)]
        return {str(path): path.read_text("utf-8") for path in kept}


@pytest.fixture
def scene(monkeypatch: pytest.MonkeyPatch) -> Iterator[Scene]:
    parent = canary_parent()
    if parent is None:
        pytest.skip("there is no directory outside /tmp to plant canaries in")
    base = Path(tempfile.mkdtemp(prefix="stringd-canaries-", dir=parent)).resolve()
    found = Scene(base)
    try:
        for folder in (found.work, found.home / ".ssh", base / "data"):
            folder.mkdir(parents=True)
        (found.home / ".ssh" / "id_ed25519").write_text(SECRET, "utf-8")
        (found.home / "notes.txt").write_text("as it was", "utf-8")
        (base / "data" / "credentials.json").write_text("{}", "utf-8")
        monkeypatch.setenv("HOME", str(found.home))
        yield found
    finally:
        shutil.rmtree(base)


@pytest.fixture
async def server(scene: Scene) -> AsyncIterator[RunsServer]:
    async with serving(scene.base) as running:
        yield running


@pytest.fixture
async def watcher(server: RunsServer) -> Watcher:
    return await server.watcher()


async def run(
    server: RunsServer, watcher: Watcher, scene: Scene, args: Json, *decisions: str, id_: str = "r"
) -> Used:
    call = ("run_command", args)
    return await use(server, watcher, scene.work, call, decisions=decisions, run_id=id_)


async def test_an_ordinary_command_works_in_the_workspace_without_a_question(
    server: RunsServer, watcher: Watcher, scene: Scene
) -> None:
    keep = 'echo kept > "${TMPDIR:-/tmp}/kept"'
    command = f"echo made > made.txt; cat made.txt ../notes.txt; {keep}"
    used = await use(
        server,
        watcher,
        scene.work,
        ("run_command", {"command": command}),
        ("run_command", {"command": 'cat "${TMPDIR:-/tmp}/kept"'}),
    )
    assert (scene.work / "made.txt").read_text("utf-8") == "made\n"
    assert "made\nas it was" in used.outputs[0]
    assert "STDOUT:\nkept\n" in used.outputs[1]


@pytest.mark.parametrize(
    "command",
    [
        'echo x > "$HOME/notes.txt"',
        'echo x > "$HOME/new.txt"',
        'rm -f "$HOME/notes.txt"',
        'mv ../notes.txt "$HOME/gone.txt"',
        'ln "$HOME/notes.txt" ./linked && echo x > ./linked',
        "ln -s ../notes.txt l; echo x > l",
        'echo x > "$HOME/.ssh/authorized_keys"',
    ],
)
async def test_nothing_outside_the_workspace_changes(
    server: RunsServer, watcher: Watcher, scene: Scene, command: str
) -> None:
    before = scene.outside()
    used = await use(
        server, watcher, scene.work, ("run_command", {"command": command}), otherwise="allow"
    )
    assert scene.outside() == before
    assert "STATUS: FAILED" in used.output


async def test_secrets_and_the_daemons_own_files_are_absent(
    server: RunsServer, watcher: Watcher, scene: Scene
) -> None:
    command = f"cat ~/.ssh/id_ed25519 {scene.base}/data/credentials.json; ls {scene.base}/data; env"
    used = await run(server, watcher, scene, {"command": command})
    assert SECRET not in used.output
    assert "credentials.json\n" not in used.output.partition("STDERR:")[0]


async def test_the_network_is_asked_for_and_then_there(
    server: RunsServer, watcher: Watcher, scene: Scene
) -> None:
    visits: list[bytes] = []

    async def record(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        visits.append(await reader.readline())
        writer.close()

    recorder = await asyncio.start_server(record, "127.0.0.1", 0)
    async with recorder:
        port = recorder.sockets[0].getsockname()[1]
        args: Json = {"command": f"echo hello > /dev/tcp/127.0.0.1/{port}"}
        used = await run(server, watcher, scene, args)
        assert "STATUS: FAILED" in used.output
        assert used.output.endswith(
            "To ask for one, call again with network: and the hosts it needs."
        )
        assert visits == []
        args |= {"network": True, "reason": "to greet"}
        used = await run(server, watcher, scene, args, "deny", id_="no")
        assert visits == []
        used = await run(server, watcher, scene, args, "allow", id_="yes")
        assert "STATUS: SUCCESS" in used.output
        assert visits == [b"hello\n"]
    details = used.of("request_permission")[0]["details"]
    assert (details["sandbox"], details["network"]) == ("workspace", "open")
    assert details["why"] == ["it asks for the network: to greet"]


ASK = (
    "for port in {ports}; do exec 3<>/dev/tcp/127.0.0.1/${{http_proxy##*:}}; "
    "printf 'GET http://127.0.0.1:%s/ HTTP/1.1\\r\\n\\r\\n' $port >&3; cat <&3; done; exit 1"
)


async def test_named_hosts_are_asked_for_and_no_other_is_reached(
    server: RunsServer, watcher: Watcher, scene: Scene
) -> None:
    visits: list[bytes] = []

    async def record(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        visits.append(await reader.readline())
        writer.write(b"HTTP/1.1 200 OK\r\nConnection: close\r\n\r\nwelcome\n")
        writer.close()

    async with (
        await asyncio.start_server(record, "127.0.0.1", 0) as listed,
        await asyncio.start_server(record, "127.0.0.1", 0) as other,
    ):
        host, closed = (f"{each.sockets[0].getsockname()[1]}" for each in (listed, other))
        command = ASK.format(ports=f"{host} {closed}")
        args: Json = {"command": command, "network": [f"127.0.0.1:{host}"], "reason": "to greet"}
        used = await run(server, watcher, scene, args, "deny", id_="no")
        assert visits == []
        used = await run(server, watcher, scene, args, "allow", id_="yes")
    assert "welcome" in used.output
    assert visits == [b"GET / HTTP/1.1\r\n"]
    assert f"NOTE: It asked for 127.0.0.1:{closed}, which is not on its list" in used.output
    details = used.of("request_permission")[0]["details"]
    assert details["network"] == f"127.0.0.1:{host}"
    assert details["why"][0] == f"it asks to reach 127.0.0.1:{host}: to greet"


async def test_a_host_that_is_not_one_is_said_before_anybody_is_asked(
    server: RunsServer, watcher: Watcher, scene: Scene
) -> None:
    args: Json = {"command": "true", "network": ["https://example.com/x"]}
    used = await run(server, watcher, scene, args)
    assert '"https://example.com/x" is not a host: write example.com' in used.output
    assert used.of("request_permission") == []


async def test_leaving_the_sandbox_is_a_question_of_its_own(
    server: RunsServer, watcher: Watcher, scene: Scene
) -> None:
    args: Json = {"command": 'echo x > "$HOME/new.txt"'}
    used = await run(server, watcher, scene, args)
    assert 'call again with sandbox: "open" and a reason' in used.output
    leaving = {**args, "sandbox": "open", "reason": "it belongs there"}
    used = await run(server, watcher, scene, leaving, "deny", id_="no")
    assert not (scene.home / "new.txt").exists()
    details = used.of("request_permission")[0]["details"]
    assert details["why"] == ["it asks to run outside the sandbox: it belongs there"]
    await run(server, watcher, scene, leaving, "allow", id_="yes")
    assert (scene.home / "new.txt").read_text("utf-8") == "x\n"


async def test_a_grant_counts_for_the_same_command_place_variables_and_reach_only(
    server: RunsServer, watcher: Watcher, scene: Scene
) -> None:
    (scene.work / "sub").mkdir()
    same: Json = {"command": "true", "sandbox": "open"}
    others: list[Json] = [
        {**same, "cwd": "sub"},
        {**same, "env": {"A": "1"}},
        {"command": "true", "network": True},
        {"command": "true ", "sandbox": "open"},
    ]
    calls = [("run_command", args) for args in (same, same, {**same, "cwd": "./"}, *others)]
    decisions = ["allow-session", *(["deny"] * len(others))]
    used = await use(server, watcher, scene.work, *calls, decisions=decisions)
    assert len(used.of("request_permission")) == 1 + len(others)


async def test_a_strategy_narrows_its_commands_and_a_setting_opens_them(scene: Scene) -> None:
    write: Json = {"command": "echo x > here.txt"}
    async with serving(scene.base, sandbox=Level.READ_ONLY) as server:
        watcher = await server.watcher()
        used = await run(server, watcher, scene, write)
        assert "STATUS: FAILED" in used.output
        used = await run(
            server, watcher, scene, {**write, "sandbox": "workspace"}, "allow", id_="w"
        )
        assert "STATUS: SUCCESS" in used.output
    outside: Json = {"command": 'echo x > "$HOME/new.txt"'}
    async with serving(scene.base, sandbox=Level.OPEN) as server:
        watcher = await server.watcher()
        used = await run(server, watcher, scene, outside, id_="o")
        assert "STATUS: SUCCESS" in used.output


async def test_without_walls_the_question_says_so(
    scene: Scene, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def none() -> Nothing:
        return Nothing("Nothing here")

    monkeypatch.setattr(sandbox, "find_available", none)
    async with serving(scene.base, approve_commands=["^touch"]) as server:
        watcher = await server.watcher()
        used = await run(server, watcher, scene, {"command": "echo plainly safe"})
        assert "STATUS: SUCCESS" in used.output
        used = await run(server, watcher, scene, {"command": "touch x"}, "deny", id_="asked")
        assert used.of("request_permission")[0]["details"]["sandbox"] == "none"


def test_levels_are_ordered() -> None:
    assert sandbox.narrowest(Level.OPEN, Level.READ_ONLY, Level.WORKSPACE) is Level.READ_ONLY
    assert sandbox.is_wider(Level.OPEN, Level.WORKSPACE)
    assert not sandbox.is_wider(Level.READ_ONLY, Level.READ_ONLY)


async def test_our_own_places_stay_as_they_are_where_the_home_is_the_workspace(
    server: RunsServer, watcher: Watcher, scene: Scene
) -> None:
    """A page written there would count as the user's, and a list of trust as the owner's word."""
    (scene.home / ".string" / "users").mkdir(parents=True)
    line = "cd ~/.string; touch trust.json users/page.md; mkdir apps; mv ~/.string ~/moved"
    await use(server, watcher, scene.home, ("run_command", {"command": f"touch ~/ran; {line}"}))
    assert (scene.home / "ran").exists()
    assert [path.name for path in (scene.home / ".string").rglob("*")] == ["users"]


async def test_the_sandbox_key_of_a_strategy_narrows_and_cannot_widen(
    server: RunsServer, watcher: Watcher, scene: Scene
) -> None:
    write = agent(("run_command", {"command": "echo x > here.txt"}))
    source = {**strategy(sequential("a"), a=write), "sandbox": "read-only"}
    path = str(server.strategy(source, "narrow.yaml"))
    await watcher.ask("prepare_run", runId="n", strategyPath=path, cwd=str(scene.work))
    await watcher.send("start_run", runId="n")
    used = await finish(watcher, run_id="n")
    assert "STATUS: FAILED" in used.output
    assert not (scene.work / "here.txt").exists()
    wide = str(server.strategy({**source, "sandbox": "open"}, "wide.yaml"))
    answer = await watcher.ask("prepare_run", runId="w", strategyPath=wide, cwd=str(scene.work))
    assert answer["type"] == "error"


async def test_a_command_of_a_template_stays_behind_the_walls_of_its_run(scene: Scene) -> None:
    seen = scene.work / "seen"
    command = (
        f"grep Seccomp: /proc/self/status >{seen}; cat {scene.home}/.ssh/id_ed25519 >>{seen}; "
        f"echo x >{scene.home}/notes.txt; echo said"
    )
    template = {"template": f"{{{{ '{command}' | exec }}}}"}
    before = scene.outside()
    async with serving(scene.base, template_filters=frozenset({"exec"})) as server:
        watcher = await server.watcher()
        call = ("run_command", {"command": "true"})
        source = strategy(sequential("a"), a=agent(call, systemPromptTemplate=template))
        path = server.strategy(source, "r.yaml")
        server.trust(path)
        await watcher.ask("prepare_run", runId="r", strategyPath=str(path), cwd=str(scene.work))
        await watcher.send("start_run", runId="r")
        await finish(watcher)
    assert seen.read_text("utf-8").split() == ["Seccomp:", "2"]
    assert scene.outside() == before
