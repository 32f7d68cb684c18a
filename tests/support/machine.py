"""`python -m tests.support.machine`: installs the programs the tests drive, or says what stays out.

Only Debian-like machines where we are root are helped; elsewhere the tests that need a missing
program skip themselves and say so.
"""

import os
import shutil
import subprocess

PROGRAMS = {"sudo": "sudo", "zsh": "zsh", "vi": "vim-tiny", "chromium": "chromium"}


def main() -> None:
    missing = [package for program, package in PROGRAMS.items() if shutil.which(program) is None]
    if not missing:
        return
    if os.geteuid() != 0 or shutil.which("apt-get") is None:
        print(f"tests that need these programs will be skipped: {', '.join(missing)}")
        return
    print(f"installing for the tests: {', '.join(missing)}")
    _quietly("apt-get", "update", "-qq")
    install = ("apt-get", "install", "-y", "-qq", "--no-install-recommends")
    # One by one: a package that this distribution lacks must not keep the others out.
    failed = [package for package in missing if _quietly(*install, package) != 0]
    if failed:
        print(f"could not install {', '.join(failed)}; the tests that need them will be skipped")


def _quietly(*command: str) -> int:
    return subprocess.run(command, check=False, capture_output=True).returncode


if __name__ == "__main__":
    main()
