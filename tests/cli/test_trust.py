"""`stringd trust`, and what a clone may do before and after it, with a real daemon."""

import json
import os
import pty
import select
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from stringd.system.data_directory import MARKER
from tests.runs import hostile
from tests.runs.hostile import Clone
from tests.runs.support import scripted, sequential, strategy
from tests.support.daemon import WAIT_SECONDS, Daemon

_STRING = "import sys; from stringd.cli.string import main; sys.exit(main())"


@pytest.fixture(scope="module")
def daemon(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Daemon]:
    filters = {"STRINGD_TEMPLATE_FILTERS": "exec"}
    with Daemon(tmp_path_factory.mktemp("trust"), **filters) as running:
        yield running


@pytest.fixture
def clone(tmp_path: Path) -> Clone:
    return hostile.make(tmp_path, ".stringd")


def stringd(
    daemon: Daemon, cwd: Path, *args: str, **environment: str
) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-m", "stringd", *args],
        env={**daemon.child_environment(), **environment},
        cwd=cwd,
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        timeout=WAIT_SECONDS,
        check=False,
    )


def test_a_folder_is_trusted_listed_and_removed(daemon: Daemon, clone: Clone) -> None:
    done = stringd(daemon, clone.root, "trust", ".")
    assert (done.returncode, done.stderr) == (0, "")
    assert f"  MCP server shared: sh -c touch {clone.canaries / 'mcp.json'}\n" in done.stdout
    assert f"  code of @evil/root: {clone.top / 'entry.py'}\n" in done.stdout
    assert f"  strategy plain: {clone.top / 'strategies' / 'plain.yaml'}\n" in done.stdout
    assert "  skill evil: from the clone\n" in done.stdout
    assert done.stdout.endswith(f"trusted: {clone.root}\n")
    listed = json.loads(stringd(daemon, clone.root, "trust", "--list", "--json").stdout)
    assert str(clone.root) in [each["path"] for each in listed["trusted"]]
    assert (
        f"{clone.root}  (content, since 20" in stringd(daemon, Path("/"), "trust", "--list").stdout
    )
    assert stringd(daemon, clone.root, "trust", "--remove", ".").returncode == 0
    again = stringd(daemon, clone.root, "trust", "--remove", ".")
    assert (again.returncode, again.stdout) == (1, "")
    assert clone.started == []


def test_one_file_is_trusted_for_scripts(daemon: Daemon, tmp_path: Path) -> None:
    page = tmp_path / "page.md"
    page.write_text("# Page\n", "utf-8")
    done = stringd(daemon, tmp_path, "trust", "page.md", "--json")
    told = json.loads(done.stdout)
    assert (told["path"], [each["path"] for each in told["trusted"]]) == (str(page), [str(page)])


@pytest.mark.parametrize("args", [[], ["."], ["nothing-here"], ["--remove", "."]])
def test_what_cannot_be_trusted_is_said(daemon: Daemon, tmp_path: Path, args: list[str]) -> None:
    done = stringd(daemon, tmp_path, "trust", *args)
    assert done.returncode == (1 if args else 2)
    assert done.stdout == ""
    assert "stringd" in done.stderr


def test_names_of_strangers_cannot_pose_as_our_own_words(daemon: Daemon, clone: Clone) -> None:
    definition = {**clone.server("x"), "args": ["-c", "true\ntrusted: /\x1b[2K\u202eevil"]}
    hostile.write(clone.top / "mcp.json", {"mcpServers": {"shared": definition}})
    done = stringd(daemon, clone.root, "trust", ".")
    assert "  MCP server shared: sh -c true\\ntrusted: /\\x1b[2K\\u202eevil\n" in done.stdout


def test_a_clone_is_named_and_not_used_until_it_is_trusted(daemon: Daemon, clone: Clone) -> None:
    line = f"stringd trust {clone.root}"
    listed = stringd(daemon, clone.root, "strategies")
    assert "plain" not in listed.stdout.split("!")[0].split()
    assert line in listed.stdout
    done = stringd(daemon, clone.root, "run", "plain")
    assert done.returncode == 1
    assert line in done.stderr
    hello = stringd(daemon, clone.root, "run", "hello", "-i", "x", "--plain")
    assert hello.returncode == 0
    assert "from the clone" not in hello.stdout
    by_path = stringd(daemon, clone.root, "run", ".stringd/strategies/servers.yaml", "-i", "x")
    assert by_path.returncode == 1
    assert line in by_path.stderr
    assert clone.started == []
    assert stringd(daemon, clone.root, "trust", ".").returncode == 0
    done = stringd(daemon, clone.root, "run", "plain", "-i", "x", "--plain")
    assert (done.returncode, "from the clone" in done.stdout) == (0, True)
    done = stringd(daemon, clone.root, "run", "nested", "-i", "x", "--plain")
    assert (done.returncode, clone.started) == (0, ["nested"])


class Typing:
    """`stringd run` in a terminal."""

    def __init__(self, daemon: Daemon, cwd: Path, *args: str, ahead: str = "") -> None:
        self._master, slave = pty.openpty()
        os.write(self._master, ahead.encode())
        self.process = subprocess.Popen(
            [sys.executable, "-m", "stringd", *args],
            env=daemon.child_environment(),
            cwd=cwd,
            stdin=slave,
            stdout=slave,
            stderr=slave,
            start_new_session=True,
        )
        os.close(slave)
        self.screen = ""

    def until(self, text: str) -> None:
        while text not in self.screen:
            assert self._read(), self.screen

    def answer(self, text: str) -> int:
        os.write(self._master, f"{text}\n".encode())
        while self._read():
            pass
        os.close(self._master)
        return self.process.wait(WAIT_SECONDS)

    def _read(self) -> bool:
        ready, _, _ = select.select([self._master], [], [], WAIT_SECONDS)
        assert ready, self.screen
        try:
            data = os.read(self._master, 65536)
        except OSError:
            return False
        self.screen += data.decode("utf-8", "replace")
        return bool(data)


@pytest.mark.parametrize("name", ["plain", ".stringd/strategies/servers.yaml"])
def test_a_person_at_a_terminal_is_asked_once_and_shown_what_it_would_start(
    daemon: Daemon, clone: Clone, name: str
) -> None:
    typing = Typing(daemon, clone.root, "run", name, "-i", "x", "--plain")
    typing.until("Trust this content? [y/N]")
    assert f"MCP server shared: sh -c touch {clone.canaries / 'mcp.json'}" in typing.screen
    assert typing.answer("") == 1
    assert f"stringd trust {clone.root}" in typing.screen
    assert clone.started == []
    typing = Typing(daemon, clone.root, "run", name, "-i", "x", "--plain")
    typing.until("Trust this content? [y/N]")
    assert typing.answer("y") == 0
    assert typing.screen.count("Trust this content?") == 1
    assert stringd(daemon, clone.root, "run", name, "-i", "x", "--plain").returncode == 0


def test_what_was_typed_or_pasted_before_the_question_does_not_trust(
    daemon: Daemon, clone: Clone
) -> None:
    """The README of a clone may say what to paste."""
    typing = Typing(daemon, clone.root, "run", "plain", "-i", "x", "--plain", ahead="y\n")
    typing.until("Trust this content? [y/N]")
    assert typing.answer("") == 1
    assert clone.started == []


def test_a_shell_of_the_daemon_cannot_trust_anything(daemon: Daemon, clone: Clone) -> None:
    trusting = f"{sys.executable} -m stringd trust {clone.root}"
    for line in (trusting, f"setsid -w {trusting}", f"env -i HOME=$HOME {trusting}"):
        done = subprocess.run(
            [sys.executable, "-c", _STRING, "bash:trust", line],
            env={**daemon.child_environment(), "STRINGD_HOME": str(daemon.home)},
            capture_output=True,
            text=True,
            timeout=WAIT_SECONDS,
            check=False,
        )
        assert "nothing was changed" in done.stdout, done
    listed = json.loads(stringd(daemon, clone.root, "trust", "--list", "--json").stdout)
    assert str(clone.root) not in [each["path"] for each in listed["trusted"]]


def test_the_list_of_what_is_trusted_is_closed_to_file_commands(daemon: Daemon) -> None:
    for command in ("/open ./.string/trust.json", "/write ./.string/trust.json\n{}"):
        done = subprocess.run(
            [sys.executable, "-c", _STRING, "file:t", command],
            env={**daemon.child_environment(), "STRINGD_HOME": str(daemon.home)},
            cwd=daemon.directory,
            capture_output=True,
            text=True,
            timeout=WAIT_SECONDS,
            check=False,
        )
        assert "FILE_NOT_ALLOWED" in done.stdout + done.stderr, done


@pytest.mark.parametrize("chosen", [True, False])
def test_a_daemon_does_not_start_on_a_data_directory_that_came_with_a_clone(
    daemon: Daemon, clone: Clone, chosen: bool
) -> None:
    clone.top.chmod(0o700)
    settings = {"STRINGD_DATA_DIR": str(clone.top) if chosen else "", "STRINGD_PORT": "1"}
    done = stringd(daemon, clone.root, "serve", **settings)
    assert (done.returncode, done.stdout) == (1, "")
    assert f"data directory {clone.top} is not used" in done.stderr
    assert f"stringd trust --data-dir {clone.top}" in done.stderr
    assert not (clone.top / MARKER).exists()
    checks = stringd(daemon, clone.root, "doctor", "--json", STRINGD_DATA_DIR=str(clone.top))
    found = {each["name"]: each for each in json.loads(checks.stdout)["checks"]}
    assert found["data directory"]["state"] == "broken"
    assert f"stringd trust --data-dir {clone.top}" in found["data directory"]["fix"]
    assert stringd(daemon, clone.root, "trust", "--data-dir", ".stringd").returncode == 0
    assert (clone.top / MARKER).exists()


def test_definitions_in_our_own_data_directory_inside_a_repository_need_trust_too(
    tmp_path: Path,
) -> None:
    clone = hostile.make(tmp_path, ".comma")
    with Daemon(clone.root) as daemon:
        # What a pull would bring.
        servers = {"shared": clone.server("pulled")}
        hostile.write(daemon.data_dir / "mcp.json", {"mcpServers": servers})
        source = strategy(sequential("a"), a={**scripted("x"), "mcpServers": ["shared"]})
        hostile.write(daemon.data_dir / "strategies" / "pulled.yaml", {**source, "name": "pulled"})
        done = stringd(daemon, tmp_path, "run", "pulled", "-i", "x")
        assert done.returncode == 1
        path = str(daemon.data_dir / "strategies" / "pulled.yaml")
        done = stringd(daemon, tmp_path, "run", path, "-i", "x")
        assert done.returncode == 1
        assert "is not trusted" in done.stderr
    assert clone.started == []
