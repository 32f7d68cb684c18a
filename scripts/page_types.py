"""Check the types of the page's modules: `make check`. Skipped where node or npm is missing."""

import shutil
import subprocess
import sys
from pathlib import Path
from typing import Final

ROOT: Final = Path(__file__).parents[1]
TOOLS: Final = ROOT / ".venv" / "page-tools"
TYPESCRIPT: Final = "typescript@5.9.3"


def main() -> int:
    """The compiler's exit code; 0 where it cannot be had."""
    compiler = TOOLS / "node_modules" / "typescript" / "bin" / "tsc"
    node, npm = shutil.which("node"), shutil.which("npm")
    if node is None or npm is None:
        print("node or npm is not installed; the types of the page are not checked")
        return 0
    if not compiler.exists() and not _install(npm):
        print(f"{TYPESCRIPT} cannot be installed; the types of the page are not checked")
        return 0
    config = ROOT / "src" / "stringd" / "page" / "jsconfig.json"
    return subprocess.run([node, str(compiler), "-p", str(config)], check=False).returncode


def _install(npm: str) -> bool:
    # Without the network npm would try for minutes, and again at every check.
    how = ("--no-audit", "--no-fund", "--fetch-retries=1", "--prefix", str(TOOLS))
    TOOLS.mkdir(parents=True, exist_ok=True)
    done = subprocess.run([npm, "install", *how, TYPESCRIPT], capture_output=True, check=False)
    return done.returncode == 0


if __name__ == "__main__":
    sys.exit(main())
