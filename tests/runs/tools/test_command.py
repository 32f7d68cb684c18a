"""`run_command`: own group, clean environment, time limit, nothing left behind."""

import os
import secrets
from contextlib import suppress
from pathlib import Path

import pytest

from tests.runs.support import RunsServer, Watcher, serving, wait_until
from tests.runs.tools.support import start, use

pytestmark = pytest.mark.anyio


def runs(token: str) -> bool:
    """Whether a process with this argument runs; ids inside a sandbox are not those outside."""
    for entry in Path("/proc").iterdir():
        if entry.name.isdigit():
            with suppress(OSError):
                if token.encode() in (entry / "cmdline").read_bytes().split(b"\0"):
                    return True
    return False


def seconds() -> str:
    """An argument for `sleep` that no other test uses."""
    return f"600.{secrets.randbelow(10**12):012}"


async def test_output_and_exit_code_are_told(
    server: RunsServer, watcher: Watcher, tmp_path: Path
) -> None:
    command = "echo out; echo err >&2; exit 3"
    used = await use(server, watcher, tmp_path, ("run_command", {"command": command}))
    assert used.output == "STATUS: FAILED\nEXIT CODE: 3\nSTDOUT:\nout\nSTDERR:\nerr"
    used = await use(server, watcher, tmp_path, ("run_command", {"command": "pwd"}), run_id="r2")
    assert used.output.startswith(f"STATUS: SUCCESS\nEXIT CODE: 0\nSTDOUT:\n{tmp_path}\n")


async def test_secrets_of_the_daemon_do_not_reach_children(
    server: RunsServer, watcher: Watcher, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", "sk-marker-marker")
    args = {"command": "env", "env": {"MINE": "yes"}}
    used = await use(server, watcher, tmp_path, ("run_command", args))
    assert "sk-marker" not in used.output
    assert "MINE=yes" in used.output
    assert "STRINGD_RUN_ID=r" in used.output
    assert "GIT_TERMINAL_PROMPT=0" in used.output


async def test_a_command_past_its_time_is_ended_with_what_it_printed(
    server: RunsServer, watcher: Watcher, tmp_path: Path
) -> None:
    token = seconds()
    # Longer than the walls need, on any machine, to start the command.
    args = {"command": f"echo begun; sleep {token}", "timeoutMs": 5000}
    used = await use(server, watcher, tmp_path, ("run_command", args))
    assert "TIMED OUT after 5 s" in used.output
    assert "begun" in used.output
    await wait_until(lambda: not runs(token))


async def test_background_jobs_end_with_their_command(
    server: RunsServer, watcher: Watcher, tmp_path: Path
) -> None:
    token = seconds()
    args = {"command": f"sleep {token} & echo begun"}
    used = await use(server, watcher, tmp_path, ("run_command", args))
    assert "begun" in used.output
    await wait_until(lambda: not runs(token))


async def test_stopping_the_run_kills_the_command(
    server: RunsServer, watcher: Watcher, tmp_path: Path
) -> None:
    token = seconds()
    args = {"command": f"trap '' TERM; touch begun; sleep {token}"}
    await start(server, watcher, tmp_path, ("run_command", args))
    await wait_until((tmp_path / "begun").exists)
    await watcher.send("stop_run", runId="r")
    assert (await watcher.ended())["error"]["code"] == "CANCELLED"
    await wait_until(lambda: not runs(token))


async def test_endless_output_is_cut_at_its_beginning(
    server: RunsServer, watcher: Watcher, tmp_path: Path
) -> None:
    args = {"command": "seq 1 400000; echo last"}
    used = await use(server, watcher, tmp_path, ("run_command", args))
    assert "(the beginning was cut)" in used.output
    assert "\nlast\nSTDERR:" in used.output
    assert len(used.output) < 250_000


async def test_the_owner_can_have_every_command_asked_about(tmp_path: Path) -> None:
    async with serving(tmp_path, approve_commands=["."]) as server:
        watcher = await server.watcher()
        call = ("run_command", {"command": "touch ran"})
        used = await use(server, watcher, tmp_path, call, decisions=["deny"])
        request = used.of("request_permission")[0]
        assert (request["operation"], request["resource"]) == ("fs.exec", "touch ran")
        assert request["details"]["command"] == "touch ran"
        assert not (tmp_path / "ran").exists()
        used = await use(
            server, watcher, tmp_path, call, call, decisions=["allow-session"], run_id="r2"
        )
        assert used.output.startswith("STATUS: SUCCESS")


async def test_the_command_gets_no_terminal_and_no_input(
    server: RunsServer, watcher: Watcher, tmp_path: Path
) -> None:
    args = {"command": "tty; cat; ps -o pgid= -p $$ 2>/dev/null || true"}
    used = await use(server, watcher, tmp_path, ("run_command", args))
    assert "not a tty" in used.output
    assert str(os.getpgid(0)) not in used.output.split()
