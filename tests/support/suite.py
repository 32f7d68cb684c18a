"""`python -m tests.support.suite`: the whole test suite, from the folder of the project.

The tests run side by side and fight over two cores. One that fails there is run once more by
itself: what fails again is broken; what passes is named at the end as unsteady, which is a fault of
the test that its owner fixes, but not a reason to tell a stranger that the program is broken.
"""

import json
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Final

TOGETHER: Final = ("-m", "not soak", "--dist", "worksteal")
TESTS_FAILED: Final = 1
MOST_UNSTEADY: Final = 5
"""More failures than this are a broken program."""


def main(arguments: list[str]) -> int:
    with tempfile.TemporaryDirectory() as cache:
        code = pytest(*TOGETHER, "-o", f"cache_dir={cache}", *arguments)
        failed = failures(Path(cache))
    if code != TESTS_FAILED or not 0 < len(failed) <= MOST_UNSTEADY:
        return code
    print(f"\nOnce more, each by itself: {', '.join(failed)}\n", flush=True)
    broken = [test for test in failed if pytest("-p", "no:cacheprovider", test) != 0]
    for test in failed:
        print(f"{'FAILED TWICE' if test in broken else 'UNSTEADY'} {test}")
    return TESTS_FAILED if broken else 0


def pytest(*arguments: str) -> int:
    running = subprocess.Popen([sys.executable, "-m", "pytest", *arguments])
    while True:
        try:
            return running.wait()
        except KeyboardInterrupt:
            continue  # Ctrl-C reaches pytest too, which stops what its tests have started.


def failures(cache: Path) -> list[str]:
    """What pytest noted as failed in its cache folder."""
    noted = cache / "v" / "cache" / "lastfailed"
    return sorted(json.loads(noted.read_text(encoding="utf-8"))) if noted.exists() else []


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
