"""Finding, starting and stopping the daemon, for `string` and `stringd` alike.

Standard library only, and `subprocess` only once something must be started.
"""

import os
import sys

from stringd.client.exec import json_object
from stringd.client.http import Connection, TransportError

DEFAULT_PORT = 3100
START_TRIES = 50
PROBE_SECONDS = 0.1


class UsageError(Exception):
    """The command line or the environment cannot be used as it is."""


def port_from_environment() -> int:
    """`STRINGD_PORT`, or 3100 when it is unset or blank. Raises `UsageError`."""
    text = os.environ.get("STRINGD_PORT", "").strip()
    return parse_port("STRINGD_PORT", text) if text else DEFAULT_PORT


def parse_port(name: str, text: str) -> int:
    """A port number. Raises `UsageError` naming the setting and the value."""
    if not (text.isascii() and text.isdigit() and 1 <= int(text) <= 65535):
        raise UsageError(f"{name} must be a port between 1 and 65535, not '{text}'")
    return int(text)


def healthy(port: int) -> bool:
    """Whether a daemon answers on this port."""
    connection = Connection(port, timeout=2.0)
    try:
        return connection.request("GET", "/health").status == 200
    except TransportError:
        return False
    finally:
        connection.close()


def health(port: int) -> "dict[str, object] | None":
    """What the daemon on this port says about itself; None when there is none."""
    import json

    connection = Connection(port, timeout=5.0)
    try:
        reply = connection.request("GET", "/health")
        held = json.loads(reply.body)
    except (TransportError, ValueError):
        return None
    finally:
        connection.close()
    ours = isinstance(held, dict) and {"ok", "users", "sessions"} <= held.keys()
    return held if ours and reply.status == 200 else None


def register(connection: Connection, user_id: str, home: str) -> None:
    """Make sure the user exists. Raises `TransportError` when the daemon refuses it."""
    reply = connection.request("POST", "/users", json_object(id=user_id, home=home))
    if reply.status != 200:
        text = reply.body.decode("utf-8", "replace")
        raise TransportError(f"cannot register user {user_id}: {text}")


def start(port: int, *, log: bool = False) -> bool:
    """Start a detached daemon and wait until it answers; False when it does not."""
    import subprocess
    import time

    environment = dict(os.environ)
    environment.setdefault("STRINGD_DATA_DIR", os.path.expanduser("~/.string/daemon"))
    command = [sys.executable, "-m", "stringd", "serve", "--port", str(port)]
    process = subprocess.Popen(
        [*command, *(["--log"] if log else [])],
        stdin=subprocess.DEVNULL,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        cwd=os.path.expanduser("~"),
        env=environment,
        start_new_session=True,
    )
    for _ in range(START_TRIES):
        if healthy(port):
            # It outlives us on purpose; nobody will wait for it.
            process.returncode = 0
            return True
        if process.poll() is not None:
            return healthy(port)
        time.sleep(PROBE_SECONDS)
    return False


def stop(port: int) -> bool:
    """Stop the daemon and wait until it is gone; False when it stays."""
    import time

    connection = Connection(port, timeout=5.0)
    try:
        connection.request("POST", "/shutdown", b"{}")
    except TransportError:
        return not healthy(port)
    finally:
        connection.close()
    for _ in range(START_TRIES * 2):
        if not healthy(port):
            return True
        time.sleep(PROBE_SECONDS)
    return False
