"""What runs in a sandbox with the network does not get out of it through the daemon's ports."""

import asyncio
import os
import shlex
import sys
from contextlib import nullcontext
from pathlib import Path

import pytest
import yaml

from stringd.system.peers import kernel_can_say
from stringd.system.sandbox import Nothing, available
from tests.requirements import proves
from tests.runs.support import scripted, sequential, strategy, watching
from tests.support.daemon import WAIT_SECONDS, Daemon, free_port
from tests.support.http import request

pytestmark = [
    pytest.mark.anyio,
    pytest.mark.skipif(not kernel_can_say(), reason="this kernel has no sock_diag"),
    pytest.mark.skipif(isinstance(available(), Nothing), reason="no walls on this machine"),
]

INSIDE = """\
import socket, sys
port, way = int(sys.argv[1]), sys.argv[2]
connection = socket.create_connection(("127.0.0.1", port))
connection.sendall(b"GET /ws HTTP/1.1\\r\\nHost: 127.0.0.1\\r\\nConnection: close\\r\\n\\r\\n")
if way == "in flight":
    here, there = socket.socketpair()
    socket.send_fds(here, [b"x"], [connection.fileno()])
    connection.close()
    there.recv(1, socket.MSG_PEEK)
    _, [held], _, _ = socket.recv_fds(there, 1, 1)
    connection = socket.socket(fileno=held)
answer = b""
while chunk := connection.recv(65536):
    answer += chunk
report = socket.create_connection(("127.0.0.1", int(sys.argv[3])))
report.sendall(answer)
report.shutdown(socket.SHUT_WR)
report.recv(1)
"""
# The one of a virtual environment may be where a sandbox has files of its own.
PYTHON = os.path.realpath(sys.executable)


@proves("TRUST-12")
@pytest.mark.parametrize(
    ("door", "way"),
    [
        ("port", "held"),
        ("port", "in flight"),
        ("runs port", "held"),
        ("another daemon", "held"),
        ("another daemon", "in flight"),
    ],
)
async def test_a_sandbox_with_the_network_is_refused_and_others_are_not(
    tmp_path: Path, door: str, way: str
) -> None:
    work = tmp_path / "work"
    work.mkdir()
    (work / "inside.py").write_text(INSIDE, "utf-8")
    runs_port = free_port()
    reported = asyncio.Queue[tuple[asyncio.StreamReader, asyncio.StreamWriter]]()
    desk = await asyncio.start_server(lambda *ends: reported.put_nowait(ends), "127.0.0.1", 0)
    told = desk.sockets[0].getsockname()[1]
    other = Daemon(tmp_path / "other", HOME=str(tmp_path))
    with (
        Daemon(tmp_path, "--runs-port", str(runs_port)) as daemon,
        other if door == "another daemon" else nullcontext(),
    ):
        asked_daemon = other if door == "another daemon" else daemon
        port = runs_port if door == "runs port" else asked_daemon.port
        line = shlex.join([PYTHON, "-I", "inside.py", str(port), way, str(told)])
        call = {"name": "run_command", "args": {"command": line, "network": True}}
        agent = {**scripted({"tools": [call]}, "done"), "tools": ["run_command"]}
        path = tmp_path / "s.yaml"
        path.write_text(yaml.safe_dump(strategy(sequential("a"), a=agent)), "utf-8")
        async with watching(daemon.port) as owner, asyncio.timeout(WAIT_SECONDS):
            await owner.ask("prepare_run", runId="r", strategyPath=str(path), cwd=str(work))
            await owner.send("start_run", runId="r")
            asked = (await owner.until("request_permission"))[-1]["requestId"]
            decision = {"permissionRequestId": asked, "decision": "allow"}
            await owner.send("permission_decision", runId="r", **decision)
            reader, writer = await reported.get()
            answer = await reader.read()
            outside = await asyncio.to_thread(request, asked_daemon.port, "GET", "/sessions")
            writer.close()
            await owner.ended()
    desk.close()
    assert answer.startswith(b"HTTP/1.1 403 ")
    assert b"sandbox" in answer
    assert outside.status != 403
