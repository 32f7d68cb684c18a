"""Commands that do not come back: reported, continued, interrupted, never a hang."""

import asyncio
import shutil

import pytest

from stringd.runtime.shell.command import ShellLimits
from stringd.runtime.shell.errors import NothingRunningError, ShellBusyError
from stringd.runtime.shell.keys import key_bytes
from stringd.runtime.shell.reply import ShellEnding, ShellReply
from stringd.runtime.shell.shell import Shell
from tests.runtime.shell.conftest import StartShell
from tests.runtime.shell.support import read, write
from tests.support.daemon import WAIT_SECONDS

pytestmark = pytest.mark.anyio

HASTY = ShellLimits(hard=1.0, quiet=60.0, grace=0.5)
QUIET = ShellLimits(hard=60.0, quiet=0.3, grace=0.5)


async def overrun(shell: Shell, text: str) -> ShellReply:
    """Run a command that its time limit ends; only this one has so little time."""
    usual, shell._limits = shell._limits, HASTY
    try:
        return await shell.run(text)
    finally:
        shell._limits = usual


async def works(shell: Shell) -> bool:
    return (await shell.run("echo works")).output == "works"


async def test_cat_without_input_is_reported_as_waiting_and_takes_input(shell: Shell) -> None:
    reply = await shell.run("cat")
    assert (reply.ending, reply.exit_code) == (ShellEnding.WAITING, None)
    assert "//input" in reply.notes[0]
    assert (await shell.type(b"hello\n")).output == "hello"
    done = await shell.type(key_bytes("ctrl-d"))
    assert (done.ending, done.exit_code, done.output) == (ShellEnding.COMPLETED, 0, "")
    assert await works(shell)


async def test_read_gets_a_typed_line(shell: Shell) -> None:
    assert (await shell.run("read -p 'name? ' x")) == ShellReply(
        ShellEnding.WAITING, None, shell.directory, "name?", notes=(await _waiting_note(shell),)
    )
    assert (await shell.type(b"Ada\n")).exit_code == 0
    assert (await shell.run("echo $x")).output == "Ada"


async def _waiting_note(shell: Shell) -> str:
    reply = await shell.wait(0.01)
    assert reply.ending is ShellEnding.WAITING
    return reply.notes[0]


@pytest.mark.skipif(not shutil.which("python3"), reason="python3 is not installed")
async def test_a_python_session_is_driven_line_by_line(shell: Shell) -> None:
    reply = await shell.run("python3 -q")
    assert (reply.ending, reply.output) == (ShellEnding.WAITING, ">>>")
    assert (await shell.type(b"print(6 * 7)\n")).output == "42\n>>>"
    assert (await shell.type(b"exit(3)\n")).exit_code == 3
    assert await works(shell)


@pytest.mark.skipif(not shutil.which("vi"), reason="vi is not installed")
async def test_an_editor_is_left_by_keys(shell: Shell) -> None:
    assert (await shell.run("vi -u NONE new")).ending is ShellEnding.WAITING
    assert (await shell.type(b"ihello")).ending is ShellEnding.WAITING
    reply = await shell.type(key_bytes("escape : w q enter"))
    assert (reply.ending, reply.exit_code) == (ShellEnding.COMPLETED, 0)
    assert (await shell.run("cat new")).output == "hello"


@pytest.mark.skipif(not shutil.which("vi"), reason="vi is not installed")
async def test_an_editor_is_ended_by_kill(shell: Shell) -> None:
    assert (await shell.run("vi -u NONE new")).ending is ShellEnding.WAITING
    assert (await shell.kill()).exit_code == 137
    assert await works(shell)


async def test_a_silent_command_is_reported_and_interrupted(start_shell: StartShell) -> None:
    shell = await start_shell(QUIET)
    reply = await shell.run("echo before; sleep 1000")
    assert (reply.ending, reply.output) == (ShellEnding.RUNNING, "before")
    assert "//wait" in reply.notes[0]
    assert (await shell.type(key_bytes("ctrl-c"))).exit_code == 130
    assert await works(shell)


@pytest.mark.parametrize(
    "text",
    [
        "echo hi; builtin() { :; }",
        "echo hi; builtin() { :; }; enable() { :; }",
        "echo hi; enable -n printf",
        "echo hi; set -o posix; builtin() { :; }",
    ],
)
async def test_a_shell_that_lost_its_means_to_report_is_asked_again(
    shell: Shell, text: str
) -> None:
    reply = await shell.run(text)
    assert (reply.ending, reply.output) == (ShellEnding.COMPLETED, "hi")
    assert "`builtin`" in reply.notes[0]
    assert await works(shell)


async def test_being_asked_again_changes_nothing(start_shell: StartShell) -> None:
    shell = await start_shell(QUIET)
    await shell.run("mkfifo go; shopt >before; shopt -o >>before")
    assert (await shell.run("read x <go; false")).ending is ShellEnding.RUNNING
    await write(shell, "go")
    assert await shell.wait(WAIT_SECONDS) == ShellReply(
        ShellEnding.COMPLETED, 1, shell.directory, ""
    )
    assert (await shell.run("echo $?; (shopt; shopt -o) | diff before -")).output == "1"


async def test_a_key_reaches_a_command_another_caller_waits_for(start_shell: StartShell) -> None:
    shell = await start_shell(ShellLimits(hard=60.0, quiet=60.0, grace=20.0))
    await shell.run("mkfifo started")
    text = "echo working; sh -c 'echo >started; exec sleep 1000'"
    running = asyncio.create_task(shell.run(text))
    await read(shell, "started")
    pressed = await shell.type(key_bytes("ctrl-c"))
    assert (pressed.exit_code, pressed.output) == (130, "")
    assert "another request" in pressed.notes[0]
    reply = await running
    assert (reply.exit_code, reply.output) == (130, "working")


async def test_a_command_another_caller_waits_for_can_be_killed(start_shell: StartShell) -> None:
    shell = await start_shell(ShellLimits(hard=60.0, quiet=60.0, grace=0.4))
    await shell.run("mkfifo started")
    stubborn = "trap '' INT; echo working; echo >started; sleep 1000"
    running = asyncio.create_task(shell.run(f"({stubborn})"))
    await read(shell, "started")
    killed = await shell.kill()
    assert killed.exit_code not in (0, None)
    assert "another request" in killed.notes[0]
    reply = await running
    assert (reply.exit_code, reply.output.partition("\n")[0]) == (killed.exit_code, "working")
    assert await works(shell)


async def test_no_new_command_starts_while_one_runs(start_shell: StartShell) -> None:
    shell = await start_shell(QUIET)
    await shell.run("sleep 1000")
    with pytest.raises(ShellBusyError) as refused:
        await shell.run("echo too early")
    assert refused.value.command == "sleep 1000"
    await shell.kill()
    assert await works(shell)


async def test_waiting_longer_gives_the_rest(start_shell: StartShell) -> None:
    shell = await start_shell(QUIET)
    await shell.run("mkfifo go")
    assert (
        await shell.run("echo one; read x <go; echo two; exit_with() { return 4; }; exit_with")
    )[:2] == (ShellEnding.RUNNING, None)
    still = await shell.wait(0.05)
    assert (still.ending, still.output) == (ShellEnding.RUNNING, "")
    await write(shell, "go")
    reply = await shell.wait(WAIT_SECONDS)
    assert (reply.ending, reply.exit_code, reply.output) == (ShellEnding.COMPLETED, 4, "two")


async def test_an_end_nobody_attended_is_told_afterwards_once(start_shell: StartShell) -> None:
    shell = await start_shell(QUIET)
    await shell.run("mkfifo go; echo ready")
    await shell.run("read x <go; echo finished; false")
    await write(shell, "go")
    assert shell.command is not None
    await shell.command.wait(WAIT_SECONDS)
    reply = await shell.wait(0)
    assert (reply.exit_code, reply.output) == (1, "finished")
    assert (await shell.run("echo next")).output == "next"


async def test_nothing_running_has_nothing_to_continue(shell: Shell) -> None:
    for call in (shell.type(b"x"), shell.kill(), shell.wait(1)):
        with pytest.raises(NothingRunningError):
            await call


@pytest.mark.parametrize(
    "text",
    [
        "sleep 1000",
        "while :; do sleep 0.05; done",
        "while :; do :; done",
        "sleep 1000 | cat | sleep 1001",
        "cat",
        "(trap '' INT; sleep 1000)",
        "bash -c 'trap \"\" INT TERM; while :; do sleep 0.1; done'",
    ],
)
async def test_the_time_limit_ends_a_command_and_keeps_the_shell(shell: Shell, text: str) -> None:
    await shell.run("kept=1; echo quick")
    reply = await overrun(shell, f"echo partial; {text}; echo not reached")
    assert (reply.ending, reply.exit_code) == (ShellEnding.TIMED_OUT, 124)
    assert reply.output.startswith("partial")
    assert "not reached" not in reply.output
    assert "timed out after 1 s" in reply.notes[0]
    assert (await shell.run("echo $kept")).output == "1"


async def test_a_shell_that_cannot_be_interrupted_is_ended_and_says_so(
    shell: Shell,
) -> None:
    reply = await overrun(shell, "trap '' INT; while :; do :; done")
    assert (reply.ending, reply.exit_code) == (ShellEnding.TIMED_OUT, 124)
    assert "killed" in reply.notes[0]
    assert "fresh shell" in reply.notes[1]
    assert shell.ended


async def test_the_time_limit_also_ends_what_nobody_attends(start_shell: StartShell) -> None:
    shell = await start_shell(ShellLimits(hard=2.0, quiet=1.0, grace=0.5))
    assert (await shell.run("cat")).ending is ShellEnding.WAITING
    assert shell.command is not None
    await shell.command.wait(WAIT_SECONDS)
    assert (await shell.wait(0)).exit_code == 124
    assert await works(shell)


async def test_output_after_the_time_limit_reaches_no_later_reply(
    shell: Shell,
) -> None:
    await shell.run("mkfifo go")
    await overrun(shell, "{ trap '' INT; read x <go; echo late; } & sleep 1000")
    await write(shell, "go")
    assert (await shell.run("wait; echo clean")).output.endswith("clean")
    assert (await shell.run("echo next")).output == "next"


async def test_typed_text_nobody_read_does_not_reach_the_next_command(shell: Shell) -> None:
    await shell.run("cat >/dev/null")
    await shell.type(b"first\n")
    shell._terminal.write(b"\x04")
    assert shell.command is not None
    await shell.command.wait(WAIT_SECONDS)
    shell._terminal.write(b"stale\n")
    assert (await shell.run("read x")).ending is ShellEnding.WAITING
    await shell.type(b"fresh\n")
    assert (await shell.run("echo $x")).output == "fresh"


async def test_a_caller_that_leaves_does_not_end_the_command(start_shell: StartShell) -> None:
    shell = await start_shell()
    await shell.run("mkfifo go begun")
    caller = asyncio.create_task(shell.run("echo >begun; read x <go; echo finished"))
    await read(shell, "begun")
    caller.cancel()
    await asyncio.gather(caller, return_exceptions=True)
    await write(shell, "go")
    assert (await shell.wait(WAIT_SECONDS)).output == "finished"
