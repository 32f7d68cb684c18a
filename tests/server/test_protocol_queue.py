"""One command at a time per topic; sixteen may wait."""

import contextlib
import os
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from tests.requirements import proves
from tests.support.daemon import Daemon
from tests.support.http import Answer, Blocked, User, Wire, events, request

WAITING = 16


@contextlib.contextmanager
def line(user: User, length: int, command: str = "/info") -> Iterator[list[Wire]]:
    """Connections whose commands wait, in this order, in `file:main`."""
    with contextlib.ExitStack() as stack:
        wires = []
        for number in range(length):
            wire = stack.enter_context(Wire(user.port))
            wire.send(user.message(command.format(number)))
            wires.append(wire)
            until_waiting(user, number + 1)
        yield wires


def until_waiting(user: User, length: int, topic: str = "file:main") -> None:
    """Return once that many commands wait in a topic; the test's own limit bounds it."""
    while user.sessions()[topic]["queue_length"] != length:
        pass


@proves("QUEUE-01", "QUEUE-08")
def test_commands_of_one_topic_run_in_the_order_they_came(user: User) -> None:
    command = f"/exec echo {{}} >> {user.home}/order; cat {user.home}/order"
    with Blocked(user) as blocked, line(user, 5, command) as waiting:
        session = user.sessions()["file:main"]
        assert (session["executing"], session["queue_length"]) == (True, 5)
        assert blocked.finish()[0][1]["ok"] is True
        outputs = [wire.receive().events[1][1].partition("---\n")[2] for wire in waiting]
    numbers = [str(n) for n in range(5)]
    assert outputs == ["\n".join(numbers[: n + 1]) for n in range(5)]
    session = user.sessions()["file:main"]
    assert (session["executing"], session["queue_length"]) == (False, 0)


@proves("QUEUE-02", "HTTP-09")
def test_the_eighteenth_command_is_refused_at_once(user: User) -> None:
    with Blocked(user) as blocked, line(user, WAITING) as waiting:
        refused = user.post(cmd="/info", topic="main")
        assert refused.status == 429
        assert refused.headers["Content-Type"] == "application/json"
        assert refused.body.decode() == (
            f'{{"error":"QUEUE_FULL","message":"Topic {user.id}:file:main has 16 commands '
            'queued. Try again later."}'
        )
        blocked.finish()
        assert [wire.receive().status for wire in waiting] == [200] * WAITING
    assert user.post(cmd="/info").status == 200


@proves("QUEUE-06")
def test_other_topics_and_users_run_side_by_side(
    daemon: Daemon, user: User, tmp_path: Path
) -> None:
    other = User(daemon.port, f"{user.id}-other", tmp_path)
    with Blocked(user) as first, Blocked(user, "file:second") as second, Blocked(other) as third:
        assert user.exec("/info", "file:third")[0]["ok"] is True
        for blocked in (third, second, first):
            assert blocked.finish()[0][1]["ok"] is True


@proves("QUEUE-05")
@pytest.mark.parametrize("leave", ["close", "end"])
def test_who_leaves_while_waiting_is_forgotten(user: User, leave: str) -> None:
    mark = user.home / "ran"
    with Blocked(user) as blocked, line(user, 1, f"/exec touch {mark}") as (gone,):
        getattr(gone, leave)()
        until_waiting(user, 0)
        if leave == "end":
            assert gone.rest() == b""
        with Wire(user.port) as next_:
            next_.send(user.message("/info"))
            until_waiting(user, 1)
            blocked.finish()
            assert next_.receive().status == 200
    assert not mark.exists()


@proves("QUEUE-05", "QUEUE-02")
def test_a_place_given_up_can_be_taken_again(user: User) -> None:
    with Blocked(user) as blocked, line(user, WAITING) as waiting:
        waiting[7].close()
        until_waiting(user, WAITING - 1)
        with Wire(user.port) as late:
            late.send(user.message("/info"))
            until_waiting(user, WAITING)
            assert user.post(cmd="/info").status == 429
            blocked.finish()
            assert late.receive().status == 200


@proves("QUEUE-07")
def test_who_leaves_while_its_command_runs_does_not_stop_it(user: User) -> None:
    mark = user.home / "finished"
    blocked = Blocked(user)
    with line(user, 1, f"/exec echo done > {mark}") as (after,):
        blocked.wire.close()
        blocked.release()
        assert after.receive().status == 200
    assert mark.read_text(encoding="utf-8") == "done\n"


@proves("QUEUE-07", "SSE-02")
def test_who_only_stops_sending_still_gets_the_answer(user: User) -> None:
    with Blocked(user) as blocked:
        blocked.wire.end()
        assert [name for name, _ in blocked.finish()] == ["head", "content", "done"]


@proves("QUEUE-07")
def test_who_waited_and_stops_sending_while_it_runs_still_gets_the_answer(user: User) -> None:
    pipe = user.home / "second"
    os.mkfifo(pipe)
    with Blocked(user) as first, line(user, 1, f"/exec cat {pipe}") as (second,):
        first.finish()
        _, headers = second.head()
        second.end()
        with open(pipe, "w", encoding="utf-8") as writer:
            writer.write("still here")
        assert events(second.body(headers))[1][1].endswith("still here")


@proves("QUEUE-03", "QUEUE-04", "HTTP-09")
def test_who_waits_too_long_is_told(tmp_path: Path) -> None:
    with Daemon(tmp_path, STRINGD_QUEUE_TIMEOUT_MS="50") as daemon:
        user = User(daemon.port, "default", tmp_path / "home")
        with Blocked(user) as blocked:
            answer = user.post(cmd="/info")
            assert answer.status == 504
            assert answer.body == (
                b'{"error":"QUEUE_TIMEOUT","message":"Timed out waiting in queue."}'
            )
            assert user.sessions()["file:main"]["queue_length"] == 0
            assert blocked.finish()[0][1]["ok"] is True
        assert user.post(cmd="/info").status == 200


@proves("QUEUE-01", "USER-10")
def test_those_who_wait_for_a_deleted_user_are_told(user: User) -> None:
    with Blocked(user) as blocked, line(user, 2) as waiting:
        request(user.port, "DELETE", f"/users/{user.id}")
        blocked.finish()
        answers: list[Answer] = [wire.receive() for wire in waiting]
    assert [a.status for a in answers] == [401, 401]
    assert answers[0].json == {"error": f"Unknown user: {user.id}"}


@proves("QUEUE-01", "SESSION-12")
def test_those_who_wait_for_a_closed_session_run_in_a_new_one(user: User) -> None:
    user.exec('/set {old} = "1"')
    with Blocked(user) as blocked, line(user, 1) as (waiting,):
        request(user.port, "DELETE", f"/sessions/{user.id}/file:main")
        blocked.finish()
        content = events(waiting.receive().body)[1][1]
    assert "{old}" not in content


def by_command(user: User) -> None:
    head, content = user.exec("/close file:main", "file:other")
    assert head["ok"]
    first, second = (f"/exec touch {user.home}/ran-{number}" for number in range(2))
    named = [each if len(each) <= 80 else f"{each[:80]}…" for each in (first, second)]
    assert content == f"Closed: file:main\nNot run: 2 that waited: {named[0]}; {named[1]}"


def by_session_command(user: User) -> None:
    head, content = user.exec("/session close file:main", "file:other")
    assert head["ok"]
    assert content.startswith("Closed session: file:main\nNot run: 2 that waited: /exec touch ")


def by_request(user: User) -> None:
    assert request(user.port, "DELETE", f"/sessions/{user.id}/file:main").status == 200


def by_moving(user: User) -> None:
    body = {"id": user.id, "home": f"{user.home}-moved"}
    assert request(user.port, "POST", "/users", body).status == 200


@proves("QUEUE-09")
@pytest.mark.parametrize("close", [by_command, by_session_command, by_request, by_moving])
def test_closing_a_topic_drops_what_waits_for_it(user: User, close: Callable[[User], None]) -> None:
    user.exec("/info", "file:other")
    with Blocked(user) as blocked, line(user, 2, f"/exec touch {user.home}/ran-{{}}") as waiting:
        close(user)
        for number, wire in enumerate(waiting):
            (_, head), (_, content), _ = wire.receive().events
            assert (head["ok"], head["code"]) == (False, "CONFLICT")
            told = content.partition("\n")[2]
            assert told.startswith("ERROR(CONFLICT): Not run: file:main was closed while ")
            assert f"/exec touch {user.home}/ran-{number}"[:80] in told
        blocked.finish()
    assert user.exec("/info")[0]["ok"]
    assert list(user.home.glob("ran-*")) == []


@proves("QUEUE-09")
def test_closing_a_shell_drops_what_waits_behind_it(user: User) -> None:
    topic, gate, mark = "bash:x", user.home / "gate", user.home / "ran"
    os.mkfifo(gate)
    with Wire(user.port) as first, Wire(user.port) as closing, Wire(user.port) as behind:
        first.send(user.message(f"read line < {gate}; echo {{}}", topic))
        writing = os.open(gate, os.O_WRONLY)
        for number, (wire, command) in enumerate(
            ((closing, "//close"), (behind, f"touch {mark}")), 1
        ):
            wire.send(user.message(command, topic))
            until_waiting(user, number, topic)
        os.write(writing, b"go\n")
        os.close(writing)
        assert first.receive().events[0][1]["ok"]
        closed = closing.receive().events[1][1].partition("\n")[2]
        assert closed.startswith("Bash session closed.\nNot run: a command that waited: touch ")
        head = behind.receive().events[0][1]
        assert (head["ok"], head["code"]) == (False, "CONFLICT")
    assert not mark.exists()
    assert user.exec("echo fresh", topic)[1].endswith("fresh")
