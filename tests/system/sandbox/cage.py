"""A canary tree with a workspace in it, and commands that run there behind each kind of walls."""

import os
import shutil
import socket
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from functools import cache
from pathlib import Path
from typing import Any, NamedTuple

from stringd.system.sandbox import (
    Bubblewrap,
    Enclosed,
    Landlock,
    Level,
    Limits,
    SandboxSpec,
    Walls,
    enclose,
    standard_spec,
)
from stringd.system.sandbox.hidden import listening_sockets
from stringd.system.sandbox.programs import INTERPRETER
from stringd.system.sandbox.walls import working_bubblewrap, working_landlock
from tests.support.daemon import WAIT_SECONDS

BEGAN = "began"
SECRET = "CANARY-SECRET"
NOBODY = 65534
LAUNCHER = Path(sys.modules[enclose.__module__].__file__ or "").parent / "launcher"


class Kind(NamedTuple):
    walls: str
    account: str


@dataclass
class Cage:
    kind: Kind
    walls: Bubblewrap | Landlock
    base: Path
    python: str

    @property
    def home(self) -> Path:
        return self.base / "home"

    @property
    def workspace(self) -> Path:
        return self.home / "project"

    @property
    def outside(self) -> Path:
        return self.base / "outside"

    @property
    def environment(self) -> dict[str, str]:
        return {
            "PATH": "/usr/sbin:/usr/bin:/sbin:/bin",
            "HOME": str(self.home),
            "WS": str(self.workspace),
            "OUT": str(self.outside),
            "BASE": str(self.base),
            "PY": self.python,
        }

    def spec(self, level: Level = Level.WORKSPACE, **more: Any) -> SandboxSpec:
        around = {"HOME": str(self.home)}
        given = standard_spec(level, [self.workspace], environment=around)
        if self.kind.account == "nobody":
            # That account's home is not ours, though we make the spec for it.
            ours = f"{Path.home()}/"
            hidden = tuple(path for path in given.hidden if not path.startswith(ours))
            writable = tuple(path for path in given.writable if not str(path).startswith(ours))
            given = replace(given, hidden=hidden, writable=writable)
        return replace(given, **more)

    def enclosed(
        self, command: Sequence[str], spec: SandboxSpec | None = None, **more: str
    ) -> Enclosed:
        # Only the sockets of this tree: those of tests that run beside this one come and go.
        sockets = [each for each in listening_sockets() if each.startswith(f"{self.base}/")]
        environment = {**self.environment, **more}
        # Another account may not be allowed to run this interpreter, or to read our sources.
        found = enclose(spec or self.spec(), command, environment, self.walls, sockets)
        if isinstance(self.walls, Bubblewrap):
            argv = [self.python if each == INTERPRETER else each for each in found.argv]
            found = found._replace(argv=argv)
        elif found.argv[0] != command[0]:
            found.argv[0], found.argv[5] = self.python, str(self.base)
        return found

    def start(self, enclosed: Enclosed, **how: Any) -> "subprocess.Popen[bytes]":
        return subprocess.Popen(
            enclosed.argv, env=enclosed.environment, **{"cwd": self.workspace, **self.user, **how}
        )

    def run(self, script: str, spec: SandboxSpec | None = None, **more: str) -> "Done":
        """Everything the script and what it left behind printed: the pipe ends with the last."""
        enclosed = self.enclosed(["/bin/bash", "-c", f"echo {BEGAN}; {script}"], spec, **more)
        process = self.start(enclosed, stdin=subprocess.DEVNULL, stdout=-1, stderr=-2)
        output, _ = process.communicate(timeout=WAIT_SECONDS)
        began, _, rest = output.decode("utf-8", "replace").partition("\n")
        # Otherwise an attempt that was never made would count as one that failed.
        assert began == BEGAN, output
        return Done(process.returncode, rest)

    @property
    def user(self) -> dict[str, Any]:
        return _user(self.kind.account)


class Done(NamedTuple):
    code: int
    output: str


def kinds() -> list[Kind]:
    accounts = ("self", "nobody") if os.geteuid() == 0 else ("self",)
    names = ("bubblewrap", "landlock", "landlock alone")
    return [Kind(walls, each) for walls in names for each in accounts]


@contextmanager
def cage(kind: Kind) -> Iterator[Cage | str]:
    """The cage, or why there is none."""
    walls = _walls(kind.walls)
    if not isinstance(walls, Bubblewrap | Landlock):
        yield walls.reason
        return
    parent = canary_parent()
    if parent is None:
        yield "there is no directory outside /tmp to plant canaries in"
        return
    with _tree(kind, parent) as base:
        python = _python(kind.account)
        yield Cage(kind, walls, base, python) if python else "the other account has no Python"


@contextmanager
def listening(path: Path) -> Iterator[None]:
    """A socket at a path, which every sandbox hides."""
    with socket.socket(socket.AF_UNIX) as server:
        server.bind(str(path))
        server.listen()
        yield


@cache
def _walls(name: str) -> Walls:
    if name == "bubblewrap":
        return working_bubblewrap()
    landlock = working_landlock()
    if isinstance(landlock, Landlock) and name == "landlock alone":
        return landlock._replace(freezes=False)
    return landlock


@cache
def _python(account: str) -> str | None:
    """An interpreter that the account may run."""
    for python in (os.path.realpath(sys.executable), "/usr/bin/python3"):
        try:
            subprocess.run([python, "-c", ""], check=True, cwd="/", **_user(account))
        except (OSError, subprocess.CalledProcessError):
            continue
        return python
    return None


def _user(account: str) -> dict[str, Any]:
    if account == "self":
        return {}
    return {"user": NOBODY, "group": NOBODY, "extra_groups": []}


def canary_parent() -> Path | None:
    """Outside /tmp, because every sandbox has a /tmp of its own; where others can look in, if we
    are root and can be others.
    """
    shared = (Path("/srv"), Path("/opt"), Path("/var/lib"))
    for each in (*shared, Path.home().resolve(), Path.cwd()):
        if os.access(each, os.W_OK) and not each.is_relative_to("/tmp"):
            return each
    return None


@contextmanager
def _tree(kind: Kind, parent: Path) -> Iterator[Path]:
    base = Path(tempfile.mkdtemp(prefix="stringd-canaries-", dir=parent)).resolve()
    try:
        _plant(base)
        shutil.copytree(LAUNCHER, base / "launcher")
        base.chmod(0o755)
        if kind.account == "nobody":
            for path in (base, *base.rglob("*")):
                os.chown(path, NOBODY, NOBODY, follow_symlinks=False)
        yield base
    finally:
        shutil.rmtree(base)


def _plant(base: Path) -> None:
    for name in (
        "home/.ssh",
        "home/.cache",
        "home/project/sub",
        "outside/folder",
        "home/.config/gh",
    ):
        (base / name).mkdir(parents=True)
    for name in (".ssh/id_ed25519", ".netrc", ".claude.json", ".config/gh/hosts.yml"):
        (base / "home" / name).write_text(SECRET)
    for name in ("home/notes.txt", "outside/file", "outside/folder/inner", "home/project/mine"):
        (base / name).write_text("as it was\n")
    (base / "home/project/to-ssh").symlink_to("../.ssh")
    (base / "home/project/to-outside").symlink_to(base / "outside")
    (base / "alias").symlink_to("home/.ssh")
    (base / "second-home").symlink_to("home")


def snapshot(cage: Cage) -> dict[str, tuple[object, ...]]:
    """Everything outside the workspace and the caches, down to the times."""
    found: dict[str, tuple[object, ...]] = {}
    for path in (cage.base, *cage.base.rglob("*")):
        if path.is_relative_to(cage.workspace) or path.is_relative_to(cage.home / ".cache"):
            continue
        info = path.lstat()
        content = path.read_bytes() if path.is_file() and not path.is_symlink() else b""
        facts = (info.st_mode, info.st_uid, info.st_size, info.st_nlink, info.st_ino, content)
        # The workspace is an entry of home: nothing else there changes its time.
        found[str(path)] = (*facts, info.st_mtime_ns)
    return found


def limits(**given: int | None) -> Limits:
    return replace(Limits(processes=None), **given)
