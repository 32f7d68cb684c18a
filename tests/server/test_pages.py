"""Pages of this machine speak for whoever serves them, whatever browser shows them."""

import json
import os
import shlex
import shutil
import socket
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from websockets.sync.client import connect

from stringd.system.peers import kernel_can_say
from tests.requirements import proves
from tests.support.daemon import Daemon
from tests.support.http import User, request

pytestmark = pytest.mark.skipif(not kernel_can_say(), reason="this kernel has no sock_diag")

SERVES = (
    "import socket, sys\n"
    "page = socket.create_server(('127.0.0.1', 0))\n"
    "print(page.getsockname()[1], flush=True)\n"
    "sys.stdin.read()\n"
)
DECISION = {
    "type": "set_credential",
    "requestId": "1",
    "providerId": "openai",
    "credentialType": "api",
    "apiKey": "k",
}


@pytest.fixture(scope="module")
def daemon(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Daemon]:
    with Daemon(tmp_path_factory.mktemp("pages")) as running:
        yield running


def decides(port: int, origin: str) -> str:
    """What a page is answered that sets a key, in a browser of the owner's."""
    with connect(f"ws://127.0.0.1:{port}/ws", additional_headers={"Origin": origin}) as connection:
        connection.send(json.dumps(DECISION))
        answer: dict[str, Any] = {}
        while answer.get("requestId") != "1":
            answer = json.loads(connection.recv(20))
        return str(answer.get("code", answer["type"]))


@contextmanager
def serving(*prefix: str) -> Iterator[int]:
    """A program that serves a page; its port."""
    words = [*prefix, sys.executable if not prefix else "/usr/bin/python3", "-c", SERVES]
    pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE}
    with subprocess.Popen(words, text=True, **pipes) as program:  # type: ignore[call-overload]
        yield int(program.stdout.readline())
        program.stdin.close()


@proves("TRUST-12")
@pytest.mark.parametrize("host", ["127.0.0.1", "localhost"])
def test_a_page_that_a_child_of_the_daemon_serves_decides_nothing(
    daemon: Daemon, tmp_path: Path, host: str
) -> None:
    user = User(daemon.port, "u", tmp_path)
    ready = tmp_path / "port"
    script = tmp_path / "serve.py"
    script.write_text(
        "import os, socket, sys, time\n"
        "page = socket.create_server(('127.0.0.1', 0))\n"
        "open(sys.argv[1] + '.new', 'w').write(str(page.getsockname()[1]))\n"
        "os.rename(sys.argv[1] + '.new', sys.argv[1])\n"
        "time.sleep(600)\n",
        encoding="utf-8",
    )
    user.exec(shlex.join([sys.executable, str(script), str(ready)]) + " &", f"bash:p{len(host)}")
    while not ready.exists():
        user.exec("true", f"bash:p{len(host)}")
    origin = f"http://{host}:{ready.read_text()}"
    assert decides(daemon.port, origin) == "FORBIDDEN"
    # As any child it may use topics.
    asked = {"topic": "file:main", "cmd": "/info"}
    sent = request(daemon.port, "POST", "/exec", asked, {"Origin": origin, "X-User-Id": "u"})
    assert sent.status == 200
    user.exec(f"kill %1; rm {ready}", f"bash:p{len(host)}")


@proves("TRUST-12")
def test_a_page_of_the_owners_own_decides_as_before(daemon: Daemon) -> None:
    with serving() as port:
        assert decides(daemon.port, f"http://localhost:{port}") != "FORBIDDEN"
    assert decides(daemon.port, f"http://127.0.0.1:{daemon.port}") != "FORBIDDEN"


@proves("TRUST-12")
def test_a_page_that_nobody_serves_any_more_decides_nothing(daemon: Daemon) -> None:
    with socket.create_server(("127.0.0.1", 0)) as gone:
        port = gone.getsockname()[1]
    assert decides(daemon.port, f"http://127.0.0.1:{port}") == "FORBIDDEN"


@proves("TRUST-12")
@pytest.mark.skipif(os.getuid() != 0, reason="only root can serve as another account")
@pytest.mark.skipif(shutil.which("setpriv") is None, reason="setpriv is not installed")
def test_a_page_that_another_account_serves_is_refused(daemon: Daemon) -> None:
    with serving("setpriv", "--reuid", "65534", "--clear-groups") as port:
        origin = {"Origin": f"http://localhost:{port}"}
        refused = request(daemon.port, "GET", "/users", None, origin)
        assert refused.status == 403
        assert "another account of this machine serves the page" in refused.body.decode()
