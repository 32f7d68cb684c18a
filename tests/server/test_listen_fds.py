"""A socket that a service manager opened is the one the daemon listens on."""

import sys
from pathlib import Path

from stringd.system.listen_fds import take_sockets
from tests.support.daemon import Daemon
from tests.support.http import request

_MANAGER = """\
import os, socket, sys
listener = socket.socket()
listener.bind(("127.0.0.1", int(os.environ["STRINGD_PORT"])))
listener.listen()
os.dup2(listener.fileno(), 3)
os.set_inheritable(3, True)
os.environ |= {"LISTEN_FDS": "1", "LISTEN_PID": str(os.getpid())}
os.execv(sys.argv[1], sys.argv[1:])
"""


class ActivatedDaemon(Daemon):
    """Started as a service manager does it, with its port open already."""

    launcher = (sys.executable, "-c", _MANAGER)


def test_the_daemon_takes_the_open_port(tmp_path: Path) -> None:
    with ActivatedDaemon(tmp_path) as daemon:
        # A second socket on the port would have been refused.
        assert request(daemon.port, "GET", "/health").status == 200


def test_sockets_of_another_process_are_left_alone() -> None:
    environ = {"LISTEN_PID": "1", "LISTEN_FDS": "1", "OTHER": "x"}
    assert take_sockets(environ) == []
    assert environ == {"OTHER": "x"}
