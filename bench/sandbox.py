"""What walls around a command cost, against the same command without them, in the same run."""

import os
import statistics
import subprocess
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path

from bench.table import Row
from stringd.system.sandbox import Bubblewrap, Landlock, Level, Walls, enclose, standard_spec
from stringd.system.sandbox.walls import working_bubblewrap, working_landlock

TITLE = "Sandbox"

COMMANDS = 100
TARGET_MS = 15


def rows() -> Iterator[Row]:
    kinds = {"bubblewrap": working_bubblewrap(), "Landlock and seccomp": working_landlock()}
    for name, walls in kinds.items():
        if isinstance(walls, Bubblewrap | Landlock):
            yield _row(name, walls)
        else:
            yield Row(name, f"not measured: {walls.reason}", "", None, "")


def _row(name: str, walls: Walls) -> Row:
    """Ours and the bare one take turns, so that a busy moment of the machine hits both."""
    ours: list[float] = []
    bare: list[float] = []
    with tempfile.TemporaryDirectory(dir=Path.home()) as folder:
        spec = standard_spec(Level.WORKSPACE, [Path(folder)])
        for _ in range(COMMANDS):
            started = time.perf_counter()
            enclosed = enclose(spec, ["/bin/true"], os.environ, walls)
            subprocess.run(enclosed.argv, env=enclosed.environment, check=True, cwd=folder)
            between = time.perf_counter()
            subprocess.run(["/bin/true"], env=dict(os.environ), check=True, cwd=folder)
            ours.append(between - started)
            bare.append(time.perf_counter() - between)
    mine, peer = statistics.median(ours), statistics.median(bare)
    more = (mine - peer) * 1e3
    return Row(
        f"`true` in a sandbox by {name}, median: {more:.1f} ms more",
        f"{mine * 1e3:.1f} ms",
        f"{peer * 1e3:.1f} ms, `true` without one",
        mine / peer,
        f"≤ {TARGET_MS} ms more",
    )
