"""The sandbox of MCP servers: secrets hidden, the workspace writable, the network there."""

import asyncio
import shutil
import subprocess
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from stringd.net.mcp_walls import ServerWalls, enclosed_server, proxy_for, server_network
from stringd.system.sandbox import Level, Nothing, available
from tests.support.daemon import WAIT_SECONDS
from tests.system.sandbox.cage import canary_parent

pytestmark = pytest.mark.skipif(isinstance(available(), Nothing), reason="no walls on this machine")

SCRIPT = """
cat ~/.ssh/key "$1/data/secret"
echo x > "$1/work/made" && echo wrote work
echo x > "$1/named/made" && echo wrote named
echo x > "$1/other/made" && echo wrote other
true
"""


@pytest.fixture
def base(monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    parent = canary_parent()
    if parent is None:
        pytest.skip("there is no directory outside /tmp to plant canaries in")
    base = Path(tempfile.mkdtemp(prefix="stringd-canaries-", dir=parent)).resolve()
    try:
        for name in ("home/.ssh", "data", "work", "named", "other"):
            (base / name).mkdir(parents=True)
        (base / "home/.ssh/key").write_text("CANARY\n", "utf-8")
        (base / "data/secret").write_text("CANARY\n", "utf-8")
        monkeypatch.setenv("HOME", str(base / "home"))
        yield base
    finally:
        shutil.rmtree(base)


def output(base: Path, level: Level, *, owned: bool) -> list[str]:
    walls = ServerWalls(level, (base / "work",), (base / "data",), owned)
    command = ("/bin/bash", "-c", SCRIPT, "server", str(base), str(base / "named"))
    started = enclosed_server(walls, command, {"PATH": "/usr/bin:/bin"})
    done = subprocess.run(
        started.argv,
        env={**started.environment, "HOME": str(base / "home")},
        cwd=base / "work",
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        text=True,
        timeout=WAIT_SECONDS,
        check=True,
    )
    return done.stdout.splitlines()


def test_a_server_of_somebody_elses_definition_changes_the_workspace_only(base: Path) -> None:
    assert output(base, Level.WORKSPACE, owned=False) == ["wrote work"]
    assert output(base, Level.READ_ONLY, owned=False) == []


def test_what_the_owner_names_is_writable_and_secrets_stay_hidden(base: Path) -> None:
    found = output(base, Level.WORKSPACE, owned=True)
    assert found == ["wrote work", "wrote named", "wrote other"]


def test_an_open_server_has_no_walls(base: Path) -> None:
    assert "CANARY" in output(base, Level.OPEN, owned=True)


def test_a_program_beside_the_server_is_found_from_its_directory(base: Path) -> None:
    program = base / "work/bin/server"
    program.parent.mkdir()
    program.write_text("#!/bin/sh\necho started\n", "utf-8")
    program.chmod(0o755)
    walls = ServerWalls(Level.WORKSPACE, (base / "work",))
    environment = {"PATH": "/usr/bin:/bin"}
    started = enclosed_server(walls, ("bin/server",), environment, base / "work")
    done = subprocess.run(
        started.argv,
        env=started.environment,
        cwd=base / "work",
        capture_output=True,
        text=True,
        timeout=WAIT_SECONDS,
        check=True,
    )
    assert done.stdout == "started\n"


ASKING = """
printf 'GET http://127.0.0.1:%s/ HTTP/1.1\\r\\n\\r\\n' "$1" > request
if [ -n "$http_proxy" ]; then exec 3<>/dev/tcp/127.0.0.1/${http_proxy##*:}
else exec 3<>/dev/tcp/127.0.0.1/$1; fi 2>/dev/null || { echo nothing; exit; }
cat request >&3; head -1 <&3
"""


@pytest.mark.anyio
@pytest.mark.parametrize(
    ("network", "answer"), [("none", "nothing"), (["127.0.0.1:{}"], "200"), (["a.test"], "403")]
)
async def test_a_server_reaches_the_hosts_its_definition_names(
    base: Path, network: str | list[str], answer: str
) -> None:
    async def welcome(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.readline()
        writer.write(b"HTTP/1.1 200 OK\r\nConnection: close\r\n\r\n")
        writer.close()

    async with await asyncio.start_server(welcome, "127.0.0.1", 0) as server:
        port = server.sockets[0].getsockname()[1]
        named = network if isinstance(network, str) else [each.format(port) for each in network]
        walls = ServerWalls(Level.WORKSPACE, (base / "work",), network=server_network(named))
        proxy = proxy_for(walls)
        command = ("/bin/bash", "-c", ASKING, "server", str(port))
        started = await asyncio.to_thread(
            enclosed_server,
            walls,
            command,
            {"PATH": "/usr/bin:/bin"},
            base / "work",
            proxy.way_out if proxy else None,
        )
        process = await asyncio.create_subprocess_exec(
            *started.argv, env=started.environment, cwd=base / "work", stdout=-1
        )
        said, _ = await asyncio.wait_for(process.communicate(), WAIT_SECONDS)
        if proxy:
            await proxy.close()
    assert answer in said.decode()


def test_a_missing_program_is_told_before_the_walls_are_made() -> None:
    with pytest.raises(FileNotFoundError):
        enclosed_server(ServerWalls(Level.WORKSPACE), ("no-such-program",), {})
