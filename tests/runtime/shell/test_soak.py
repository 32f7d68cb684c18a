"""What takes too long for every run."""

import resource

import pytest

from stringd.runtime.shell.shell import Shell
from tests.runtime.shell.conftest import StartShell

pytestmark = [pytest.mark.anyio, pytest.mark.soak]


def peak_megabytes() -> float:
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024


async def test_a_hundred_megabytes_pass_in_bounded_memory(shell: Shell) -> None:
    await shell.run("seq 1 100000")
    before = peak_megabytes()
    reply = await shell.run("seq 1 13000000")
    assert reply.output.endswith("13000000")
    assert shell.command is not None
    assert shell.command.output.transcript.read_lines(6_543_210, 6_543_210) == ["6543210"]
    assert peak_megabytes() - before < 32


async def test_a_thousand_shells_come_and_go(start_shell: StartShell) -> None:
    for number in range(1000):
        shell = await start_shell()
        assert (await shell.run(f"sleep 1000 & echo {number}")).output.endswith(str(number))
        await shell.close()


async def test_ten_thousand_commands_in_one_shell(shell: Shell) -> None:
    for number in range(10_000):
        reply = await shell.run(f"printf '%s' {number}; (exit {number % 200})")
        assert (reply.output, reply.exit_code) == (str(number), number % 200)
