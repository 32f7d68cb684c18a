"""`python -m tests.support.quick [room]`: the tests of a room, or of the files that changed.

A changed module is answered for by the tests of its folder. Without a room, what differs from the
main branch counts, committed or not.
"""

import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Final

ROOT: Final = Path(__file__).parents[2]
SOURCE: Final = Path("src/stringd")
TESTS: Final = Path("tests")


def answering_for(changed: Path) -> Iterator[Path]:
    """The test files that answer for a changed file."""
    if changed.is_relative_to(TESTS):
        if changed.name.startswith("test_"):
            yield changed
        elif changed.parent != TESTS / "support":
            yield from folder(changed.parent)
    elif changed.is_relative_to(SOURCE) and changed.suffix == ".py":
        mirror = TESTS / changed.parent.relative_to(SOURCE)
        while not any(folder(mirror)) and mirror != TESTS:
            mirror = mirror.parent
        yield from folder(mirror)
    elif changed.suffix == ".md":
        yield from (TESTS / name for name in ("test_docs.py", "test_docs_links.py"))


def folder(path: Path) -> Iterator[Path]:
    """The test files of a folder, without those of the folders in it."""
    return (each.relative_to(ROOT) for each in sorted((ROOT / path).glob("test_*.py")))


def changed_files() -> list[Path]:
    base = _git("merge-base", "HEAD", "main") or ["HEAD"]
    named = _git("diff", "--name-only", base[0]) + _git("ls-files", "-o", "--exclude-standard")
    return [Path(name) for name in named]


def _git(*arguments: str) -> list[str]:
    done = subprocess.run(
        ["git", *arguments], cwd=ROOT, capture_output=True, text=True, check=False
    )
    return done.stdout.splitlines()


def main(rooms: list[str]) -> int:
    chosen = [TESTS / room for room in rooms]
    if not chosen:
        found = {test for changed in changed_files() for test in answering_for(changed)}
        chosen = sorted(test for test in found if (ROOT / test).exists())
    if not chosen:
        print("nothing that has tests differs from main; ROOM=runs/guard names a room")
        return 0
    command = [sys.executable, "-m", "pytest", "-q", "-n", "4", "--dist", "worksteal"]
    return subprocess.run(
        [*command, "-m", "not soak", *map(str, chosen)], cwd=ROOT, check=False
    ).returncode


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
