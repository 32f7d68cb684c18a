"""Where CI may skip a test. Anything else that is skipped there fails, and so does a promise that
only skipped tests would prove."""

import os
from collections.abc import Iterator
from typing import Final

import pytest

ALLOWED: Final = (
    # What CI runs as decides which of these are skipped.
    "only root can",
    "only root may",
    "needs root",
    "root reads everything",
    "the kernel exempts root",
    # Debian's package comes only where CI is root.
    "sshd is not installed",
    # It comes from npm, and only for the long tests.
    "Claude Code could not be installed",
    "Codex could not be installed",
    "claude could not be installed",
    "codex could not be installed",
    # Kernels and file systems differ, and CI does not choose them.
    "this kernel has no such protocol",
    "this file system keeps no attributes",
    "this file system knows no nameless files",
    "the file system of the temporary folder has no nameless files",
    "this kernel's Landlock lets signals out",
    # These say of one kind of walls what it does not do; the other kinds are tested.
    "Landlock alone does not judge this",
    "Landlock's limit counts the whole account",
)
"""How the reasons of these skips begin."""


def in_ci() -> bool:
    return os.environ.get("CI", "") not in ("", "0", "false")


def refused(report: pytest.TestReport) -> str | None:
    """The reason of a skip that CI does not accept."""
    if not report.skipped or hasattr(report, "wasxfail"):
        return None
    said = report.longrepr[2] if isinstance(report.longrepr, tuple) else str(report.longrepr)
    reason = said.removeprefix("Skipped: ")
    return None if reason.startswith(ALLOWED) else reason


class Promises:
    """Which requirement ids the tests of a session proved, and which were only skipped."""

    def __init__(self) -> None:
        self._proved: set[str] = set()
        self._skipped: set[str] = set()

    def note(self, report: pytest.TestReport) -> None:
        ids = {str(value) for name, value in report.user_properties if name == "proves"}
        if report.skipped:
            self._skipped |= ids
        elif report.when == "call" and report.passed:
            self._proved |= ids

    @property
    def unproved(self) -> list[str]:
        return sorted(self._skipped - self._proved)


def ids_of(item: pytest.Item) -> Iterator[str]:
    for mark in item.iter_markers("proves"):
        yield from mark.args
