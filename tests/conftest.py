"""Fixtures every room shares, and what makes a session fail besides its tests."""

import os
import signal
from collections.abc import Generator, Iterator
from typing import Final

import hypothesis
import pytest

from stringd.system.workers import end_workers
from tests.support.leftovers import IGNORED, Snapshot
from tests.support.skips import Promises, ids_of, in_ci, refused

# A shell that starts us in the background ignores Ctrl-C for us and for every program we start.
if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
    signal.signal(signal.SIGINT, signal.default_int_handler)

# A property holds or not; how long it takes depends on what else the machine does.
# `make test` tries the same examples everywhere; `make soak` explores new ones.
hypothesis.settings.register_profile("stringd", deadline=None, derandomize=True, database=None)
hypothesis.settings.register_profile("explore", deadline=None, print_blob=True)
hypothesis.settings.load_profile("stringd")

_promises: Final = Promises()
_UMASK: Final = os.umask(0o022)
os.umask(_UMASK)


@pytest.fixture(autouse=True)
def umask_of_the_session() -> Iterator[None]:
    """A gate inside the test process narrows the umask, which is not the next test's business."""
    os.umask(_UMASK)
    yield
    os.umask(_UMASK)


@pytest.fixture(autouse=True)
def nothing_left_over() -> Iterator[None]:
    """Fail the test that leaves a program running or a socket open, and no later one.

    Wider fixtures are set up before this one, so what they keep is known to it.
    """
    before = Snapshot()
    yield
    end_workers()
    left = before.leftovers() if IGNORED not in os.environ else []
    assert left == [], "the test left these behind"


@pytest.fixture
def anyio_backend() -> str:
    """Async tests run on asyncio: it is what the daemon runs on."""
    return "asyncio"


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    for item in items:
        item.user_properties += [("proves", key) for key in ids_of(item)]


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport() -> Generator[None, pytest.TestReport, pytest.TestReport]:
    """In CI a skip is a failure unless it is on the list."""
    report = yield
    reason = refused(report) if in_ci() else None
    if reason is not None:
        report.outcome = "failed"
        report.longrepr = f"skipped, which CI does not accept: {reason}"
    return report


def pytest_runtest_logreport(report: pytest.TestReport) -> None:
    _promises.note(report)


def pytest_sessionfinish(session: pytest.Session) -> None:
    """In CI a promise needs a test that ran; workers of a session know only a part of it."""
    if in_ci() and _promises.unproved and not hasattr(session.config, "workerinput"):
        session.exitstatus = pytest.ExitCode.TESTS_FAILED


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    if in_ci() and _promises.unproved:
        terminalreporter.section("promises that only skipped tests would prove", red=True)
        terminalreporter.line(", ".join(_promises.unproved))
