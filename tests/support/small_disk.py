"""A file system of one megabyte that a test can fill, visible to the daemon it starts alone."""

import os
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

import pytest

from tests.support.daemon import WAIT_SECONDS, Daemon

_MOUNT = 'mount -t tmpfs -o size=1m,mode=0700 none "$1" && echo mounted && exec cat'


class SmallDisk:
    """The data directory of a daemon, on a disk of its own. `root` leads there from outside."""

    def __init__(self, daemon: Daemon, holder: int) -> None:
        self.daemon = daemon
        self.root = Path(f"/proc/{holder}/root{daemon.data_dir}")
        daemon.launcher = ("nsenter", f"--target={holder}", "--mount", f"--wd={daemon.directory}")

    def fill(self) -> None:
        """Leave not one page free; files have what is left of their last one (4 KB)."""
        with (self.root / "ballast").open("ab", buffering=0) as file:
            for size in (65536, 512, 1):
                with suppress(OSError):
                    while file.write(b"x" * size):
                        pass

    def clear(self) -> None:
        """Make room again."""
        (self.root / "ballast").unlink()


@contextmanager
def small_disk(daemon: Daemon) -> Iterator[SmallDisk]:
    """Put a daemon that is not started yet on a small disk, which ends with the block."""
    if os.geteuid() != 0:
        pytest.skip("only root can mount a file system")
    daemon.data_dir.mkdir(mode=0o700)
    command = ["unshare", "--mount", "sh", "-c", _MOUNT, "sh", str(daemon.data_dir)]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as holder:
        assert holder.stdin is not None
        assert holder.stdout is not None
        try:
            if holder.stdout.readline() != b"mounted\n":
                pytest.skip("only root can mount a file system, and not everywhere")
            yield SmallDisk(daemon, holder.pid)
        finally:
            holder.stdin.close()
            holder.wait(WAIT_SECONDS)
