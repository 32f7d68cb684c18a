"""`python -m tests.support.golden`: keeps what this version stores, for the tests of later ones."""

import shutil
import sys
import tempfile
from pathlib import Path

import stringd
from stringd import __version__
from tests.support.commands import run
from tests.support.daemon import Daemon

KEPT = Path(__file__).parents[1] / "cli/golden"
"""One backup for every released version."""
BUNDLED = Path(stringd.__file__).parent / "runs/bundled"


def fill(daemon: Daemon, home: Path) -> None:
    """What a person has after a while: variables, pages with history, a run, a key."""
    env = daemon.child_environment()
    for command in (
        "/set {city} = Oslo",
        "/write a.md\nfirst",
        "/write a.md\nsecond",
        "/open a.md",
    ):
        assert run("string", "file:main", command, env=env).code == 0
    assert run("stringd", "keys", "set", "openai", env=env, stdin=b"example\n").code == 0
    # A strategy of the person's own: where ours are installed is nothing to keep.
    shutil.copytree(BUNDLED / "plan", home / "own-plan")
    words = (
        "./own-plan/plan.yaml",
        "--model",
        "demo/x",
        "-i",
        "hi",
        "--plain",
        "--run-id",
        "kept-run",
    )
    assert run("stringd", "run", *words, env=env, cwd=home).code == 0


def main() -> int:
    """Write the backup of this version, unless there is one."""
    path = KEPT / f"{__version__}.tar.gz"
    if path.exists():
        print(f"{path} exists: what a released version stored does not change", file=sys.stderr)
        return 1
    KEPT.mkdir(exist_ok=True)
    with tempfile.TemporaryDirectory(prefix="home-") as folder:
        home = Path(folder)
        with Daemon(home, STRINGD_DATA_DIR=str(home / ".string/daemon")) as daemon:
            fill(daemon, home)
            done = run("stringd", "backup", str(path), env=daemon.child_environment())
            assert done.code == 0, done.err
    path.chmod(0o644)
    print(path)
    return 0


if __name__ == "__main__":
    sys.exit(main())
