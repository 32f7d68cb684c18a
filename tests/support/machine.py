"""`python -m tests.support.machine`: installs the programs the tests drive, or says what stays out.

Debian's programs come only where we are root, the MCP inspector only where npm reaches its
registry. The tests that need what is missing skip themselves and say so.
"""

import os
import shutil
import subprocess
import sys
from pathlib import Path

PROGRAMS = {
    "bwrap": "bubblewrap",
    "chromium": "chromium",
    "curl": "curl",
    "node": "nodejs",
    "npm": "npm",
    "setpriv": "util-linux",
    "sshd": "openssh-server",
    "sudo": "sudo",
    "tmux": "tmux",
    "vi": "vim-tiny",
    "zsh": "zsh",
}
"""What tests run, and the package it comes in."""
SYSTEM_PATH = f"{os.environ.get('PATH', os.defpath)}:/usr/sbin:/sbin"

INSPECTOR_VERSION = "2.12.0"
INSPECTOR = Path(sys.prefix, f"inspector-{INSPECTOR_VERSION}")
INSPECTOR_BIN = INSPECTOR / "node_modules" / ".bin"
"""Beside the inspector lies the Node.js it wants: newer than what distributions have."""
INSTALL_SECONDS = 300


def main() -> None:
    _programs()
    _inspector()


def _programs() -> None:
    missing = [package for program, package in PROGRAMS.items() if not found(program)]
    if not missing:
        return
    if os.geteuid() != 0 or shutil.which("apt-get") is None:
        print(f"tests that need these programs will be skipped: {', '.join(missing)}")
        return
    print(f"installing for the tests: {', '.join(missing)}")
    _quietly("apt-get", "update", "-qq")
    install = ("apt-get", "install", "-y", "-qq", "--no-install-recommends")
    # One by one: a package that this distribution lacks must not keep the others out.
    failed = [package for package in missing if not _quietly(*install, package)]
    if failed:
        print(f"could not install {', '.join(failed)}; the tests that need them will be skipped")


def found(program: str) -> str | None:
    """Where a program is, be it one that only root usually runs."""
    return shutil.which(program, path=SYSTEM_PATH)


def _inspector() -> None:
    if INSPECTOR.exists():
        return
    if shutil.which("npm") is None:
        print("npm is not installed; the tests with the MCP inspector will be skipped")
        return
    print(f"installing for the tests: the MCP inspector {INSPECTOR_VERSION}")
    packages = ("node@24.21.0", f"@modelcontextprotocol/inspector@{INSPECTOR_VERSION}")
    half = INSPECTOR.with_name(f"{INSPECTOR.name}.new")
    shutil.rmtree(half, ignore_errors=True)
    half.mkdir()
    # Without the network npm would try for minutes, and again at every run of the tests.
    install = ("npm", "install", "--no-audit", "--no-fund", "--fetch-retries=1", "--prefix")
    if _quietly(*install, str(half), *packages):
        half.rename(INSPECTOR)
    else:
        print("could not install the MCP inspector; the tests with it will be skipped")


def _quietly(*command: str) -> bool:
    """Run a command without showing what it says; whether it succeeded."""
    try:
        done = subprocess.run(command, check=False, capture_output=True, timeout=INSTALL_SECONDS)
    except subprocess.TimeoutExpired:
        return False
    return done.returncode == 0


if __name__ == "__main__":
    main()
