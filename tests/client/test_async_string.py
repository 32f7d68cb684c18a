import asyncio
import gc
import os
from pathlib import Path

import pytest

from stringd.client import AsyncString, CommandFailed, RequestRefusedError, TransportError
from tests.client.support import BROKEN, Account, answer, chunked, peer, queue_answers, sse
from tests.requirements import proves
from tests.support.daemon import WAIT_SECONDS, Daemon, free_port

pytestmark = pytest.mark.anyio


def client(account: Account) -> AsyncString:
    return AsyncString(account.user, home=account.home, port=account.port)


async def test_a_command_answers_with_its_content(account: Account) -> None:
    async with client(account) as string:
        result = await string.exec("file:main", "/write a.md\n# Hello\n", request_id="r")
        assert result.ok
        assert result.request_id == "r"
        opened = await string.exec("file:main", "/open a.md")
    assert "# Hello" in opened.unwrap()
    assert opened.document is not None
    assert opened.document.uri == f"file://{account.home}/a.md"


async def test_calls_run_side_by_side(account: Account) -> None:
    """The first command waits for the second, so one connection would never end."""
    meeting = account.home / "meeting"
    async with client(account) as string, asyncio.timeout(WAIT_SECONDS):
        first = asyncio.create_task(
            string.exec("bash:a", f"until [ -e {meeting} ]; do sleep 0.05; done; echo met")
        )
        assert (await string.exec("bash:b", f"touch {meeting}")).ok
        assert "met" in (await first).unwrap()


async def test_a_cancelled_call_leaves_the_client_usable(account: Account) -> None:
    async with client(account) as string:
        running = asyncio.create_task(string.exec("bash:a", "sleep 30"))
        async with asyncio.timeout(WAIT_SECONDS):
            executing = False
            while not executing:
                executing = any(topic.executing for topic in await string.topics())
        running.cancel()
        with pytest.raises(asyncio.CancelledError):
            await running
        assert (await string.exec("file:main", "/info")).ok
        assert await string.close_topic("bash:a")


async def test_patience_has_the_end_it_was_given(account: Account, tmp_path: Path) -> None:
    gate = tmp_path / "gate"
    os.mkfifo(gate)
    async with AsyncString(account.user, home=account.home, port=account.port, timeout=1) as string:
        with pytest.raises(TransportError, match="timed out"):
            await string.exec("bash:a", f"cat {gate}")
    async with client(account) as string:
        assert (await string.exec("file:main", "/info")).ok
    gate.write_text("")


async def test_topics_and_users_are_managed(account: Account, tmp_path: Path) -> None:
    async with client(account) as string:
        assert await string.open_topic("notes")
        assert [topic.topic for topic in await string.topics()] == ["file:notes"]
        assert len(await string.topics(all_users=True)) >= 1
        assert await string.close_topic("notes")
        assert await string.register_user(f"{account.user}-x", tmp_path)
        assert f"{account.user}-x" in {user.id for user in await string.users()}
        assert await string.delete_user(f"{account.user}-x")
        with pytest.raises(RequestRefusedError, match="Invalid topic"):
            await string.open_topic("a b")


async def test_chanflow_text_is_answered(account: Account) -> None:
    async with client(account) as string:
        assert "<𝒞=string:file:main" in await string.chanflow("<𝒞=string>/info</𝒞>")


@proves("CLIENT-05")
async def test_a_busy_topic_is_told_from_other_failures() -> None:
    for reply, code in queue_answers():
        with peer(reply) as daemon:
            async with AsyncString("u", port=daemon.port) as string:
                result = await string.exec("file:main", "/x")
        assert (result.ok, result.code) == (False, code)
        with pytest.raises(CommandFailed) as caught:
            result.unwrap()
        assert type(caught.value) is not CommandFailed


@proves("CLIENT-04", "CLIENT-06")
@pytest.mark.parametrize("broken", BROKEN.values(), ids=BROKEN)
async def test_an_answer_that_breaks_off_is_incomplete_and_never_asked_for_again(
    broken: bytes,
) -> None:
    with peer(broken, broken) as daemon:
        async with AsyncString("u", port=daemon.port) as string:
            result = await string.exec("file:main", "/x")
        commands = [each for each in daemon.requests if each.startswith(b"POST /exec")]
    assert (result.ok, result.code) == (False, "STREAM_INCOMPLETE")
    assert len(commands) == 1


async def test_an_answer_in_pieces_is_put_together() -> None:
    stream = sse(("head", '{"ok":true,"code":null}'), ("content", '"re: /x\\nab"'), ("done", "{}"))
    with peer(chunked(*(stream[i : i + 1] for i in range(len(stream))))) as daemon:
        async with AsyncString("u", port=daemon.port) as string:
            result = await string.exec("file:main", "/x")
    assert (result.ok, result.content) == (True, "ab")


async def test_a_user_the_daemon_does_not_take_is_a_result_too(tmp_path: Path) -> None:
    refusal = answer(b'{"error":"home required"}', "400 Bad Request", "Connection: close")
    with peer(refusal) as daemon:
        result = await AsyncString("new", home=tmp_path, port=daemon.port).exec("file:main", "/x")
    assert (result.ok, result.code, result.content) == (False, "HTTP_ERROR", "home required")


async def test_a_daemon_that_hangs_up_is_said_to_have_done_so() -> None:
    hung_up = pytest.raises(TransportError, match="closed the connection")
    with peer(b"") as daemon, hung_up:
        await AsyncString("u", port=daemon.port).exec("file:main", "/x")


@pytest.mark.filterwarnings("ignore::ResourceWarning")
def test_a_client_outlives_an_event_loop_that_ended_without_it(account: Account) -> None:
    string = client(account)

    async def once() -> bool:
        return (await string.exec("file:main", "/info")).ok

    async def once_more() -> bool:
        async with string:
            return await once()

    assert asyncio.run(once())
    assert asyncio.run(once_more())
    gc.collect()


async def test_nobody_at_the_port_is_a_transport_error() -> None:
    string = AsyncString("u", port=free_port())
    assert not await string.ping()
    with pytest.raises(TransportError, match=r"no stringd answers .*stringd up"):
        await string.exec("file:main", "/info")


async def test_garbage_is_a_transport_error() -> None:
    answers_in_ssh = peer(b"SSH-2.0-OpenSSH\r\n\r\n")
    with answers_in_ssh as daemon, pytest.raises(TransportError, match="does not speak HTTP"):
        await AsyncString("u", port=daemon.port).exec("file:main", "/x")


async def test_a_restarted_daemon_is_found_again(tmp_path: Path) -> None:
    with Daemon(tmp_path) as daemon:
        async with AsyncString("u", home=tmp_path / "home", port=daemon.port) as string:
            assert (await string.health()).ok
            daemon.stop()
            daemon.start()
            assert (await string.exec("file:main", "/info")).ok


async def test_the_daemon_is_started_when_asked_to_and_stopped_on_request(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.setenv("STRINGD_DATA_DIR", str(tmp_path / "data"))
    async with AsyncString("u", port=free_port(), autostart=True) as string:
        try:
            assert (await string.exec("file:main", "/info")).ok
        finally:
            await string.shutdown()
