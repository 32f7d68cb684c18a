"""Minimal independent clients: bare HTTP and bare JSON lines, no SDK on their side."""

import json
import os
from pathlib import Path

import pytest

from stringd import __version__
from stringd.client.mcp import sse_data
from tests.mcp.support import ACCEPT, Pipe, answer_of, post
from tests.requirements import proves
from tests.support.commands import Terminal, environment, run
from tests.support.daemon import WAIT_SECONDS, Daemon, free_port
from tests.support.http import Wire, request

INITIALIZE = {
    "jsonrpc": "2.0",
    "id": 0,
    "method": "initialize",
    "params": {
        "protocolVersion": "2025-03-26",
        "capabilities": {},
        "clientInfo": {"name": "bare", "version": "1"},
    },
}


def call(name: str, **arguments: str) -> dict[str, object]:
    params = {"name": name, "arguments": arguments}
    return {"jsonrpc": "2.0", "id": 7, "method": "tools/call", "params": params}


def test_a_client_that_stands_in_the_root_vouches_for_nothing(
    daemon: Daemon, tmp_path: Path
) -> None:
    (tmp_path / "page.md").write_text("# Page\n", "utf-8")
    asked = json.dumps(call("string", topic="file:root", cmd=f"/open {tmp_path}/page.md"))
    env = environment(daemon)
    from_root = run("stringd", "mcp", env=env, stdin=asked.encode(), cwd=Path("/"))
    assert "ERROR(FILE_NOT_ALLOWED)" in from_root.out
    from_project = run("stringd", "mcp", env=env, stdin=asked.encode(), cwd=tmp_path)
    assert "# Page" in from_project.out


def test_a_person_who_types_the_clients_line_is_told_so(daemon: Daemon) -> None:
    with Terminal("--mcp", env=environment(daemon)) as terminal:
        terminal.until("an MCP client starts this program; see stringd mcp --help")
        terminal.type("\x03")
        assert terminal.end() == 130


@proves("MCP-09")
def test_a_handshake_and_a_call_over_bare_http(daemon: Daemon) -> None:
    hello = answer_of(post(daemon.port, INITIALIZE))
    assert hello["result"]["serverInfo"] == {"name": "string", "version": __version__}
    assert hello["result"]["protocolVersion"] == "2025-03-26"
    notified = {"jsonrpc": "2.0", "method": "notifications/initialized"}
    assert post(daemon.port, notified).status == 202
    result = answer_of(post(daemon.port, call("string", topic="main", cmd="/info")))["result"]
    assert result["isError"] is False
    assert result["content"][0]["text"].startswith("<𝒞=string:file:main>\n")


@proves("MCP-09")
def test_no_session_is_kept(daemon: Daemon) -> None:
    reply = post(daemon.port, INITIALIZE)
    assert "mcp-session-id" not in {name.lower() for name in reply.headers}
    for method in ("GET", "DELETE"):
        refused = request(daemon.port, method, "/mcp", headers={"Accept": ACCEPT})
        assert refused.status == 405
        assert "POST" in refused.headers["Allow"]


def test_one_connection_carries_many_calls(daemon: Daemon) -> None:
    body = json.dumps(call("string", topic="main", cmd="/info")).encode()
    head = (
        f"POST /mcp HTTP/1.1\r\nHost: 127.0.0.1:{daemon.port}\r\nAccept: {ACCEPT}\r\n"
        f"Content-Type: application/json\r\nContent-Length: {len(body)}\r\n\r\n"
    )
    with Wire(daemon.port) as wire:
        for _ in range(3):
            answer = wire.send(head.encode() + body).receive()
            assert answer.status == 200
            assert b'"isError":false' in answer.body


@pytest.mark.parametrize(
    "headers",
    [
        {"Origin": "https://evil.example"},
        {"Origin": "null"},
        {"Host": "evil.example"},
    ],
)
@proves("MCP-21")
def test_web_pages_may_not_speak_mcp(daemon: Daemon, headers: dict[str, str]) -> None:
    refused = post(daemon.port, INITIALIZE, headers)
    assert refused.status == 403
    assert "Forbidden" in refused.json["error"]


def test_a_page_of_this_machine_may(daemon: Daemon) -> None:
    origin = {"Origin": "http://localhost:6274"}
    asked = request(daemon.port, "OPTIONS", "/mcp", headers=origin)
    assert asked.status == 204
    assert "Mcp-Protocol-Version" in asked.headers["Access-Control-Allow-Headers"]
    assert post(daemon.port, INITIALIZE, origin).status == 200


@pytest.mark.parametrize("user", ["../../evil", "..", "a/b"])
def test_a_user_name_is_no_path(daemon: Daemon, user: str) -> None:
    refused = post(daemon.port, INITIALIZE, {"X-User-Id": user})
    assert (refused.status, refused.json["error"]) == (400, "X-User-Id must be a plain name")


@pytest.mark.parametrize("user", ["u" * 256, "u" * 5000])
def test_a_user_name_is_no_longer_than_a_file_name(daemon: Daemon, user: str) -> None:
    refused = post(daemon.port, INITIALIZE, {"X-User-Id": user})
    assert (refused.status, refused.json["error"]) == (400, "X-User-Id is longer than 255 bytes")


def test_a_directory_that_is_none_is_refused(daemon: Daemon) -> None:
    refused = post(daemon.port, INITIALIZE, {"X-Stringd-Cwd": "/no/such/place"})
    assert refused.status == 400


def test_only_the_tools_a_client_wants_are_offered(daemon: Daemon) -> None:
    listing = {"jsonrpc": "2.0", "id": 1, "method": "tools/list"}
    headers = {"Accept": ACCEPT}
    listed = answer_of(request(daemon.port, "POST", "/mcp?tools=string,wait", listing, headers))
    assert [tool["name"] for tool in listed["result"]["tools"]] == ["string", "wait"]
    asked = call("execute")
    refused = answer_of(request(daemon.port, "POST", "/mcp?tools=string", asked, headers))
    assert "Unknown tool" in refused["error"]["message"]


@proves("MCP-12", "MCP-13")
def test_bare_lines_are_enough_on_standard_input(daemon: Daemon) -> None:
    with Pipe(daemon) as pipe:
        assert pipe.initialize()["protocolVersion"] == "2025-06-18"
        tools = pipe.call("tools/list")["result"]["tools"]
        assert len(tools) == 7
        command = {"topic": "bash:pipe", "cmd": "echo hi"}
        answer = pipe.call("tools/call", name="string", arguments=command)
        assert "\nhi\n" in answer["result"]["content"][0]["text"]
        assert "error" in pipe.call("no/such/method")
        assert pipe.end() == (0, b"")


def test_what_is_no_message_is_answered_as_such(daemon: Daemon) -> None:
    with Pipe(daemon) as pipe:
        pipe.send("this is not JSON")
        assert pipe.receive()["error"]["code"] == -32700
        for line in ("[]", "7", '{"id":1,"method":"ping"}'):
            pipe.send(line)
            assert pipe.receive()["error"]["code"] == -32600
        pipe.send("")
        assert pipe.call("ping")["result"] == {}


def test_everything_asked_is_answered_before_the_end(daemon: Daemon) -> None:
    """A script may write its lines, close the pipe and read."""
    with Pipe(daemon) as pipe:
        lines = [json.dumps(call("string", topic="main", cmd="/info") | {"id": n}) for n in "abc"]
        output, _ = pipe.process.communicate("\n".join(lines).encode(), timeout=WAIT_SECONDS)
    answers = [json.loads(line) for line in output.splitlines()]
    assert sorted(answer["id"] for answer in answers) == ["a", "b", "c"]
    assert all(answer["result"]["isError"] is False for answer in answers)


def test_calls_run_side_by_side(daemon: Daemon, tmp_path: Path) -> None:
    gate = tmp_path / "gate"
    os.mkfifo(gate)
    with Pipe(daemon) as pipe:
        pipe.initialize()
        slow = pipe.ask(
            "tools/call", name="string", arguments={"topic": "bash:slow", "cmd": f"cat {gate}"}
        )
        writing = {"topic": "bash:quick", "cmd": f"echo through > {gate}"}
        assert "result" in pipe.call("tools/call", name="string", arguments=writing)
        answers = [*pipe.notes, *([] if pipe.notes else [pipe.receive()])]
        [answer] = [each for each in answers if each.get("id") == slow]
        assert "through" in answer["result"]["content"][0]["text"]


def test_a_cancelled_call_gets_no_answer_and_harms_nothing(daemon: Daemon, tmp_path: Path) -> None:
    gate = tmp_path / "gate"
    os.mkfifo(gate)
    with Pipe(daemon) as pipe:
        pipe.initialize()
        arguments = {"topic": "bash:cancel", "cmd": f"cat {gate}"}
        meta = {"progressToken": "p"}
        slow = pipe.ask("tools/call", name="string", arguments=arguments, _meta=meta)
        while pipe.receive().get("method") != "notifications/progress":
            pass
        cancel = {"method": "notifications/cancelled", "params": {"requestId": slow}}
        pipe.send(json.dumps({"jsonrpc": "2.0", **cancel}))
        assert pipe.call("ping")["result"] == {}
        gate.write_text("went on\n")
        after = pipe.call(
            "tools/call", name="string", arguments={"topic": "bash:cancel", "cmd": "echo after"}
        )
        assert "\nafter\n" in after["result"]["content"][0]["text"]
        assert not any(note.get("id") == slow for note in pipe.notes)


@proves("MCP-11")
def test_the_daemon_is_started_by_the_first_request_and_found_again_after_it_ended(
    tmp_path: Path,
) -> None:
    sleeping = Daemon(tmp_path)
    with Pipe(sleeping, STRINGD_USER="u", STRINGD_HOME=str(tmp_path / "mine")) as pipe:
        try:
            pipe.initialize()
            arguments = {"topic": "main", "cmd": "/write a.md\nhi"}
            pipe.call("tools/call", name="string", arguments=arguments)
            assert (tmp_path / "mine/a.md").read_text() == "hi"
            shut_down(sleeping.port)
            assert pipe.call("ping") == {"jsonrpc": "2.0", "id": 3, "result": {}}
        finally:
            shut_down(sleeping.port)


@pytest.mark.skipif(not Path("/proc/self/stat").exists(), reason="needs /proc")
def test_the_daemon_it_starts_is_not_its_child(tmp_path: Path) -> None:
    """Some clients end everything that descends from the program they started."""
    daemon = Daemon(tmp_path)
    with Pipe(daemon) as pipe:
        try:
            pipe.initialize()
            # Answered by the daemon, so it has started.
            pipe.call("ping")
            assert children(pipe.process.pid) == []
        finally:
            shut_down(daemon.port)


def children(pid: int) -> list[str]:
    """The process ids whose parent this is."""
    tasks = Path(f"/proc/{pid}/task").iterdir()
    return [each for task in tasks for each in (task / "children").read_text().split()]


def shut_down(port: int) -> None:
    """Stop a daemon that is not our child, and wait until its port is free."""
    from stringd.client.daemon import stop

    assert stop(port)


def test_a_port_of_another_program_is_an_error_to_read(tmp_path: Path) -> None:
    from tests.support.daemon import another_program

    daemon = Daemon(tmp_path)
    with another_program() as taken, Pipe(daemon, "--port", str(taken)) as pipe:
        assert "stringd did not answer" in pipe.call("ping")["error"]["message"]


def test_unusable_options_are_said_plainly(daemon: Daemon) -> None:
    for arguments in (("--port", "0"), ("--tools", "string,grant"), ("--user", "a\nb")):
        with Pipe(daemon, *arguments) as pipe:
            code, errors = pipe.end()
            assert code == 1
            assert errors.startswith(b"stringd: ")


def test_the_bridge_starts_without_the_sdk(daemon: Daemon) -> None:
    environment = {"PYTHONPROFILEIMPORTTIME": "1"}
    with Pipe(daemon, **environment) as pipe:
        pipe.call("ping")
        _, errors = pipe.end()
    names = {line.rpartition(b"|")[2].strip() for line in errors.splitlines()}
    assert b"stringd.client.mcp" in names
    assert not names & {b"mcp", b"msgspec", b"asyncio", b"pydantic", b"http.client"}


def test_events_are_passed_on_however_they_are_cut() -> None:
    stream = b': hi\n\nevent: message\r\ndata: {"a":1}\r\n\r\ndata: {"b":\ndata: 2}\n\ndata: {'
    expected = ['{"a":1}', '{"b":\n2}']
    for size in (1, 2, 3, 7, len(stream)):
        pieces = [stream[i : i + size] for i in range(0, len(stream), size)]
        assert list(sse_data(pieces)) == expected


def test_a_client_that_stops_reading_is_no_trouble(daemon: Daemon) -> None:
    with Pipe(daemon) as pipe:
        pipe.initialize()
        assert pipe.process.stdout is not None
        pipe.process.stdout.close()
        pipe.ask("ping")
        _, errors = pipe.end()
    assert errors == b""


def test_nobody_is_asked_when_nothing_can_start(tmp_path: Path) -> None:
    daemon = Daemon(tmp_path)
    (tmp_path / "data").write_text("not a directory")
    with Pipe(daemon, "--port", str(free_port())) as pipe:
        assert "failed to start stringd" in pipe.call("ping")["error"]["message"]


@pytest.mark.parametrize(
    "words", [["--mcp"], ["--mcp", "--user", "u"], ["--user", "u", "--mcp"], ["--user=u", "--mcp"]]
)
def test_the_string_command_serves_mcp_too(daemon: Daemon, words: list[str]) -> None:
    env = daemon.child_environment()
    done = run("string", *words, env=env, stdin=b'{"jsonrpc":"2.0","id":1,"method":"ping"}\n')
    assert (done.code, json.loads(done.out)["result"]) == (0, {})
