"""A real MCP server as an app, through a real daemon."""

import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.requirements import proves
from tests.runtime.commands.conftest import Caller, StartDaemon
from tests.support.daemon import WAIT_SECONDS, free_port

SERVER = Path(__file__).parents[3] / "examples" / "apps" / "mcp" / "server.py"
GUARDED = """
import sys

import uvicorn

sys.path.insert(0, sys.argv[1])
from server import server

inside = server.streamable_http_app()


async def guard(scope, receive, send):
    headers = dict(scope.get("headers", ()))
    known = headers.get(b"authorization") == b"Bearer letmein-7" and headers.get(b"x-team") == b"a"
    if scope["type"] == "http" and not known:
        await send({"type": "http.response.start", "status": 401, "headers": []})
        await send({"type": "http.response.body", "body": b""})
    else:
        await inside(scope, receive, send)


uvicorn.run(guard, host="127.0.0.1", port=int(sys.argv[2]))
"""


@pytest.fixture(scope="module")
def call(start_daemon: StartDaemon) -> Caller:
    caller = start_daemon()
    installed = caller("file:main", f"/install --mcp sums -- {sys.executable} {SERVER}")
    assert installed.content == (
        f"Installed app:sums\n  Source: {sys.executable} {SERVER}\n"
        f"  Path: {caller.home}/packages/sums/string.md\nUse: /open app:sums"
    )
    return caller


@pytest.fixture
def guarded() -> Iterator[str]:
    """The address of a server that wants to know who asks."""
    port = free_port()
    process = subprocess.Popen(
        [sys.executable, "-c", GUARDED, str(SERVER.parent), str(port)],
        stderr=subprocess.PIPE,
        text=True,
    )
    assert process.stderr is not None
    assert any("running on" in line for line in process.stderr)
    yield f"http://127.0.0.1:{port}/mcp"
    process.terminate()
    process.communicate(timeout=WAIT_SECONDS)


def test_tools_and_resources_stand_in_a_document(call: Caller) -> None:
    page = call("app:sums", "/open").content
    assert "# Sums" in page
    assert "> Adds numbers and throws dice." in page
    assert "- `/act.add` — Add numbers up." in page
    assert "[About sums][@doc-1]" in page
    assert call("app:sums", "/act.add --help").content == (
        "Action: add\n---\n/act.add\n   --numbers <array> (required)\n"
        "   --label <string> (optional) — (default: sum)"
    )


def test_one_tool_can_be_shown_and_found(call: Caller) -> None:
    one = call("file:one", "/open app:sums#act.dice").content
    assert one.startswith("Opened packages/sums/string.md#act.dice\n---\n/act.dice  Throw one die.")
    found = call("file:one", "/find throw dice --apps").content
    assert found == (
        "Found 1 app for “throw dice”\n---\n"
        "app:sums  Sums: Adds numbers and throws dice  dice, add, owner, divide"
    )


@proves("ACT-45")
def test_an_update_asks_the_server_again(call: Caller) -> None:
    assert call("file:main", "/update sums").content == "app:sums is up to date."
    main = call.home / "packages" / "sums" / "string.md"
    main.write_text("# Changed\n", encoding="utf-8")
    assert call("file:main", "/update sums").code == "FILE_NOT_ALLOWED"
    installed = call("file:main", f"/install --mcp sums -- {sys.executable} {SERVER}")
    assert installed.ok, installed.content


@proves("ACT-38")
def test_tools_are_actions(call: Caller) -> None:
    assert call("app:sums", "/act.add 1,2,3.5").content == "sum: 6.5"
    assert call("app:sums", "/act.add --numbers '[4, 5]' --label all").content == "all: 9"
    assert call("app:sums", "/act.dice --sides 1").content.replace(" ", "") == '{\n"thrown":1\n}'
    refused = call("app:sums", "/act.dice --sides many")
    assert refused.content.startswith(
        'ERROR(INVALID_PAYLOAD): --sides must be a whole number; got "many".'
    )
    failed = call("app:sums", "/act.divide 1 0")
    assert failed.code == "LOAD_ERROR"
    assert "divide" in failed.content


@proves("ACT-38")
def test_resources_are_documents(call: Caller) -> None:
    call("app:sums", "/open")
    opened = call("app:sums", "/open @doc-1").content
    assert opened == "Opened mcp://sums/sums://about\n---\n# Sums\n\nNumbers in, one number out."
    assert call("app:sums", "/refresh").content.endswith("Numbers in, one number out.")
    assert call("app:sums", "/back").content.startswith("Back to packages/sums/string.md")


def test_variables_of_the_app_reach_its_server_alone(call: Caller) -> None:
    assert call("app:sums", "/act.owner").content == "nobody"
    call("file:main", '/set $OWNER = "global"')
    assert call("app:sums", "/act.owner").content == "nobody"
    call("app:sums:mine", '/set $OWNER = "Ann"')
    assert call("app:sums:mine", "/act.owner").content == "Ann"
    assert call("app:sums", "/act.owner").content == "nobody"


def test_a_document_cannot_reach_a_server_it_is_not_the_app_of(call: Caller) -> None:
    (call.home / "fake.md").write_text("```act.add\nMCP add\n  numbers: array\n```\n")
    call("file:fake", "/open fake.md")
    assert call("file:fake", "/act.add 1").content == (
        "ERROR(LOAD_ERROR): No server is mounted for this document."
    )


@pytest.mark.parametrize(
    ("arguments", "expected"),
    [
        ("--mcp", "Usage: /install --mcp <name>"),
        ("--mcp only-a-name", "Usage: /install --mcp <name>"),
        ("--mcp broken -- /no/such/program", "The MCP server could not be started"),
        ("--mcp broken -- /bin/sh -c 'echo complaint >&2; exit 3'", "complaint"),
    ],
)
def test_what_cannot_be_mounted_is_refused(call: Caller, arguments: str, expected: str) -> None:
    reply = call("file:main", f"/install {arguments}")
    assert reply.code == "COMMAND_UNSUPPORTED"
    assert expected in reply.content
    assert not (call.home / "packages" / "broken").exists()


@proves("ACT-39")
def test_uninstalling_stops_the_server(own_daemon: Caller) -> None:
    caller = own_daemon
    caller("file:main", f"/install --mcp gone -- {sys.executable} {SERVER}")
    assert caller("app:gone", "/act.add 1").ok
    assert _servers(caller) == 1
    assert caller("file:main", "/uninstall gone").content.startswith("Uninstalled app:gone")
    assert _servers(caller) == 0


def _servers(caller: Caller) -> int:
    """How many processes below the daemon run the example server."""
    assert caller.daemon.process is not None
    found = 0
    for entry in Path("/proc").iterdir():
        try:
            parent = (entry / "stat").read_text().rpartition(")")[2].split()[1]
            command = (entry / "cmdline").read_bytes()
        except (OSError, IndexError):
            continue
        found += parent == str(caller.daemon.process.pid) and b"server.py" in command
    return found


def test_a_server_on_the_web_is_mounted_by_its_address(call: Caller) -> None:
    port = free_port()
    process = subprocess.Popen(
        [sys.executable, str(SERVER), "--http", str(port)],
        stderr=subprocess.PIPE,
        text=True,
    )
    try:
        assert process.stderr is not None
        assert any("running on" in line for line in process.stderr)
        assert call("file:main", f"/install --mcp far http://127.0.0.1:{port}/mcp").ok
        assert call("app:far", "/act.add 1,1").content == "sum: 2"
        call("file:main", "/uninstall far")
    finally:
        process.terminate()
        process.communicate(timeout=WAIT_SECONDS)


@proves("ACT-38")
def test_a_server_on_the_web_gets_the_headers_of_its_mount(call: Caller, guarded: str) -> None:
    install = f"/install --mcp kept {guarded} -H 'Authorization: Bearer $KEPT_PASS' -H 'X-Team: a'"
    unset = call("file:main", install)
    assert unset.code == "COMMAND_UNSUPPORTED"
    assert "string app:kept '/set $KEPT_PASS = \"...\"'" in unset.content
    call("app:kept", "/set $KEPT_PASS = wrong-pass")
    assert call("file:main", install).content.endswith("\nHTTP 401 Unauthorized")
    call("app:kept", "/set $KEPT_PASS = letmein-7")
    assert call("file:main", install).ok
    assert call("app:kept", "/act.add 1,1").content == "sum: 2"
    told = call("app:kept", "/act.add 1 letmein-7").content
    assert told == "let…: 1"
    stored = (call.home / "packages" / "kept" / "mcp.json").read_text()
    assert "$KEPT_PASS" in stored
    assert "letmein" not in stored
    call("app:kept", "/set $KEPT_PASS = other-pass")
    assert not call("app:kept", "/act.add 1,1").ok
    call("file:main", "/uninstall kept")


@pytest.mark.parametrize(
    "text", ["-H", "-H 'no colon'", "-H 'X: y' -- python3 server.py", "-H 'a b: c'"]
)
def test_what_is_no_header_is_refused(call: Caller, text: str) -> None:
    url = "" if "--" in text else "http://127.0.0.1:9/mcp"
    refused = call("file:main", f"/install --mcp x {url} {text}")
    assert refused.code == "COMMAND_UNSUPPORTED"
    assert "Usage: /install --mcp" in refused.content


def test_the_way_to_mount_a_changed_server_again_keeps_its_walls_and_headers(
    call: Caller, guarded: str
) -> None:
    flags = "--sandbox read-only --network api.example.com,127.0.0.1:8080"
    command = f"--mcp walled {flags} -- {sys.executable} {SERVER}"
    header = '-H "Authorization: Bearer $PASS" -H "X-Team: a"'
    call("app:headed", "/set $PASS = letmein-7")
    for install in (command, f"--mcp headed {guarded} {header}"):
        name = install.split()[1]
        assert call("file:main", f"/install {install}").ok
        mount = call.home / "packages" / name / "mcp.json"
        before = mount.read_text()
        mount.write_text(before.replace("Sums", "Other"))
        told = (
            call("file:main", f"/open app:{name}").content
            + call(f"app:{name}", "/act.add 1").content
        )
        assert f"/install {install}" in told
        assert call("file:main", f"/install {install}").ok
        assert mount.read_text() == before
        call("file:main", f"/uninstall {name}")


@pytest.mark.parametrize(
    ("flags", "said"),
    [
        ("--sandbox wide", "--sandbox must be read-only, workspace, open, not 'wide'."),
        ("--network https://a.test", '--network: "https://a.test" is not a host'),
        ("--network", "--network takes a value."),
    ],
)
def test_walls_that_are_none_are_refused(call: Caller, flags: str, said: str) -> None:
    assert said in call("file:main", f"/install --mcp x {flags} -- python3 server.py").content


def test_a_program_that_is_missing_is_said_in_a_line(call: Caller) -> None:
    refused = call("file:main", "/install --mcp x -- /nonexistent/program")
    assert refused.content == (
        "ERROR(COMMAND_UNSUPPORTED): The MCP server could not be started: there is no such program"
    )


def test_a_command_runs_where_it_was_typed(call: Caller, tmp_path: Path) -> None:
    project = tmp_path / "project"
    project.mkdir()
    (project / "near.py").write_text(SERVER.read_text("utf-8"), "utf-8")
    installed = call("file:main", f"/install --mcp near -- {sys.executable} near.py", cwd=project)
    assert installed.ok, installed.content
    assert call("app:near", "/act.add 1,2").content == "sum: 3"
    project.rename(tmp_path / "moved")
    refused = call("app:near:other", "/act.add 1,2")
    assert refused.content == (
        "ERROR(LOAD_ERROR): The MCP server could not be started: "
        f"{project}, where it was installed from, is gone"
    )
