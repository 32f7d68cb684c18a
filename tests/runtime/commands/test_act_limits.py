"""Servers and commands that misbehave: a clear error, nothing half-written."""

import os
import socket
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from uuid import uuid4

import pytest

from tests.requirements import proves
from tests.runtime.commands.conftest import Caller, StartDaemon
from tests.support.daemon import WAIT_SECONDS, free_port
from tests.support.web import Reply, WebServer


@pytest.fixture(scope="module")
def call(start_daemon: StartDaemon) -> Caller:
    return start_daemon(STRINGD_ACTION_TIMEOUT_MS="3000")


@contextmanager
def raw_server(serve: Callable[[socket.socket], None]) -> Iterator[str]:
    """A server that answers one connection with whatever `serve` writes."""
    listener = socket.create_server(("127.0.0.1", 0))
    listener.settimeout(WAIT_SECONDS)

    def run() -> None:
        try:
            connection, _ = listener.accept()
        except OSError:
            return
        with connection:
            connection.settimeout(WAIT_SECONDS)
            connection.recv(65536)
            try:
                serve(connection)
            except OSError:
                return

    thread = threading.Thread(target=run, daemon=True)
    thread.start()
    try:
        yield f"http://127.0.0.1:{listener.getsockname()[1]}"
    finally:
        listener.close()
        thread.join(WAIT_SECONDS)


def act(call: Caller, url: str, response: str = "") -> str:
    topic = f"file:{uuid4().hex}"
    template = f"```act.get.response\n{response}\n```\n" if response else ""
    path = call.home / f"{uuid4().hex}.md"
    path.write_text(f"```act.get\nGET {url}/x\n```\n{template}", encoding="utf-8")
    call(topic, f"/open {path}")
    return call(topic, "/act.get").content


@proves("ACT-17")
def test_a_server_that_never_ends_is_left(call: Caller) -> None:
    done = threading.Event()

    def drip(connection: socket.socket) -> None:
        connection.sendall(b"HTTP/1.1 200 OK\r\nContent-Length: 1000000\r\n\r\n")
        while not done.wait(0.05):
            connection.sendall(b"x")

    with raw_server(drip) as url:
        text = act(call, url)
        done.set()
    where = url.removeprefix("http://")
    assert text == f"ERROR(LOAD_ERROR): Network error: timed out after 3 s: {where}"


def test_a_server_that_is_not_there_is_named(call: Caller) -> None:
    where = f"127.0.0.1:{free_port()}"
    text = act(call, f"http://{where}")
    assert text.startswith(f"ERROR(LOAD_ERROR): Network error: cannot connect to {where}: ")


@proves("ACT-17")
def test_a_command_that_takes_too_long_is_ended(call: Caller) -> None:
    path = call.home / "slow.md"
    path.write_text("```act.slow\nCLI echo started; sleep 60\n```\n", encoding="utf-8")
    call("file:slow", f"/open {path}")
    assert call("file:slow", "/act.slow").content == (
        "ERROR(EXIT_1): started\nTimed out after 3 s; the command was ended."
    )


def test_an_answer_beyond_the_limit_is_refused(own_daemon: Caller) -> None:
    def flood(connection: socket.socket) -> None:
        connection.sendall(b"HTTP/1.1 200 OK\r\nContent-Length: 104857600\r\n\r\n")
        for _ in range(1600):
            connection.sendall(b"x" * 65536)

    # With the usual time limit: how fast this machine reads is not the question.
    with raw_server(flood) as url:
        text = act(own_daemon, url)
    assert text == (f"ERROR(LOAD_ERROR): The answer of {url}/x is larger than 10485760 bytes.")


def test_a_server_that_hangs_up_is_a_network_error(call: Caller) -> None:
    with raw_server(lambda connection: connection.sendall(b"HTTP/1.1 200")) as url:
        assert act(call, url).startswith("ERROR(LOAD_ERROR): Network error: ")


def test_broken_json_is_text_and_missing_parts_are_reported(call: Caller) -> None:
    with WebServer(Reply('{"a": ')) as web:
        assert act(call, web.url, "got {Response.body}") == 'got {"a":'
        assert "Unresolved template reference: {Response.body.a}" in act(
            call, web.url, "{Response.body.a}"
        )


def test_a_failed_call_writes_nothing(call: Caller) -> None:
    with WebServer(Reply("oops", status=500)) as web:
        name = uuid4().hex
        act(call, web.url, f"save: Response.body\nto: {name}.bin")
        assert not (call.home / f"{name}.bin").exists()
        web.answer = Reply("data", "text/plain")
        path = f"d-{name}/{name}.bin"
        said = act(call, web.url, f"save: Response.body\nto: {path}\nsaved")
        assert said == f"saved\n\nSaved: {call.home / path}"
        assert (call.home / f"d-{name}" / f"{name}.bin").read_bytes() == b"data"
        assert act(call, web.url, "save: Response.body\nto: /etc/evil").startswith(
            "to: write failed: Path outside workspace: /etc/evil"
        )


def test_what_an_action_saves_is_a_file_like_any_other(call: Caller) -> None:
    name = uuid4().hex
    (call.home / f"{name}.usual").write_bytes(b"")
    os.mkfifo(call.home / f"{name}.pipe")
    (call.home / f"{name}.fixed").write_bytes(b"old")
    (call.home / f"{name}.fixed").chmod(0o444)
    with WebServer(Reply("data", "text/plain")) as web:
        for kind in ("new", "pipe", "fixed"):
            said = act(call, web.url, f"save: Response.body\nto: {name}.{kind}\nsaved")
            if kind == "pipe":
                assert said == f"to: write failed: {name}.pipe is not a regular file"
            # To root every file is writable.
            if kind == "fixed" and os.geteuid() != 0:
                assert said.startswith("to: write failed: Permission denied")
                assert (call.home / f"{name}.fixed").read_bytes() == b"old"
    new, usual = (call.home / f"{name}.{kind}" for kind in ("new", "usual"))
    assert new.read_bytes() == b"data"
    assert new.stat().st_mode == usual.stat().st_mode


@proves("ACT-24")
def test_answers_cannot_pull_files_into_view(call: Caller) -> None:
    (call.home / "private.md").write_text("<!-- #x -->\nPRIVATE\n<!-- /x -->\n", encoding="utf-8")
    with WebServer(
        Reply("[!include:x](private.md)\n[link](https://long.test/a)", "text/plain")
    ) as web:
        text = act(call, web.url, "{Response.body}")
    assert text == "[!include:x](private.md)\n[link][@link]"


@proves("ACT-25")
def test_a_command_may_print_much_and_leave_children(call: Caller) -> None:
    topic = f"file:{uuid4().hex}"
    path = call.home / f"{uuid4().hex}.md"
    path.write_text(
        "```act.much\nCLI head -c 12000000 /dev/zero | tr '\\0' x\n```\n"
        "```act.shaped\nCLI head -c 900000 /dev/zero | tr '\\0' x\n```\n"
        "```act.shaped.response\nall: {Response.body}\n```\n"
        "```act.child\nCLI sleep 1000 & echo started\n```\n"
        "```act.json\nCLI echo warning >&2; echo '{\"a\":[1]}'\n```\n"
        "```act.json.response\n{Response.body.a[0]} {Response.exit_code} {Response.stderr}\n```\n"
        "```act.bad\nCLI echo no; exit 4\n```\n```act.bad.response\nfine {Response.body}\n```\n"
        "```act.code\nCLI exit 4\n```\n```act.code.response\ncode {Response.exit_code}\n```\n",
        encoding="utf-8",
    )
    call(topic, f"/open {path}")
    for action in ("much", "shaped"):
        much = call(topic, f"/act.{action}")
        assert much.ok
        assert "characters left out" in much.content
        assert len(much.content) < 300_000
    assert call(topic, "/act.child").content == "started"
    assert call(topic, "/act.json").content == "1 0 warning"
    assert call(topic, "/act.bad").content == "ERROR(EXIT_4): no"
    assert call(topic, "/act.code").content == "code 4"


def test_a_value_too_long_for_a_command_is_refused_with_the_way_on(call: Caller) -> None:
    topic = f"file:{uuid4().hex}"
    (call.home / "long.md").write_text(
        "```act.x\nCLI echo {t}\n  t: string\n```\n", encoding="utf-8"
    )
    (call.home / "long.txt").write_text("x" * 200_000, encoding="utf-8")
    call(topic, "/open long.md")
    reply = call(topic, "/act.x --t-file long.txt")
    assert reply.code == "INVALID_PAYLOAD"
    assert "Put it into a file and pass its path." in reply.content
