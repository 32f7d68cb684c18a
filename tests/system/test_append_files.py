"""Files that only grow, on disks that are full and in directories that are shared."""

import asyncio
import os
import subprocess
import sys
import threading
from collections import Counter
from pathlib import Path

import pytest

from stringd.system.append_files import AppendFiles

FULL = """
import resource, signal, sys
from stringd.system.append_files import AppendFiles

signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
files = AppendFiles()
resource.setrlimit(resource.RLIMIT_FSIZE, (10, resource.RLIM_INFINITY))
files.write(sys.argv[1], b"first\\n")
try:
    files.write(sys.argv[1], b"second\\n")
except OSError as error:
    print(error.strerror)
resource.setrlimit(resource.RLIMIT_FSIZE, (resource.RLIM_INFINITY, resource.RLIM_INFINITY))
files.write(sys.argv[1], b"third\\n")
files.close()
"""


def test_a_line_a_full_disk_cut_off_takes_no_other_with_it(tmp_path: Path) -> None:
    path = tmp_path / "lines"
    done = subprocess.run(
        [sys.executable, "-c", FULL, str(path)], capture_output=True, text=True, check=True
    )
    assert path.read_bytes() == b"first\nthird\n"
    assert done.stdout == "No space left on device\n"


def test_a_claim_is_one_process_s_until_it_lets_go(tmp_path: Path) -> None:
    path = str(tmp_path / "lines")
    one, other = AppendFiles(), AppendFiles()
    assert one.claim(path)
    assert one.claim(path)
    assert not other.claim(path)
    one.release(path)
    assert other.claim(path)
    one.close()
    other.close()


def test_a_claimed_file_is_closed_last_and_claimed_again(tmp_path: Path) -> None:
    claimed, others = str(tmp_path / "claimed"), [str(tmp_path / name) for name in "abc"]
    files, other = AppendFiles(max_open=2), AppendFiles()
    assert files.claim(claimed)
    for path in others:
        files.write(path, b"x\n")
    assert not other.claim(claimed)
    small = AppendFiles(max_open=1)
    files.release(claimed)
    assert small.claim(claimed)
    small.write(others[0], b"x\n")
    small.write(claimed, b"x\n")
    assert not other.claim(claimed)
    for each in (files, other, small):
        each.close()


@pytest.mark.anyio
async def test_those_whose_syncs_end_together_go_on_a_few_in_each_turn_of_the_loop(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    number, all_synced = 40, threading.Barrier(5)
    # Each of the four threads comes back for more until the last of them have arrived.
    left = threading.Semaphore(number - 4)

    def synced(_fd: int) -> None:
        if not left.acquire(blocking=False):
            all_synced.wait(60)

    monkeypatch.setattr(os, "fdatasync", synced)
    files, path = AppendFiles(), str(tmp_path / "lines")
    files.write(path, b"x\n")
    turn, woken = 0, Counter[int]()

    async def waiter() -> None:
        await files.sync(path)
        woken[turn] += 1

    waiters = asyncio.gather(*(waiter() for _ in range(number)))
    await asyncio.sleep(0)
    # The loop is held until every sync but the last four has ended.
    all_synced.wait(60)
    while not waiters.done():
        await asyncio.sleep(0)
        turn += 1
    files.close()
    assert woken.total() == number
    assert max(woken.values()) <= 4
