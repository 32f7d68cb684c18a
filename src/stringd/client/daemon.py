"""Finding, starting and stopping the daemon, for `string` and `stringd` alike.

Standard library only, and `subprocess` only once something must be started.
"""

import os
import sys

from stringd.client.exec import json_object
from stringd.client.http import DaemonConnection, StrangerError, TransportError
from stringd.system.holder import holder

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping

DEFAULT_PORT = 3100
START_TRIES = 50
PROBE_SECONDS = 0.1
_ORPHAN = """\
import os, sys
if pid := os.fork():
    os.write(1, b"%d" % pid)
    os._exit(0)
os.dup2(0, 1)
os.execv(sys.argv[1], sys.argv[1:])
"""
"""Becomes the command in its arguments, with another process in between that ends at once."""


class UsageError(Exception):
    """The command line or the environment cannot be used as it is."""


def setting(name: str, environ: "Mapping[str, str]" = os.environ) -> "tuple[str, str]":
    """The variable that sets something, and its text: `STRINGD_<name>`, else `STRING_<name>`.

    Later versions of the protocol's own programs read the shorter names, and call users agents.
    """
    names = [f"STRINGD_{name}", f"STRING_{name}", *(["STRING_AGENT_ID"] if name == "USER" else [])]
    for variable in names:
        text = environ.get(variable, "").strip()
        if text:
            return variable, text
    return names[0], ""


def port_from_environment() -> int:
    """`STRINGD_PORT`; else that of the daemon on our data directory, else 3100.

    Raises `UsageError`.
    """
    variable, text = setting("PORT")
    if text:
        return parse_port(variable, text)
    # Some clients strip the environment of what they start.
    found = holder(data_directory())
    return found.port if found is not None else DEFAULT_PORT


def data_directory() -> str:
    """Where a daemon that we start keeps its state."""
    _, told = setting("DATA_DIR")
    return told or os.path.expanduser("~/.string/daemon")


def default_home(user_id: str) -> str:
    """The home of a user that was not given one."""
    _, told = setting("HOME")
    return absolute(told or own_directory(user_id))


def absolute(path: str) -> str:
    """A path a person may have written: `~` is their home."""
    return os.path.abspath(os.path.expanduser(path))


def own_directory(user_id: str) -> str:
    """A user's directory among those of all users; an id is a name, never a path."""
    name = user_id.replace("/", "%2F")
    return f"~/.string/users/{name.replace('.', '%2E') if name in ('.', '..') else name}"


def chosen_user() -> str:
    """Whom a person acts as unless told: `STRINGD_USER`, the choice of `string user use`."""
    _, named = setting("USER")
    if named:
        return named
    try:
        with open(config_path(), "rb") as file:
            data = file.read()
    except OSError:
        return "default"
    import json

    try:
        held = json.loads(data)
    except ValueError:
        held = None
    if not isinstance(held, dict):
        sys.stderr.write(
            f"string: {config_path()} cannot be read, so you are user default. Restore it from a "
            "backup, or delete it and choose again with: string user use <id>\n"
        )
    user = held.get("currentUser") if isinstance(held, dict) else None
    return user if isinstance(user, str) and user.strip() else "default"


def config_path() -> str:
    """Where a person's own choices are kept."""
    _, told = setting("CONFIG")
    return absolute(told or "~/.string/config.json")


def parse_port(name: str, text: str) -> int:
    """A port number. Raises `UsageError` naming the setting and the value."""
    if not (text.isascii() and text.isdigit() and 1 <= int(text) <= 65535):
        raise UsageError(f"{name} must be a port between 1 and 65535, not '{text}'")
    return int(text)


def healthy(port: int) -> bool:
    """Whether a daemon answers on this port. Raises `StrangerError`."""
    connection = DaemonConnection(port, timeout=2.0)
    try:
        return connection.request("GET", "/health").status == 200
    except StrangerError:
        raise
    except TransportError:
        return False
    finally:
        connection.close()


def health(port: int) -> "dict[str, object] | None":
    """What the daemon on this port says about itself; None when there is none.

    Raises `StrangerError`.
    """
    import json

    connection = DaemonConnection(port, timeout=5.0)
    try:
        reply = connection.request("GET", "/health")
        held = json.loads(reply.body)
    except StrangerError:
        raise
    except (TransportError, ValueError):
        return None
    finally:
        connection.close()
    ours = isinstance(held, dict) and {"ok", "users", "sessions"} <= held.keys()
    return held if ours and reply.status == 200 else None


def knows(connection: DaemonConnection, user_id: str) -> bool:
    """Whether the daemon has a user of this id. Raises `TransportError`."""
    listed = connection.request("GET", "/users").body
    return json_object(id=user_id)[:-1] + b"," in listed


def register(connection: DaemonConnection, user_id: str, home: str) -> None:
    """Make sure the user exists. Raises `TransportError` when the daemon refuses it."""
    reply = connection.request("POST", "/users", json_object(id=user_id, home=home))
    if reply.status != 200:
        text = reply.body.decode("utf-8", "replace")
        raise TransportError(f"cannot register user {user_id}: {text}")


def start(port: int, *, log: bool = False) -> bool:
    """Start a detached daemon and wait until it answers; False when it does not.

    Raises `StrangerError` when another account takes the port meanwhile.
    """
    import time

    global _log
    _log = _open_log(port)
    pid = _spawn(["serve", "--port", str(port), *(["--log"] if log else [])], _log)
    for _ in range(START_TRIES):
        if healthy(port):
            return True
        if not _alive(pid):
            return healthy(port)
        time.sleep(PROBE_SECONDS)
    return False


def last_words() -> str:
    """What the daemon that was started last said before it ended, as the end of a sentence."""
    if _log is None:
        return ""
    size = os.fstat(_log).st_size
    said = os.pread(_log, 2000, max(_said_before, size - 2000)).decode("utf-8", "replace")
    lines = [line.removeprefix("stringd: ") for line in said.splitlines() if line.strip()]
    return f": {lines[-1]}" if lines else ""


_log: "int | None" = None
_said_before = 0
MAX_LOG = 256 * 1024


def _open_log(port: int) -> int:
    """What a daemon in the background says goes to a small file, or at least to us."""
    global _said_before
    directory = os.path.expanduser("~/.string/logs")
    try:
        os.makedirs(directory, mode=0o700, exist_ok=True)
        flags = os.O_RDWR | os.O_CREAT | os.O_APPEND | os.O_CLOEXEC
        log = os.open(os.path.join(directory, f"background-{port}.log"), flags, 0o600)
        if os.fstat(log).st_size > MAX_LOG:
            os.ftruncate(log, 0)
    except OSError:
        log = os.memfd_create("stringd-log")
    _said_before = os.fstat(log).st_size
    return log


def _spawn(arguments: "list[str]", log: int) -> int:
    """Run `stringd` in a session of its own and as nobody's child; its process id.

    Some clients end everything that descends from `stringd mcp` when they leave, and the daemon
    serves others too.
    """
    import subprocess

    environment = dict(os.environ)
    environment["STRINGD_DATA_DIR"] = data_directory()
    # Modules of ours come from where they are installed, never from where the daemon runs.
    command = [sys.executable, "-P", "-m", "stringd", *arguments]
    done = subprocess.run(
        [sys.executable, "-I", "-S", "-c", _ORPHAN, *command],
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=log,
        cwd=os.path.expanduser("~"),
        env=environment,
        start_new_session=True,
        check=True,
    )
    return int(done.stdout)


def _alive(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    return True


def stop(port: int) -> bool:
    """Stop the daemon and wait until it is gone; False when it stays."""
    import time

    connection = DaemonConnection(port, timeout=5.0)
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
