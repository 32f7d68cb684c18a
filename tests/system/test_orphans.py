"""Processes that were handed to us are collected, and only those."""

import os
import select
import subprocess

import pytest

from stringd.system.processes import orphans
from stringd.system.processes.table import find
from tests.support.daemon import WAIT_SECONDS


def wait_for_end(pid: int) -> None:
    handle = os.pidfd_open(pid)
    try:
        assert select.select([handle], [], [], WAIT_SECONDS)[0]
    finally:
        os.close(handle)


def orphan() -> int:
    """A process whose parent has left, and that has ended since."""
    orphans.adopt_orphans()
    # A shell gives what it starts in the background no input of its own; 3 is ours.
    script = "exec 3<&0; sh -c 'read _' <&3 3<&- > /dev/null 2>&1 & echo $!"
    with subprocess.Popen(
        ["sh", "-c", script], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    ) as parent:
        assert parent.stdout is not None
        pid = int(parent.stdout.readline())
        parent.wait(WAIT_SECONDS)
    # Leaving has closed what it reads from.
    wait_for_end(pid)
    return pid


def test_one_that_ended_long_ago_is_collected(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(orphans, "_ABANDONED_SECONDS", -1.0)
    pid = orphan()
    assert find(pid) is not None
    orphans.collect_abandoned()
    assert find(pid) is None


def test_one_that_has_just_ended_is_left_to_whoever_may_wait_for_it() -> None:
    with subprocess.Popen(["true"]) as child:
        wait_for_end(child.pid)
        orphans.collect_abandoned()
        assert find(child.pid) is not None
        assert child.wait() == 0
