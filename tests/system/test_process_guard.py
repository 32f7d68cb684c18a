"""What a process asks of the kernel for itself, tried by its children."""

import os
import signal
import subprocess
import sys

from tests.support.daemon import WAIT_SECONDS
from tests.system.sandbox.cage import NOBODY


def run(program: str) -> "subprocess.CompletedProcess[str]":
    argv = [sys.executable, "-c", program]
    return subprocess.run(argv, capture_output=True, text=True, timeout=WAIT_SECONDS, check=False)


def test_an_unreadable_process_keeps_its_environment_from_its_children() -> None:
    # Root may read everything, so the pair becomes an ordinary account first.
    program = f"""
import os, subprocess
from stringd.system.process_guard import be_unreadable
if os.geteuid() == 0:
    os.setgroups([]); os.setgid({NOBODY}); os.setuid({NOBODY})
os.environ["KEPT"] = "1"
GUARD
print(subprocess.run(["cat", f"/proc/{{os.getpid()}}/environ"], capture_output=True).returncode)
"""
    assert run(program.replace("GUARD", "assert be_unreadable()")).stdout == "1\n"
    if os.geteuid() != 0:
        assert run(program.replace("GUARD", "")).stdout == "0\n"


def test_a_guarded_child_dies_with_its_parent() -> None:
    child = """
import os, sys, time
from stringd.system.process_guard import die_with_parent
assert die_with_parent(int(sys.argv[1]))
print("guarded", flush=True)
time.sleep(600)
"""
    parent = """
import os, subprocess, sys
child = subprocess.Popen([sys.executable, "-c", sys.argv[1], str(os.getpid())])
child.wait()
"""
    process = subprocess.Popen([sys.executable, "-c", parent, child], stdout=subprocess.PIPE)
    assert process.stdout is not None
    assert process.stdout.readline() == b"guarded\n"
    process.kill()
    # The child holds the pipe open while it lives.
    assert process.communicate(timeout=WAIT_SECONDS)[0] == b""


def test_a_child_whose_parent_is_gone_already_ends_at_once() -> None:
    program = """
from stringd.system.process_guard import die_with_parent
die_with_parent(1 << 22)
"""
    assert run(program).returncode == -signal.SIGKILL
