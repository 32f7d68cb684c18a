"""CLI actions behind the walls they have by default: what a call reaches, and what is said when the
walls are in the way."""

import os
import socket
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from stringd.runtime.settings import WORK_DIRECTORY
from stringd.system.sandbox import Nothing, available
from tests.support.daemon import WAIT_SECONDS, Daemon
from tests.support.person import Person
from tests.support.web import WebServer
from tests.system.sandbox.cage import canary_parent

pytestmark = pytest.mark.skipif(isinstance(available(), Nothing), reason="no walls on this machine")

PAGE = """---
type: app
name: {name}
---
# {name}

```act.read
CLI cat {{file}}
  file: path (required)
```

```act.write
CLI echo new >> {{file}} && cat {{file}}
  file: string (required)
```

```act.stored
CLI cat "$FILE"
```

```act.default
CLI cat {canary}
```

```act.keep
CLI cd "$(dirname "$(mktemp -u)")"; echo kept > kept
```

```act.kept
CLI cd "$(dirname "$(mktemp -u)")"; cat kept
```

```act.dies
CLI kill -9 $$
```

```act.says
CLI exit 137
```

```act.todo
CLI cd "$STRING_CALLER_DIR" && echo {{line}} >> todo.txt && cat todo.txt
  line: string (required)
```

```act.status
CLI grep Seccomp: /proc/self/status
```
"""


@pytest.fixture(scope="module")
def daemon(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Daemon]:
    with Daemon(tmp_path_factory.mktemp("walls")) as running:
        yield running


@pytest.fixture(scope="module")
def owner(daemon: Daemon) -> Person:
    owner = Person(daemon.port, "owner", daemon.directory / "user")
    canary = daemon.directory / "canary"
    canary.write_text("of the page\n")
    for name in ("reader", "other"):
        owner.put(f"{name}/string.md", PAGE.format(name=name, canary=canary))
        owner.gets(f"/install ./{name}", cwd=owner.home)
        owner.gets("/open", f"app:{name}")
    return owner


def stringd(daemon: Daemon, *args: str) -> "subprocess.CompletedProcess[str]":
    return subprocess.run(
        [sys.executable, "-m", "stringd", *args],
        env=daemon.child_environment(),
        capture_output=True,
        text=True,
        timeout=WAIT_SECONDS,
        check=False,
    )


def test_commands_of_actions_have_walls_unless_somebody_opens_them(owner: Person) -> None:
    assert owner.gets("/act.status", "app:reader").split() == ["Seccomp:", "2"]


def test_a_call_reaches_what_it_names_also_in_the_temporary_directory(
    owner: Person, tmp_path: Path
) -> None:
    there = tmp_path / "two words.txt"
    there.write_text("as it was\n")
    assert owner.gets(f"/act.read '{there}'", "app:reader") == "as it was"
    assert owner.gets(f"/act.write '{there}'", "app:reader") == "as it was\nnew"
    assert there.read_text() == "as it was\nnew\n"
    made = tmp_path / "made"
    assert owner.gets(f"/act.write {made}", "app:reader") == "new"
    assert made.read_text() == "new\n"


def test_a_call_reaches_a_file_that_is_to_be_made_right_in_the_temporary_directory(
    owner: Person,
) -> None:
    path = Path("/tmp", f"stringd-walls-{os.getpid()}")
    try:
        assert owner.gets(f"/act.write {path}", "app:reader") == "new"
        assert path.read_text() == "new\n"
    finally:
        path.unlink(missing_ok=True)


def test_a_command_works_in_the_directory_it_was_called_from(owner: Person, tmp_path: Path) -> None:
    """Also as `$STRING_CALLER_DIR`, where the topic itself is in the app's own folder."""
    for directory in (tmp_path / "one", tmp_path / "two"):
        directory.mkdir()
        assert owner.gets("/act.todo milk", "app:reader", cwd=directory) == "milk"
        assert (directory / "todo.txt").read_text() == "milk\n"


def test_a_call_reaches_what_the_owner_stored(owner: Person, tmp_path: Path) -> None:
    (tmp_path / "stored").write_text("stored\n")
    owner.gets(f'/set $FILE = "{tmp_path}/stored"', "app:reader")
    assert owner.gets("/act.stored", "app:reader") == "stored"


def test_a_command_reaches_what_its_own_line_names(owner: Person) -> None:
    """As it did without walls: only pages that the owner let in have commands."""
    assert owner.gets("/act.default", "app:reader") == "of the page"


def test_a_secret_stays_hidden_also_when_a_call_names_it(owner: Person, daemon: Daemon) -> None:
    secret = daemon.directory / ".ssh" / "id_canary"
    secret.parent.mkdir()
    secret.write_text("CANARY")
    for path in (secret, daemon.data_dir / "users.json"):
        said = owner.fails(f"/act.read {path}", "app:reader")
        assert "CANARY" not in said.text
        assert "owner" not in said.text
        assert "stringd sandbox open reader" in said.text


def test_a_file_that_is_really_missing_is_not_blamed_on_the_walls(
    owner: Person, tmp_path: Path
) -> None:
    said = owner.fails("/act.read gone.txt", "app:reader", cwd=tmp_path)
    assert said.code == "EXIT_1"
    assert "sandbox" not in said.text


@pytest.mark.parametrize("name", ["packages/other/string.md", f"{WORK_DIRECTORY}/other/note"])
def test_what_is_stringds_own_or_another_apps_is_not_written_by_being_named(
    owner: Person, name: str
) -> None:
    if name.startswith(WORK_DIRECTORY):
        owner.put(name, "as it was\n")
    before = owner.read(name)
    said = owner.fails(f"/act.write {owner.home / name}", "app:reader", cwd=owner.home)
    assert "stringd sandbox open reader" in said.text
    assert owner.read(name) == before


def test_commands_of_one_app_share_a_temporary_directory(owner: Person) -> None:
    owner.gets("/act.keep", "app:reader")
    assert owner.gets("/act.kept", "app:reader") == "kept"
    assert owner.fails("/act.kept", "app:other").code == "EXIT_1"


def test_a_signal_and_the_status_it_looks_like_are_told_apart(owner: Person) -> None:
    assert owner.fails("/act.dies", "app:reader").code == "EXIT_1"
    assert owner.fails("/act.says", "app:reader").code == "EXIT_137"


def test_a_package_from_elsewhere_is_not_open_because_its_name_was(
    owner: Person, daemon: Daemon
) -> None:
    page = "---\ntype: app\nname: {name}\n---\n```act.s\nCLI cat /proc/self/mountinfo\n```\n"
    for folder in ("swapped", "elsewhere"):
        owner.put(f"{folder}/string.md", page.format(name="swapped"))
    owner.gets("/install ./swapped", cwd=owner.home)
    owner.gets("/open", "app:swapped")
    inside = owner.gets("/act.s", "app:swapped")
    assert stringd(daemon, "sandbox", "open", "swapped").returncode == 0
    outside = owner.gets("/act.s", "app:swapped")
    assert inside != outside
    owner.gets("/install ./swapped", cwd=owner.home)
    assert owner.gets("/act.s", "app:swapped") == outside
    owner.gets("/uninstall swapped")
    owner.gets("/install ./elsewhere", cwd=owner.home)
    owner.gets("/open", "app:swapped")
    assert owner.gets("/act.s", "app:swapped") != outside


def test_an_app_that_needs_more_says_how_it_is_opened(owner: Person, daemon: Daemon) -> None:
    parent = canary_parent()
    if parent is None:
        pytest.skip("there is no directory outside /tmp to plant canaries in")
    path = parent / f"stringd-walls-{os.getpid()}"
    owner.put(
        "writer/string.md",
        "---\ntype: app\nname: writer\n---\n```act.w\nCLI sh ./write\n```\n",
    )
    owner.put("writer/write", f"echo new > {path}\n")
    owner.gets("/install ./writer", cwd=owner.home)
    owner.gets("/open", "app:writer")
    try:
        said = owner.fails("/act.w", "app:writer")
        assert "stringd sandbox open writer" in said.text
        assert not path.exists()
        assert stringd(daemon, "sandbox", "open", "writer").returncode == 0
        owner.gets("/act.w", "app:writer")
        assert path.read_text() == "new\n"
        assert stringd(daemon, "sandbox", "close", "writer").returncode == 0
        owner.fails("/act.w", "app:writer")
    finally:
        path.unlink(missing_ok=True)


ASK = """\
import sys, urllib.error, urllib.request
for port in sys.argv[1:]:
    try:
        print(urllib.request.urlopen(f"http://127.0.0.1:{port}/").status)
    except urllib.error.HTTPError as error:
        print(error.code)
    except OSError:
        print("nothing")
"""


def test_commands_of_an_app_reach_the_hosts_it_declares_where_the_owner_says_so(
    tmp_path: Path,
) -> None:
    python = os.path.realpath(sys.executable)
    with (
        Daemon(tmp_path, STRINGD_ACTION_NETWORK="hosts") as daemon,
        WebServer() as listed,
        WebServer() as other,
    ):
        owner = Person(daemon.port, "owner", tmp_path / "user")
        for name, hosts in (("some", f"hosts: ['127.0.0.1:{listed.port}']\n"), ("silent", "")):
            page = f"```act.ask\nCLI {python} -I ask.py {listed.port} {other.port}\n```\n"
            owner.put(f"{name}/string.md", f"---\ntype: app\nname: {name}\n{hosts}---\n{page}")
            owner.put(f"{name}/ask.py", ASK)
            owner.gets(f"/install ./{name}", cwd=owner.home)
            owner.gets("/open", f"app:{name}")
        assert owner.gets("/act.ask", "app:some").split() == ["200", "403"]
        assert owner.gets("/act.ask", "app:silent").split() == ["nothing", "nothing"]
        assert (len(listed.asked), len(other.asked)) == (1, 0)


REACH = """\
import socket, sys
port, *paths = sys.argv[1:]
connection = socket.create_connection(("127.0.0.1", int(port)))
connection.sendall(b"GET /sessions HTTP/1.1\\r\\nHost: 127.0.0.1\\r\\n\\r\\n")
print(connection.recv(1000).split()[1].decode())
for path in paths:
    try:
        socket.socket(socket.AF_UNIX).connect(path)
        print("reached", path)
    except OSError as error:
        print(type(error).__name__)
"""


def test_a_command_reaches_neither_the_daemon_nor_a_unix_socket_of_the_user(
    owner: Person, daemon: Daemon
) -> None:
    """Also when it names them, and when they are in a directory it may write to."""
    python = os.path.realpath(sys.executable)
    page = f"---\ntype: app\nname: caller\n---\n```act.call\nCLI {python} -I reach.py $ARGS\n```\n"
    owner.put("caller/string.md", page)
    owner.put("caller/reach.py", REACH)
    owner.gets("/install ./caller", cwd=owner.home)
    owner.gets("/open", "app:caller")
    with socket.socket(socket.AF_UNIX) as listener:
        theirs = owner.home / "agent.sock"
        listener.bind(str(theirs))
        listener.listen()
        ours = daemon.data_dir / "stringd.sock"
        assert ours.is_socket()
        said = owner.gets(f"/act.call {daemon.port} {ours} {theirs}", "app:caller", cwd=owner.home)
    theirs.unlink()
    status, *tried = said.split()
    assert status == "403"
    assert len(tried) == 2
    assert "reached" not in tried
