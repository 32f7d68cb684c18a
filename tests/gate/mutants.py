"""Runs tests against a copy of the package in which one line is different.

A mutant lives in a forked child: nothing is imported twice but our own modules, so that one costs
little more than its test. Programs the test starts see the same copy, through `PYTHONPATH`.
"""

import importlib
import os
import select
import signal
import sys
from pathlib import Path
from typing import NamedTuple

import pytest

import stringd
from tests.support.leftovers import IGNORED

PACKAGE = Path(stringd.__file__).parent
TESTS = Path(__file__).parent
LIMIT_SECONDS = 90
_UNTIDINESS = (
    "ResourceWarning",
    "pytest.PytestUnraisableExceptionWarning",
    "pytest.PytestUnhandledThreadExceptionWarning",
)


class Mutant(NamedTuple):
    """A claim, the line it rests on, what stands there instead, and the test that must fail."""

    claim: str
    module: str
    line: str
    instead: str
    test: str

    @property
    def source(self) -> str:
        """The mutated module. Raises `AssertionError` when the line is not there exactly once."""
        original = (PACKAGE / self.module).read_text(encoding="utf-8")
        count = original.count(self.line)
        assert count == 1, f"{self.module} has this line {count} times, not once: {self.line!r}"
        assert self.instead != self.line
        return original.replace(self.line, self.instead)


def copy_with(mutant: Mutant | None, folder: Path) -> None:
    """The package as links to its files, with one file of its own."""
    target = folder / "stringd"
    _link_all(PACKAGE, target)
    if mutant is None:
        return
    module = target / mutant.module
    if module.parent != target:
        module.parent.unlink()
        _link_all(PACKAGE / Path(mutant.module).parent, module.parent)
    module.unlink()
    module.write_text(mutant.source, encoding="utf-8")


def _link_all(source: Path, target: Path) -> None:
    target.mkdir()
    for entry in source.iterdir():
        (target / entry.name).symlink_to(entry)


def run_against(folder: Path, *tests: str, patience: float) -> tuple[int, str]:
    """pytest's exit code and output for these tests of the room, run on the copy in `folder`."""
    output = folder / "output"
    pid = os.fork()
    if pid == 0:
        code = 70
        try:
            code = _run_as_child(folder, output, tests, patience)
            sys.stdout.flush()
        finally:
            os._exit(code)
    handle = os.pidfd_open(pid)
    try:
        if not select.select([handle], [], [], LIMIT_SECONDS)[0]:
            os.kill(pid, signal.SIGKILL)
        _, status = os.waitpid(pid, 0)
    finally:
        os.close(handle)
    return os.waitstatus_to_exitcode(status), output.read_text(errors="replace")


def _run_as_child(folder: Path, output: Path, tests: tuple[str, ...], patience: float) -> int:
    descriptor = os.open(output, os.O_WRONLY | os.O_CREAT)
    for number in (1, 2):
        os.dup2(descriptor, number)
    sys.stdout = sys.stderr = open(descriptor, "w", closefd=False)  # noqa: SIM115
    # Compiled files are shared with the real package, so none may be written for a changed one.
    sys.dont_write_bytecode = True
    os.environ |= {
        "PYTHONPATH": str(folder),
        "PYTHONDONTWRITEBYTECODE": "1",
        "STRINGD_TEST_PATIENCE": str(patience),
        IGNORED: "1",
    }
    os.environ.pop("PYTEST_XDIST_WORKER", None)
    for name in [*sys.modules]:
        if name.partition(".")[0] in ("stringd", "tests", "conftest"):
            del sys.modules[name]
    sys.path.insert(0, str(folder))
    importlib.invalidate_caches()
    options = [
        "-q",
        "-x",
        "--tb=line",
        "--assert=plain",
        "-p",
        "no:cacheprovider",
        "-p",
        "no:xdist",
    ]
    options += [f"--basetemp={folder / 't'}", f"--rootdir={TESTS.parent.parent}"]
    # A test that fails half way leaves things open; that is not what it is to find.
    options += [f"-Wignore::{name}" for name in _UNTIDINESS]
    return int(pytest.main([*options, *(f"{TESTS / test}" for test in tests)]))
