"""Clients send nothing to a program of another account that has taken the port."""

import socket
import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from stringd.client import AsyncRuns, AsyncString, StrangerError, String, UnreachableError
from stringd.client.gate import AsyncGate, Gate, GateStrangerError
from stringd.client.runs import RunsClient
from stringd.system.peers import kernel_can_say
from tests.requirements import proves
from tests.support.accounts import STRANGER, as_stranger, needs_root
from tests.support.commands import run
from tests.support.daemon import WAIT_SECONDS

if TYPE_CHECKING:
    import subprocess

pytestmark = needs_root
needs_socket_table = pytest.mark.skipif(not kernel_can_say(), reason="this kernel has no sock_diag")

RECORDER = """\
import select
where, family = sys.argv[1], int(sys.argv[2])
listener = socket.socket(family)
listener.bind(where if family == socket.AF_UNIX else (where, 0))
listener.listen()
print(0 if family == socket.AF_UNIX else listener.getsockname()[1], flush=True)
open_, received, accepted = [listener, sys.stdin], 0, 0
while sys.stdin in open_:
    for ready in select.select(open_, [], [])[0]:
        if ready is listener:
            open_.append(listener.accept()[0])
            accepted += 1
        elif ready is sys.stdin:
            open_.remove(ready)
        else:
            data = ready.recv(65536)
            received += len(data)
            if not data:
                open_.remove(ready)
print(accepted, received, flush=True)
"""
SAID = f"belongs to another account of this machine (uid {STRANGER}); nothing was sent"


class Recorder:
    """A listener of another account: how many connections it got, and how many bytes."""

    def __init__(self, process: "subprocess.Popen[str]") -> None:
        assert process.stdout is not None
        self.port = int(process.stdout.readline())
        self._process = process

    def end(self) -> tuple[int, int]:
        out, _ = self._process.communicate(timeout=WAIT_SECONDS)
        accepted, received = map(int, out.split())
        return accepted, received


@contextmanager
def recording(host: str = "127.0.0.1", family: int = 2) -> Iterator[Recorder]:
    with as_stranger(RECORDER, host, family) as process:
        recorder = Recorder(process)
        yield recorder
        accepted, received = recorder.end()
        assert accepted > 0, "nobody connected"
        assert received == 0


@needs_socket_table
@proves("TRUST-15")
@pytest.mark.parametrize(("host", "family"), [("127.0.0.1", 2), ("0.0.0.0", 2), ("::", 10)])
@pytest.mark.parametrize(
    "command",
    [
        ("string", "file:main", "/set {key} = secret"),
        ("string", "--daemon", "status"),
        ("string", "--daemon", "start"),
        ("string", "user", "list"),
        ("stringd", "up"),
        ("stringd", "status"),
        ("stringd", "down"),
        ("stringd", "runs"),
        ("stringd", "run", "hello"),
        ("stringd", "allow", "/tmp"),
        ("stringd", "doctor"),
    ],
    ids=" ".join,
)
def test_a_command_sends_nothing_and_says_why(
    tmp_path: Path, command: tuple[str, ...], host: str, family: int
) -> None:
    with recording(host, family) as recorder:
        env = {"HOME": str(tmp_path), "STRINGD_PORT": str(recorder.port)}
        done = run(*command, env=env)
    assert done.code == 1
    assert SAID in done.out + done.err


@needs_socket_table
@proves("TRUST-15")
def test_the_mcp_bridge_sends_nothing_and_says_why(tmp_path: Path) -> None:
    with recording() as recorder:
        env = {"HOME": str(tmp_path), "STRINGD_PORT": str(recorder.port)}
        asked = b'{"jsonrpc":"2.0","id":1,"method":"tools/list"}\n'
        done = run("stringd", "mcp", env=env, stdin=asked)
    assert SAID in done.out


@needs_socket_table
@proves("TRUST-15")
@pytest.mark.parametrize(
    "call",
    [
        lambda client: client.exec("file:main", "/set {key} = secret"),
        lambda client: client.connect(),
        lambda client: client.health(),
        lambda client: client.users(),
    ],
)
@pytest.mark.parametrize("autostart", [False, True])
def test_the_python_client_sends_nothing(call: Callable[[String], object], autostart: bool) -> None:
    with recording() as recorder:
        client = String(port=recorder.port, autostart=autostart)
        with pytest.raises(StrangerError, match="nothing was sent"):
            call(client)
        assert client.ping() is False


@needs_socket_table
@proves("TRUST-15")
@pytest.mark.anyio
async def test_the_async_client_sends_nothing() -> None:
    with recording() as recorder:
        client = AsyncString(port=recorder.port)
        calls: list[Any] = [client.exec("file:main", "/info"), client.health()]
        for call in calls:
            with pytest.raises(StrangerError, match="nothing was sent"):
                await call
        assert await client.ping() is False


@needs_socket_table
@proves("TRUST-15")
@pytest.mark.anyio
@pytest.mark.parametrize("kind", [RunsClient, AsyncRuns])
async def test_the_runs_client_sends_nothing(kind: type[RunsClient] | type[AsyncRuns]) -> None:
    with recording() as recorder, pytest.raises(UnreachableError, match="nothing was sent"):
        await kind(recorder.port).__aenter__()


@pytest.fixture
def shared() -> Iterator[Path]:
    """A directory in which another account may make a socket."""
    with tempfile.TemporaryDirectory() as directory:
        path = Path(directory)
        path.chmod(0o777)
        yield path


def test_a_request_is_not_sent_to_a_gate_of_another_account(shared: Path) -> None:
    path = str(shared / "gate.sock")
    with recording(path, socket.AF_UNIX):
        done = run("stringd", "request", "--socket", path, "--", "echo", "secret", env={})
    assert done.code == 1
    assert SAID in done.out + done.err


@pytest.mark.anyio
async def test_the_clients_of_the_gate_send_nothing(shared: Path) -> None:
    path = str(shared / "gate.sock")
    with recording(path, socket.AF_UNIX):
        with pytest.raises(GateStrangerError, match="nothing was sent"):
            Gate(path).run([["echo", "secret"]])
        with pytest.raises(GateStrangerError, match="nothing was sent"):
            await AsyncGate(path).run([["echo", "secret"]])
