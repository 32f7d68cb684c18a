"""Who is above a process, told by the kernel."""

import os
import shutil
import subprocess
from pathlib import Path

from stringd.gate.callers import agent_of, program_of


def test_the_agent_above_a_process_is_named(tmp_path: Path) -> None:
    # A program is called what its file is called.
    agent = tmp_path / "claude"
    shutil.copy("/bin/sh", agent)
    words = [str(agent), "-c", "sh -c 'echo $$; read -r _'; :"]
    with subprocess.Popen(words, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as running:
        assert running.stdout is not None
        pid = int(running.stdout.readline())
        assert agent_of(pid) == f"claude (pid {running.pid})"
        assert agent_of(running.pid) == f"claude (pid {running.pid})"
        running.communicate(b"\n")


def test_a_process_is_a_program_only_for_its_own_account() -> None:
    assert program_of(os.getpid(), os.getuid()).endswith(f"(pid {os.getpid()})")
    assert program_of(os.getpid(), os.getuid() + 1) == ""
    assert program_of(0, os.getuid()) == ""
