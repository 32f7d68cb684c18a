import os
import socket
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest

from stringd.client import (
    CommandFailed,
    OpenDocument,
    QueueFull,
    QueueTimeout,
    RequestRefusedError,
    StreamIncomplete,
    String,
    TransportError,
)
from tests.client.support import BROKEN, Account, answer, chunked, peer, queue_answers, sse
from tests.requirements import proves
from tests.support.daemon import WAIT_SECONDS, Daemon, free_port


@pytest.fixture
def string(account: Account) -> Iterator[String]:
    with String(account.user, home=account.home, port=account.port) as client:
        yield client


@proves("CLIENT-03")
def test_a_command_answers_with_its_content_and_document(string: String, account: Account) -> None:
    (account.home / "a.md").write_text("---\ntitle: A page\n---\n\n# Hello\n")
    result = string.exec("file:main", "/open a.md")
    assert result.ok
    assert result.code is None
    assert result.topic == "file:main"
    assert not result.content.startswith("re:")
    assert "# Hello" in result.unwrap()
    assert result.document == OpenDocument(f"file://{account.home}/a.md", "A page", None)


@proves("CLIENT-03")
def test_the_request_id_comes_back_and_leaves_no_trace_in_the_content(string: String) -> None:
    result = string.exec("file:main", "/info", request_id="q-7")
    assert result.request_id == "q-7"
    assert "q-7" not in result.content


@proves("CLIENT-08")
def test_a_failed_command_is_a_result_until_it_is_unwrapped(string: String) -> None:
    result = string.exec("file:main", "/open nowhere.md")
    assert not result.ok
    assert result.code == "NOT_FOUND"
    assert result.meta is None
    assert result.document is None
    with pytest.raises(CommandFailed, match=r"ERROR\(NOT_FOUND\)") as caught:
        result.unwrap()
    assert caught.value.code == "NOT_FOUND"


def test_patience_has_the_end_it_was_given(account: Account, tmp_path: Path) -> None:
    gate = tmp_path / "gate"
    os.mkfifo(gate)
    with (
        String(account.user, home=account.home, port=account.port, timeout=1) as hasty,
        pytest.raises(TransportError, match="timed out"),
    ):
        hasty.exec("bash:a", f"cat {gate}")
    with String(account.user, home=account.home, port=account.port) as string:
        assert string.exec("file:main", "/info").ok
    gate.write_text("")


def test_the_working_directory_is_vouched_for(
    account: Account, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    project = tmp_path / "project"
    project.mkdir()
    (project / "notes.md").write_text("from the project\n")
    monkeypatch.chdir(project)
    user, home, port = account
    with String(user, home=home, port=port) as ours:
        assert "from the project" in ours.exec("file:main", "/open ./notes.md").unwrap()
    with String(user, home=home, port=port, send_cwd=False) as silent:
        assert not silent.exec("file:other", "/open ./notes.md").ok
    monkeypatch.chdir("/")
    with String(user, home=home, port=port, cwd=project) as elsewhere:
        assert "from the project" in elsewhere.exec("file:third", "/open ./notes.md").unwrap()


def test_topics_are_listed_opened_and_closed(string: String) -> None:
    with string:
        assert string.topics() == []
        assert string.open_topic("notes")
        assert not string.open_topic("file:notes")
        [topic] = string.topics()
        assert (topic.user_id, topic.topic, topic.topic_type) == (
            string.user,
            "file:notes",
            "file",
        )
        assert topic.document is None
        assert string.user in {each.user_id for each in string.topics(all_users=True)}
        assert string.close_topic("notes")
        assert not string.close_topic("notes")


def test_an_unusable_topic_is_refused_with_the_daemons_reason(string: String) -> None:
    with pytest.raises(RequestRefusedError, match="Invalid topic: a b") as caught:
        string.open_topic("a b")
    assert caught.value.status == 400
    result = string.exec("a b", "/info")
    assert (result.code, result.content) == ("HTTP_ERROR", "Invalid topic: a b")


def test_users_are_registered_listed_and_removed(string: String, tmp_path: Path) -> None:
    name = f"{string.user}/other"
    assert string.register_user(name, tmp_path, [str(tmp_path)])
    assert not string.register_user(name, tmp_path)
    [user] = [each for each in string.users() if each.id == name]
    assert (user.home, user.allowed_paths) == (str(tmp_path), (str(tmp_path),))
    assert user.created_at.endswith("Z")
    assert string.delete_user(name)
    assert not string.delete_user(name)


def test_a_home_nobody_chose_does_not_move_a_user(
    account: Account, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    with String(account.user, home=account.home, port=account.port):
        pass
    monkeypatch.delenv("STRINGD_HOME", raising=False)
    monkeypatch.setenv("HOME", str(tmp_path))
    with String(account.user, port=account.port) as string:
        [user] = [each for each in string.users() if each.id == account.user]
    assert user.home == str(account.home)


def test_chanflow_text_is_answered_block_by_block(string: String) -> None:
    reply = string.chanflow("<𝒞=string:file:a>/info</𝒞> and <𝒞=string:bash:b>echo hi</𝒞>")
    assert reply.index("<𝒞=string:file:a") < reply.index("<𝒞=string:bash:b")
    assert "hi" in reply


def test_health_is_typed(string: String) -> None:
    health = string.health()
    assert health.ok
    assert health.status == "ok"
    assert health.uptime >= 0


def test_threads_share_a_client(string: String) -> None:
    string.connect()
    contents: dict[int, str] = {}

    def run(number: int) -> None:
        contents[number] = string.exec(f"bash:t{number}", f"echo number-{number}").unwrap()

    threads = [threading.Thread(target=run, args=(number,)) for number in range(6)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(WAIT_SECONDS)
    assert all(f"number-{number}" in contents[number] for number in range(6))


@proves("CLIENT-05")
def test_a_busy_topic_is_told_from_other_failures() -> None:
    kinds = {"QUEUE_FULL": QueueFull, "QUEUE_TIMEOUT": QueueTimeout}
    for reply, code in queue_answers():
        with peer(reply) as daemon, String("u", port=daemon.port) as string:
            result = string.exec("file:main", "/x")
        assert (result.ok, result.code) == (False, code)
        with pytest.raises(kinds[code]):
            result.unwrap()


@proves("CLIENT-04", "CLIENT-06")
@pytest.mark.parametrize("broken", BROKEN.values(), ids=BROKEN)
def test_an_answer_that_breaks_off_is_incomplete_and_never_asked_for_again(broken: bytes) -> None:
    with peer(broken, broken) as daemon, String("u", port=daemon.port) as string:
        result = string.exec("file:main", "/x")
        commands = [each for each in daemon.requests if each.startswith(b"POST /exec")]
    assert (result.ok, result.code) == (False, "STREAM_INCOMPLETE")
    assert len(commands) == 1
    with pytest.raises(StreamIncomplete):
        result.unwrap()


@proves("CLIENT-06")
def test_a_daemon_that_hangs_up_without_an_answer_is_not_asked_again() -> None:
    with peer(b"", b"") as daemon:
        with pytest.raises(TransportError):
            String("u", port=daemon.port).exec("file:main", "/x")
        commands = [each for each in daemon.requests if each.startswith(b"POST /exec")]
    assert len(commands) == 1


def test_streams_of_other_daemons_are_read_too() -> None:
    head = '{"ok":true,"code":null,"meta":{"uri":"file:///x","title":null,"current_block":"#a"}}'
    stream = sse(("head", head), ("content", '"plain"'), ("done", "{}")).replace(b"\n", b"\r\n")
    with (
        peer(chunked(b": hello\r\n\r\n", stream[:20], stream[20:])) as daemon,
        String("u", port=daemon.port) as string,
    ):
        result = string.exec("file:main", "/x")
    assert result.content == "plain"
    assert result.document == OpenDocument("file:///x", None, "#a")


def test_commands_carry_the_user_and_ask_for_a_stream() -> None:
    done = chunked(sse(("head", '{"ok":true,"code":null}'), ("content", '"x"'), ("done", "{}")))
    with peer(done) as daemon, String("u", port=daemon.port) as string:
        string.exec("file:main", "/x")
        sent = daemon.requests[-1]
    assert b"\r\nX-User-Id: u\r\n" in sent
    assert b"\r\nAccept: text/event-stream\r\n" in sent
    assert b"\r\nContent-Type: application/json\r\n" in sent


@pytest.mark.parametrize("user", ["a\r\nEvil: 1", "\x00"])
def test_a_user_id_cannot_smuggle_headers(account: Account, user: str) -> None:
    with pytest.raises(ValueError, match="printable"):
        String(user, home=account.home, port=account.port)


def test_a_user_the_daemon_does_not_take_is_a_result_too(tmp_path: Path) -> None:
    refusal = answer(b'{"error":"home required"}', "400 Bad Request", "Connection: close")
    with peer(refusal) as daemon:
        result = String("new", home=tmp_path, port=daemon.port).exec("file:main", "/x")
    assert result == (False, "HTTP_ERROR", "home required", None, None, None)


def test_what_is_no_port_is_said_at_once() -> None:
    with pytest.raises(ValueError, match="from 1 to 65535"):
        String("u", port=70_000)


def test_nobody_at_the_port_is_a_transport_error() -> None:
    client = String("u", port=free_port())
    assert not client.ping()
    with pytest.raises(TransportError, match=r"no stringd answers .*stringd up"):
        client.exec("file:main", "/info")


def test_a_program_that_is_not_stringd_is_recognised() -> None:
    with socket.socket() as listening:
        listening.bind(("127.0.0.1", 0))
        listening.listen()

        def not_stringd() -> None:
            connection, _ = listening.accept()
            with connection:
                connection.recv(65536)
                connection.sendall(b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\n[]")

        thread = threading.Thread(target=not_stringd)
        thread.start()
        client = String("u", port=listening.getsockname()[1])
        with pytest.raises(TransportError, match="not a JSON object"):
            client.health()
        client.close()
        thread.join(WAIT_SECONDS)


def test_the_daemon_is_started_when_asked_to_and_stopped_on_request(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.setenv("STRINGD_DATA_DIR", str(tmp_path / "data"))
    with String("u", port=free_port(), autostart=True) as string:
        try:
            assert string.exec("file:main", "/info").ok
            assert (tmp_path / ".string/users/u").is_dir()
        finally:
            string.shutdown()


def test_a_connection_the_daemon_closed_meanwhile_is_replaced(tmp_path: Path) -> None:
    with Daemon(tmp_path) as daemon:
        string = String("u", home=tmp_path / "home", port=daemon.port)
        assert string.exec("file:main", "/info").ok
        daemon.stop()
        daemon.start()
        assert string.exec("file:main", "/info").ok
        string.close()
