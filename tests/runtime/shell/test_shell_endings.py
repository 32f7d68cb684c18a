"""Shells that end, by themselves or by us: the truth is told and nothing stays behind."""

import asyncio
import os
import shutil
import signal
import sys
from pathlib import Path

import pytest

from stringd.runtime.shell.reply import ShellEnding
from stringd.runtime.shell.shell import Shell
from stringd.system.processes.table import everyone, find, send_signal
from stringd.system.processes.tree import gone
from tests.runtime.shell.conftest import StartShell
from tests.runtime.shell.support import alive, read

pytestmark = pytest.mark.anyio

DAEMONISE = """
import os, sys, time
if os.fork(): os._exit(0)
os.setsid()
if os.fork(): os._exit(0)
open(sys.argv[1], "w").write(str(os.getpid()))
time.sleep(1000)
"""


@pytest.mark.parametrize(
    ("text", "status"),
    [
        ("exit 3", 3),
        ("exit", 0),
        ("set -e; false; echo not reached", 1),
        ("kill -9 $$", 137),
        ("exec sh -c 'exit 5'", 5),
    ],
)
async def test_an_ended_shell_reports_its_status_and_says_so(
    shell: Shell, tmp_path: Path, text: str, status: int
) -> None:
    reply = await shell.run(f"cd /; echo before; {text}")
    assert (reply.ending, reply.exit_code) == (ShellEnding.SHELL_ENDED, status)
    assert reply.output == "before"
    assert reply.cwd == str(tmp_path)
    assert "fresh shell" in reply.notes[0]
    assert shell.ended


async def test_bash_says_no_farewell_of_its_own(shell: Shell) -> None:
    assert (await shell.run("echo exit; printf 'no newline'; exit")).output == "exit\nno newline"


async def test_an_exit_trap_runs_and_its_output_is_in_the_reply(shell: Shell) -> None:
    reply = await shell.run("trap 'echo goodbye' EXIT; echo exit; exit 4")
    assert reply.exit_code == 4
    assert reply.output == "exit\ngoodbye"


@pytest.mark.skipif(not shutil.which("zsh"), reason="zsh is not installed")
async def test_a_shell_that_becomes_another_program_is_followed(shell: Shell) -> None:
    reply = await shell.run("exec zsh -f")
    assert reply.ending is ShellEnding.WAITING
    assert "replaced by `zsh`" in reply.notes[1]
    last = await shell.type(b"echo v$ZSH_VERSION; exit 6\n")
    assert (last.ending, last.exit_code) == (ShellEnding.SHELL_ENDED, 6)


async def test_closing_ends_running_background_and_detached_processes(
    shell: Shell, tmp_path: Path
) -> None:
    pid_file = tmp_path / "pid"
    script = tmp_path / "daemonise.py"
    script.write_text(DAEMONISE)
    reply = await shell.run(
        f"sleep 1000 & echo $!; nohup sleep 1001 >/dev/null 2>&1 & echo $!\n"
        f"setsid sh -c 'echo $$ >left; exec sleep 1002' & (sleep 1003 & echo $!)\n"
        f"env -i {sys.executable} {script} {pid_file}\n"
        f"while ! test -s {pid_file} || ! test -s left; do :; done; cat left {pid_file}"
    )
    pids = [int(line) for line in reply.output.splitlines() if line.isdigit()]
    assert len(pids) == 5
    assert all(map(alive, pids))
    await shell.close()
    assert not any(map(alive, [*pids, shell.pid]))


async def test_closing_ends_a_command_that_ignores_every_polite_signal(shell: Shell) -> None:
    reply = await shell.run("sh -c 'trap \"\" HUP INT TERM; while :; do sleep 1; done' & echo $!")
    stubborn = int(reply.output.splitlines()[-1])
    await shell.close()
    assert not alive(stubborn)


async def test_an_ended_shell_leaves_no_job_behind(shell: Shell) -> None:
    reply = await shell.run("setsid sleep 1000 & echo $!; sleep 1001 & echo $!; kill -9 $$")
    pids = [int(line) for line in reply.output.splitlines() if line.isdigit()]
    assert len(pids) == 2
    assert not any(map(alive, pids))


async def test_closing_harms_no_unrelated_process(start_shell: StartShell) -> None:
    mine, other = await start_shell(), await start_shell()
    await other.run("sleep 1000 & job=$!")
    stranger = await asyncio.create_subprocess_exec("sleep", "1000", start_new_session=True)
    try:
        await mine.run("sleep 1001 &")
        await mine.close()
        assert alive(stranger.pid)
        assert (await other.run("kill -0 $job")).exit_code == 0
    finally:
        stranger.kill()
        await stranger.wait()


async def test_closing_while_a_command_runs_answers_its_caller(shell: Shell) -> None:
    await shell.run("mkfifo begun")
    caller = asyncio.create_task(shell.run("echo >begun; sleep 1000; echo not reached"))
    await read(shell, "begun")
    await shell.close()
    reply = await caller
    assert reply.ending is ShellEnding.SHELL_ENDED
    assert "not reached" not in reply.output
    assert "was closed" in reply.notes[0]


async def test_closing_twice_at_once_is_harmless(shell: Shell) -> None:
    await asyncio.gather(shell.close(), shell.close())
    assert shell.ended


async def test_an_exit_trap_runs_on_closing_too(shell: Shell, tmp_path: Path) -> None:
    await shell.run(f"trap 'echo bye > {tmp_path}/trapped' EXIT")
    await shell.close()
    assert (tmp_path / "trapped").read_text() == "bye\n"


def fork_bomb() -> str:
    """A real one, held by a process limit; the superuser has none and steps down first."""
    bomb = "ulimit -u $(($(ps -eLo uid= | grep -cw $(id -u)) + 40)); :(){ :|:& };:; sleep 1000"
    if os.geteuid() != 0:
        return f"({bomb}) &"
    return f"setpriv --reuid=65534 --regid=65534 --clear-groups bash -c '{bomb}' &"


@pytest.mark.skipif(not shutil.which("setpriv"), reason="setpriv is not installed")
async def test_a_fork_bomb_held_by_a_limit_neither_stops_the_shell_nor_outlives_it(
    shell: Shell,
) -> None:
    await shell.run(fork_bomb())
    assert "alive" in (await shell.run("echo alive")).output
    await shell.close()
    left = [process for process in everyone() if process.session == shell.pid and process.alive]
    assert left == []


async def test_a_process_is_signalled_only_under_its_own_start_time(shell: Shell) -> None:
    reply = await shell.run("sleep 1000 & echo $!")
    process = find(int(reply.output.splitlines()[-1]))
    assert process is not None
    send_signal(process._replace(started=process.started - 1), signal.SIGKILL)
    assert alive(process.pid)
    send_signal(process, signal.SIGKILL)
    await gone([process], 10)
    assert not alive(process.pid)


@pytest.mark.parametrize("ending", ["", "; exit", "; kill -9 $$"])
async def test_ended_processes_leave_no_trace_in_the_process_table(
    shell: Shell, ending: str
) -> None:
    reply = await shell.run(f"sleep 1000 & echo $!; (sleep 1001 & echo $!){ending}")
    pids = [int(line) for line in reply.output.splitlines() if line.isdigit()]
    assert len(pids) == 2
    await shell.close()
    assert [find(pid) for pid in pids] == [None, None]
