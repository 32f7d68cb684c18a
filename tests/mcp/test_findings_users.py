"""What new users' agents ran into over MCP, by the number of the finding."""

import asyncio
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.mcp.support import Connect, handle, over_http, over_stdio, text
from tests.support.daemon import WAIT_SECONDS, Daemon

pytestmark = pytest.mark.anyio
LIMIT_SECONDS = 5


@pytest.fixture(scope="module")
def hurried(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Daemon]:
    """Two minutes are five seconds here."""
    directory = tmp_path_factory.mktemp("hurried")
    limits = {"STRINGD_MCP_HOLD_MS": "300", "STRINGD_BASH_TIMEOUT_MS": f"{LIMIT_SECONDS * 1000}"}
    with Daemon(directory, **limits) as running:
        yield running


async def test_2_a_build_that_is_waited_for_is_not_ended(
    hurried: Daemon, user: str, tmp_path: Path
) -> None:
    built = tmp_path / "built"
    build = f"until [ -e {built} ]; do echo line; sleep 0.1; done; echo ready"
    async with over_http("auto")(hurried, user=user) as client, asyncio.timeout(WAIT_SECONDS):
        reply = await client.call_tool("string", {"topic": "bash:b", "cmd": build})
        job = handle(reply)
        assert "unless wait is called again; each call renews that" in text(reply)
        assert "timeout='20m'" in text(reply)
        end = asyncio.get_running_loop().time() + 1.4 * LIMIT_SECONDS
        while asyncio.get_running_loop().time() < end:
            assert handle(await client.call_tool("wait", {"handle": job})) == job
        built.touch()
        while "still running after" in text(reply):
            reply = await client.call_tool("wait", {"handle": job})
    assert "exit: 0 |" in text(reply)
    assert text(reply).count("ready") == 1


async def test_2_a_command_has_the_limit_its_caller_asks_for(hurried: Daemon, user: str) -> None:
    async with over_http("auto")(hurried, user=user) as client, asyncio.timeout(WAIT_SECONDS):
        asked = {"topic": "bash:b", "cmd": "read line", "timeout": "20m"}
        reply = await client.call_tool("string", asked)
        left = text(reply).partition("It is ended in ")[2].partition(" s ")[0]
        assert 1000 < int(left) <= 1200
        ended = await client.call_tool("string", {"topic": "bash:b", "cmd": "//kill"})
        assert "exit: 1" in text(ended)
        wrong = await client.call_tool("string", {**asked, "timeout": "soon"})
        assert text(wrong).startswith("Not a timeout: soon. Write a time as 90s, 20m")


async def test_3_a_shell_of_an_agent_has_the_environment_of_its_client(
    daemon: Daemon, user: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("VIRTUAL_ENV", "/venv/of the agent")
    monkeypatch.setenv("GITHUB_TOKEN", "secret-token")
    async with over_stdio("auto")(daemon, user=user, cwd=str(tmp_path)) as client:
        asked = {"topic": "bash:b", "cmd": "echo $VIRTUAL_ENV $GITHUB_TOKEN; echo $HOME"}
        seen = text(await client.call_tool("string", asked))
    assert f"/venv/of the agent\n{daemon.directory}\n" in seen


async def test_5_the_instructions_say_where_one_is(
    daemon: Daemon, connect: Connect, user: str, tmp_path: Path
) -> None:
    (tmp_path / "README.md").write_text("# Project\n")
    async with connect(daemon, user=user, cwd=str(tmp_path)) as client:
        asked = {"topic": "file:main", "cmd": "/open README.md"}
        assert "# Project" in text(await client.call_tool("string", asked))
        said = client.instructions or ""
        assert "the directory your client works in; /ls ./ lists that one" in said
        listed = await client.call_tool("string", {"topic": "file:new", "cmd": "/ls ./"})
        assert "README.md" in text(listed)


async def test_5_a_client_on_standard_input_is_given_the_directory(
    daemon: Daemon, user: str, tmp_path: Path
) -> None:
    for connected in (over_stdio("auto"), over_stdio("legacy")):
        async with connected(daemon, user=user, cwd=str(tmp_path)) as client:
            assert (client.instructions or "").endswith(f"That directory is {tmp_path}.")


async def test_6_a_block_says_which_lines_of_the_file_it_is(
    daemon: Daemon, user: str, tmp_path: Path
) -> None:
    (tmp_path / "f.md").write_text("# A\n\nsame\n\n## B\n\nsame\nold\n")
    async with over_http("auto")(daemon, user=user, cwd=str(tmp_path)) as client:
        asked = {"topic": "file:main", "cmd": "/edit f.md#b"}
        seen = text(await client.call_tool("string", asked))
        assert "4 | old\n\n(4 lines)\n(In f.md these are L5-L8:" in seen
        asked["cmd"] = "/replace f.md:L8\nnew"
        changed = text(await client.call_tool("string", asked))
    assert "8 -│ old\n8 +│ new" in changed


async def test_7_a_long_reply_is_read_on(daemon: Daemon, user: str, tmp_path: Path) -> None:
    lines = [f"line {number} of a long file" for number in range(6000)]
    (tmp_path / "long.txt").write_text("\n".join(lines))
    async with over_http("auto")(daemon, user=user, cwd=str(tmp_path)) as client:
        asked = {"topic": "file:main", "cmd": "/open long.txt"}
        reply = text(await client.call_tool("string", asked))
        seen = reply
        while "to read on, call wait with handle" in reply:
            assert len(reply) < 41_000
            handle_ = reply.partition("call wait with handle ")[2].split('"')[1]
            reply = text(await client.call_tool("wait", {"handle": handle_}))
            seen += reply
        again = await client.call_tool("wait", {"handle": handle_})
    assert [line for line in lines if line not in seen] == []
    assert "This was the last part" in reply
    assert "Run the command again" in text(again)


@pytest.mark.parametrize(
    ("typed", "said"),
    [
        ("/serach x", "Did you mean /find?"),
        ("/opne README.md", "Did you mean /open?"),
        ("/cat README.md", "Did you mean /open?"),
        ("/run make", "A shell line goes to a bash topic"),
        ("make test", "A shell line goes to a bash topic"),
        ("/zzz", "/help lists every command."),
    ],
)
async def test_7_an_unknown_command_leads_to_the_one_that_was_meant(
    daemon: Daemon, user: str, typed: str, said: str
) -> None:
    async with over_http("auto")(daemon, user=user) as client:
        reply = await client.call_tool("string", {"topic": "file:main", "cmd": typed})
    assert said in text(reply)
    assert "/help lists every command." in text(reply)
