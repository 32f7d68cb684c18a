"""`python -m tests.support.stress [rounds]`: runs all tests again and again on a busy machine.

An unsteady test fails a round here. Two busy loops take what they can of the processors meanwhile.
Every second round has its home under /tmp. What the rounds print is kept in build/stress.log; a
line a round is printed.
"""

import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Final

ROOT: Final = Path(__file__).parents[2]
LOG: Final = ROOT / "build" / "stress.log"
LOOPS: Final = 2
ROUND_SECONDS: Final = 1800
"""A round that takes longer hangs; it is ended and counts as failed."""

_BUSY: Final = f"""\
import os, time
parent, end = os.getppid(), time.monotonic() + {ROUND_SECONDS}
while os.getppid() == parent and time.monotonic() < end:
    sum(range(100_000))
"""


@contextmanager
def busy_loops() -> Iterator[None]:
    """Programs that only compute. They end with us, whatever happens to us, and by themselves."""
    loops = [subprocess.Popen([sys.executable, "-c", _BUSY]) for _ in range(LOOPS)]
    try:
        yield
    finally:
        for loop in loops:
            loop.kill()
            loop.wait()


def round_passes(home: str) -> bool:
    limit = ("timeout", "-k", "30", str(ROUND_SECONDS))
    pytest = (sys.executable, "-m", "pytest", "-n", "4", "--dist", "worksteal", "-m", "not soak")
    with LOG.open("ab") as log, busy_loops():
        done = subprocess.run(
            (*limit, *pytest),
            cwd=ROOT,
            env={**os.environ, "HOME": home},
            stdout=log,
            stderr=log,
            check=False,
        )
    return done.returncode == 0


def main(rounds: int) -> int:
    LOG.parent.mkdir(exist_ok=True)
    LOG.write_bytes(b"")
    failed = 0
    for number in range(1, rounds + 1):
        with tempfile.TemporaryDirectory(dir="/tmp", ignore_cleanup_errors=True) as elsewhere:
            began = time.monotonic()
            passed = round_passes(str(Path.home()) if number % 2 else elsewhere)
        failed += not passed
        summary = LOG.read_text("utf-8", "replace").rstrip().rpartition("\n")[2].strip("= ")
        words = "passed" if passed else "FAILED"
        print(
            f"{number}/{rounds} {words} in {time.monotonic() - began:.0f} s: {summary}", flush=True
        )
    print(f"{rounds - failed} of {rounds} rounds passed; their output is in build/{LOG.name}")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main(int(sys.argv[1]) if len(sys.argv) > 1 else 10))
