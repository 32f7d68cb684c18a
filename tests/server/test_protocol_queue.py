"""One command at a time per topic; sixteen may wait."""

import contextlib
import os
from collections.abc import Iterator
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


def until_waiting(user: User, length: int) -> None:
    """Return once that many commands wait in `file:main`; the test's own limit bounds it."""
    while user.sessions()["file:main"]["queue_length"] != length:
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
