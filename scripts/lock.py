"""`make lock`: writes requirements.lock, the versions that every checkout is tested with.

A fresh environment gets the newest versions that pyproject.toml allows; the lock is what came.
"""

import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Final

ROOT: Final = Path(__file__).parents[1]
HEAD: Final = "# What make installs and the tests run with. `make lock` writes this file.\n"


def main() -> None:
    with tempfile.TemporaryDirectory() as folder:
        subprocess.run([sys.executable, "-m", "venv", folder], check=True)
        pip = (f"{folder}/bin/python", "-m", "pip", "--disable-pip-version-check")
        subprocess.run([*pip, "install", "-q", f"{ROOT}[all,dev]"], check=True)
        freeze = [*pip, "freeze", "--exclude", "stringd"]
        found = subprocess.run(freeze, check=True, capture_output=True, text=True).stdout
    (ROOT / "requirements.lock").write_text(HEAD + found, "utf-8")


if __name__ == "__main__":
    main()
