"""`execute`: what the model reads about a human's decision, and that none is made for them."""

import asyncio
import os
from collections.abc import Iterator
from pathlib import Path

import pytest

from stringd.client.gate_words import gate_words
from stringd.gate.decide import Event, KeyAnswer
from stringd.gate.question import Question
from stringd.wire.gate import Blob, Response, Stage, Status
from tests.gate.support import Desk, Human, serving
from tests.mcp.support import Connect, Pipe, posted, text, until
from tests.requirements import proves
from tests.support.daemon import WAIT_SECONDS, Daemon
from tests.support.http import Wire


@pytest.fixture
def desk(tmp_path: Path) -> Iterator[Desk]:
    with serving(tmp_path, Human()) as running:
        yield running


@pytest.mark.anyio
async def test_an_approved_command_answers_with_its_output(
    daemon: Daemon, connect: Connect, desk: Desk
) -> None:
    asked = {"argv": ["echo", "hello"], "privileged": False, "description": "to greet"}
    async with connect(daemon, gate=str(desk.path)) as client:
        result = await client.call_tool("execute", asked)
    assert (text(result), result.is_error) == ("hello\n", False)
    [question] = desk.human.asked
    assert "to greet" in str(question)


@pytest.mark.anyio
async def test_a_gate_started_in_the_callers_project_is_found(
    daemon: Daemon, connect: Connect, tmp_path: Path
) -> None:
    (tmp_path / ".stringd").mkdir()
    with serving(tmp_path / ".stringd", Human()):
        async with connect(daemon, cwd=str(tmp_path)) as client:
            asked = {"argv": ["echo", "found"], "privileged": False}
            assert text(await client.call_tool("execute", asked)) == "found\n"


@proves("MCP-15")
@pytest.mark.anyio
async def test_a_denial_tells_the_model_to_stop(
    daemon: Daemon, connect: Connect, desk: Desk, tmp_path: Path
) -> None:
    def refuse(_question: Question) -> KeyAnswer:
        return KeyAnswer(Event.NO, by="test")

    desk.human.decide = refuse
    marker = tmp_path / "marker"
    asked = {"argv": ["touch", str(marker)], "privileged": False}
    async with connect(daemon, gate=str(desk.path)) as client:
        result = await client.call_tool("execute", asked)
    assert result.is_error
    assert text(result).startswith("Request denied by user.")
    assert "another way" in text(result)
    assert not marker.exists()


@proves("MCP-16")
@pytest.mark.anyio
async def test_silence_is_not_consent(
    daemon: Daemon, connect: Connect, desk: Desk, tmp_path: Path
) -> None:
    def stay_away(_question: Question) -> KeyAnswer:
        return KeyAnswer(Event.SILENCE, by="test")

    desk.human.decide = stay_away
    marker = tmp_path / "marker"
    asked = {"argv": ["touch", str(marker)], "privileged": False}
    async with connect(daemon, gate=str(desk.path)) as client:
        result = await client.call_tool("execute", asked)
    assert result.is_error
    assert text(result).startswith("Request timed out waiting for user approval.")
    assert "silence is not consent" in text(result)
    assert not marker.exists()


@proves("MCP-14")
@pytest.mark.anyio
async def test_without_a_gate_the_model_is_told_whom_to_ask(
    daemon: Daemon, connect: Connect, tmp_path: Path
) -> None:
    async with connect(daemon, gate=str(tmp_path / "nowhere")) as client:
        result = await client.call_tool("execute", {})
    assert result.is_error
    assert f"stringd gate is not running (socket not found at {tmp_path}/nowhere)" in text(result)
    assert f"ask them to run `stringd gate --socket {tmp_path}/nowhere` in" in text(result)
    assert "another way" in text(result)


@proves("MCP-14")
@pytest.mark.anyio
async def test_unusable_requests_are_refused_before_anybody_is_asked(
    daemon: Daemon, connect: Connect, desk: Desk
) -> None:
    async with connect(daemon, gate=str(desk.path)) as client:
        nothing = await client.call_tool("execute", {})
        keys = await client.call_tool("execute", {"argv": ["id"], "forward_agent": True})
        shape = await client.call_tool("execute", {"argv": "id"})
        unknown = await client.call_tool("execute", {"argv": ["id"], "approve": True})
    assert text(nothing) == "Either `argv` or `pipeline` must be provided."
    assert text(keys) == "forward_agent is only allowed with privileged: false"
    assert all(each.is_error for each in (nothing, keys, shape, unknown))
    assert desk.human.asked == []


def test_the_question_says_which_client_asks_and_where_it_works(daemon: Daemon, desk: Desk) -> None:
    with Pipe(daemon, STRINGD_GATE_SOCKET=str(desk.path)) as pipe:
        about = {"name": "code\x1bfriend", "version": "2.1"}
        pipe.call("initialize", protocolVersion="2025-06-18", capabilities={}, clientInfo=about)
        pipe.call("tools/call", name="execute", arguments={"argv": ["true"], "privileged": False})
    [question] = desk.human.asked
    assert question.request.client == "code?friend 2.1"
    assert question.request.directory == str(daemon.directory)
    # We started it, so we are the client.
    assert f"(pid {os.getpid()})" in question.peer.behind


@pytest.mark.anyio
async def test_a_client_without_our_bridge_is_known_by_the_kernel(
    daemon: Daemon, connect: Connect, desk: Desk
) -> None:
    async with connect(daemon, gate=str(desk.path)) as client:
        await client.call_tool("execute", {"argv": ["true"], "privileged": False})
    [question] = desk.human.asked
    assert f"(pid {os.getpid()})" in question.peer.behind


@pytest.mark.anyio
async def test_a_caller_that_leaves_takes_its_question_along(
    daemon: Daemon, tmp_path: Path
) -> None:
    marker = tmp_path / "marker"
    with serving(tmp_path, Human(), at_liberty=False) as desk:
        arguments = {"argv": ["touch", str(marker)], "privileged": False}
        params = {"name": "execute", "arguments": arguments}
        message = {"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": params}
        with Wire(daemon.port) as wire:
            wire.send(posted(daemon.port, message, {"X-Stringd-Gate-Socket": str(desk.path)}))
            await until(lambda: desk.human.asked)
        await until(lambda: desk.human.waiting == 0 and "gone" in desk.audit.read_text())
        desk.human.at_liberty.set()
    assert not marker.exists()


@pytest.mark.anyio
async def test_a_client_that_crashed_takes_its_question_along(
    daemon: Daemon, tmp_path: Path
) -> None:
    with (
        serving(tmp_path, Human(), at_liberty=False) as desk,
        Pipe(daemon, STRINGD_GATE_SOCKET=str(desk.path)) as pipe,
    ):
        pipe.initialize()
        pipe.ask("tools/call", name="execute", arguments={"argv": ["id"], "privileged": False})
        await until(lambda: desk.human.asked)
        assert pipe.process.stdin is not None
        assert pipe.process.stdout is not None
        pipe.process.stdin.close()
        pipe.process.stdout.close()
        await until(lambda: desk.human.waiting == 0 and "gone" in desk.audit.read_text())
        assert await asyncio.to_thread(pipe.process.wait, WAIT_SECONDS) == 0
        desk.human.at_liberty.set()


def parts(*stages: Stage, stdout: bytes = b"", truncated: bool = False) -> tuple[str, ...]:
    response = Response("1", Status.OK, stages, Blob(stdout), stdout_truncated=truncated)
    return gate_words(response).parts


def test_silent_success_shows_the_exit_code() -> None:
    assert parts(Stage(0)) == ("[exit code: 0]",)


@proves("MCP-22")
def test_output_errors_and_codes_are_told_apart() -> None:
    assert parts(Stage(3, Blob(b"oh")), stdout=b"out") == ("out", "[stderr]\noh", "[exit code: 3]")
    several = parts(Stage(1, Blob(b"a")), Stage(0, Blob(b"b")), stdout=b"out")
    assert several == ("out", "[stderr stage 0]\na", "[stderr stage 1]\nb", "[exit codes: 1, 0]")


@proves("MCP-22")
def test_what_was_cut_off_or_killed_is_said() -> None:
    assert parts(Stage(0), stdout=b"x", truncated=True) == ("x", "[stdout truncated at 16 MiB]")
    killed = parts(Stage(-1, signal=9, stderr_truncated=True))
    assert killed == (
        "[stage 0: stderr truncated at 16 MiB]",
        "[stage 0: ended by signal 9]",
        "[exit code: -1]",
    )


def test_only_the_last_command_decides_whether_it_failed() -> None:
    assert not gate_words(Response("1", Status.OK, (Stage(1), Stage(0)))).is_error
    assert gate_words(Response("1", Status.OK, (Stage(0), Stage(1)))).is_error


def test_an_error_of_the_gate_names_both_versions() -> None:
    told = gate_words(Response("1", Status.ERROR, message="replayed id"))
    assert told.is_error
    assert told.parts[0].startswith("Error from stringd gate unknown (client stringd-mcp ")
    assert told.parts[0].endswith(": replayed id")


def test_what_the_human_added_reaches_the_model() -> None:
    denied = Response("1", Status.DENIED, decision_note="use the staging host")
    assert gate_words(denied).parts[0].endswith("The user added: use the staging host")
