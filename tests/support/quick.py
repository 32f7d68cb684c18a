"""`python -m tests.support.quick [room]`: the tests of a room, or of the files that changed.

A changed module is answered for by the tests of its folder. Without a room, what differs from the
main branch counts, committed or not. Slow files run where they, or the module they are named after,
changed or were named; `make test` runs all of them.
"""

import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Final

ROOT: Final = Path(__file__).parents[2]
SOURCE: Final = Path("src/stringd")
TESTS: Final = Path("tests")
SLOW: Final = frozenset(
    TESTS / room / f"test_{name}.py"
    for room, names in {
        "cli": ("trust",),
        "cli/runs": ("run",),
        "gate": ("mutations",),
        "runs": ("crash", "tool_crash"),
        "runs/guard": ("matrix",),
        "runs/handlers": ("answers",),
        "runs/mcp": ("servers",),
        "runs/tools": ("injection",),
        "runtime/shell": ("against_bash",),
        "runtime/topics": ("disk_trouble", "store"),
        "server": ("damage", "protocol_lifetime"),
        "system/sandbox": ("endings", "files"),
    }.items()
    for name in names
)
"""Hundreds of cases, or daemons that start again and again: half of the time of all tests."""


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


def own_test(changed: Path) -> Path:
    """The test file that has the name of a changed module, or is the changed file itself."""
    if not changed.is_relative_to(SOURCE):
        return changed
    return TESTS / changed.parent.relative_to(SOURCE) / f"test_{changed.name}"


def of_changes(changes: list[Path]) -> list[Path]:
    """The test files to run after changes."""
    found = {test for changed in changes for test in answering_for(changed)}
    slow = SLOW - {own_test(changed) for changed in changes}
    return sorted(test for test in found - slow if (ROOT / test).exists())


def of_room(room: Path) -> list[Path]:
    """The test files of a room and the rooms in it; a file is its own room."""
    if room.suffix == ".py":
        return [room]
    found = {each.relative_to(ROOT) for each in (ROOT / room).rglob("test_*.py")}
    return sorted(found - SLOW or found)


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
    if rooms:
        chosen = [test for room in rooms for test in of_room(TESTS / room)]
    else:
        chosen = of_changes(changed_files())
    if not chosen:
        print(
            "nothing to test differs from main, or there is no such room; ROOM=runs/guard names one"
        )
        return 0
    command = [sys.executable, "-m", "pytest", "-q", "-n", "4", "--dist", "worksteal"]
    return subprocess.run(
        [*command, "-m", "not soak", *map(str, chosen)], cwd=ROOT, check=False
    ).returncode


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
