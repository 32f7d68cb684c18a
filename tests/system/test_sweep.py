"""What a daemon started is told from everything else by its marks."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

import stringd.system.sweep as sweep
from stringd.system.keeper import RECORDS, DaemonRecord, sweep_killed
from stringd.system.lineage import Marks
from stringd.system.processes.table import find
from tests.requirements import proves

# A daemon with two daemons inside, each of which has started something.
FAMILY = """
import json, os, subprocess, sys
from stringd.system.lineage import mark_descendants
marks = mark_descendants()
inner = "from stringd.system.lineage import *; import os, json, subprocess; m = mark_descendants();"
inner += "c = subprocess.Popen(['sleep', '1000']); print(json.dumps([*m, c.pid]), flush=True);"
inner += "input()"
below = [subprocess.Popen([sys.executable, "-c", inner], stdin=-1, stdout=-1) for _ in range(2)]
print(json.dumps([[*marks], *(json.loads(each.stdout.readline()) for each in below)]), flush=True)
input()
"""


@proves("TRUST-16")
def test_a_daemon_inside_another_ends_its_own_and_the_outer_one_all() -> None:
    outer = subprocess.Popen(
        [sys.executable, "-c", FAMILY], stdin=subprocess.PIPE, stdout=subprocess.PIPE
    )
    assert outer.stdout is not None
    (lowest, highest), (*one, first), (*two, second) = json.loads(outer.stdout.readline())
    started = find(outer.pid)
    assert started is not None
    since = started.started
    assert first in pids(Marks(*one), since)
    assert second not in pids(Marks(*one), since)
    assert second in pids(Marks(*two), since)
    assert pids(Marks(lowest, highest), since) >= {first, second, outer.pid}
    assert pids(Marks(lowest, highest), since + 10**9) == set()
    assert os.getpid() not in pids(Marks(lowest, highest), since)
    sweep.end_started(Marks(*one), since)
    assert find(second) is not None
    sweep.end_started(Marks(lowest, highest), since)
    outer.communicate()
    assert outer.returncode != 0


def pids(marks: Marks, since: int) -> set[int]:
    return {process.pid for process in sweep.started(marks, since)}


@proves("TRUST-16")
def test_directories_of_its_sandboxes_are_removed_and_no_others(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sweep, "TEMPORARY", tmp_path)
    marks = Marks(2**61, 2**61 + 2**30 - 1)
    ours = f"stringd-{marks.highest - 5:x}-0123456789abcdef"
    others = [f"stringd-{marks.highest + 5:x}-0123", "stringd-mine-x", "stringd-77-x", "other"]
    for name in (ours, *others):
        (tmp_path / name).mkdir()
        (tmp_path / name / "file").touch()
    (tmp_path / f"{ours}-link").symlink_to(tmp_path / "other")
    sweep.remove_temporary(marks)
    left = sorted(path.name for path in tmp_path.iterdir())
    assert left == sorted([*others, f"{ours}-link"])
    assert (tmp_path / "other" / "file").exists()


@proves("TRUST-16")
@pytest.mark.parametrize(
    "text",
    ["", "[]", "{}", '{"lowest": 0, "highest": 9e99, "started": 0, "boot": ""}'],
)
def test_a_record_that_says_nothing_useful_ends_nothing(tmp_path: Path, text: str) -> None:
    (tmp_path / RECORDS).mkdir()
    path = tmp_path / RECORDS / "x.json"
    path.write_text(text, "utf-8")
    assert sweep_killed(tmp_path) == 0
    assert not path.exists()


@proves("TRUST-16")
def test_a_record_of_an_earlier_start_of_the_machine_ends_nothing(tmp_path: Path) -> None:
    (tmp_path / RECORDS).mkdir()
    path = tmp_path / RECORDS / "x.json"
    record = DaemonRecord(2**61, 2**61 + 2**30 - 1, 0, "another boot")
    path.write_text(json.dumps(record._asdict()), "utf-8")
    assert sweep_killed(tmp_path) == 0
    assert not path.exists()
