"""A bash topic for somebody who looks on, at the real daemon."""

from pathlib import Path
from typing import Any

import pytest

from tests.server.feed.test_events import watching
from tests.support.daemon import Daemon
from tests.support.http import User, Wire, request

TOPIC = "bash:dev"
# Never ends, but leaves a busy machine time to read what it prints.
RUNS_AWAY = "while :; do echo y; sleep 0.1; done"


def look(user: User) -> Any:
    answer = request(user.port, "GET", f"/topics/{user.id}/{TOPIC}")
    assert answer.status == 200, answer
    return answer.json


def address(user: User, after: str = "") -> str:
    return f"/topics/{user.id}/{TOPIC}/output{'?after=' if after else ''}{after}"


def test_the_terminal_shows_commands_with_what_they_printed_and_how_they_ended(user: User) -> None:
    user.exec("printf 'a\\033[31mred\\033[0m\\n'", TOPIC)
    user.exec("cd /; false", TOPIC)
    seen = look(user)
    began, printed, ended, second, last = seen["terminal"]["events"]
    assert (began["kind"], began["number"]) == ("began", 1)
    assert began["text"] == "printf 'a\\033[31mred\\033[0m\\n'"
    assert printed == {"kind": "printed", "text": "a\x1b[31mred\x1b[0m\n"}
    assert (ended["kind"], ended["status"]) == ("ended", 0)
    assert second["text"] == "cd /; false"
    assert (last["status"], last["directory"]) == (1, "/")
    shell = seen["shell"]
    assert (shell["alive"], shell["busy"], shell["directory"]) == (True, False, "/")
    assert seen["document"] is None


def test_output_is_streamed_while_the_command_runs_and_it_takes_what_is_typed(user: User) -> None:
    user.exec("true", TOPIC)
    position = look(user)["terminal"]["position"]
    with watching(user.port, address(user, position)) as stream:
        head, _ = user.exec("printf 'name? '; read name; echo hello $name", TOPIC)
        assert head["ok"]
        began = stream.until("began")
        assert stream.until("printed")["text"] == "name? "
        running = look(user)["shell"]
        health = request(user.port, "GET", "/overview").json["health"]
        assert [user.id, TOPIC] in health["busyShells"]
        assert running["busy"]
        assert running["waitsForInput"]
        assert running["secondsLeft"] > 0
        user.exec("//input Ada", TOPIC)
        assert stream.until("printed", text="hello Ada\n")
        assert stream.until("ended")["number"] == began["number"]
        assert [each["kind"] for each in stream.seen].count("began") == 1
        health = request(user.port, "GET", "/overview").json["health"]
        assert [user.id, TOPIC] not in health["busyShells"]


def test_a_shell_that_runs_away_is_interrupted_and_the_stream_says_so(user: User) -> None:
    user.exec("true", TOPIC)
    with watching(user.port, address(user)) as stream, Wire(user.port) as wire:
        wire.send(user.message(RUNS_AWAY, TOPIC))
        stream.until("began", text=RUNS_AWAY)
        stream.until("printed")
        assert look(user)["running"][0]["command"] == RUNS_AWAY
        user.exec("//key ctrl-c", TOPIC)
        assert stream.until("ended", number=2)["status"] == 130
        assert wire.receive().status == 200
    assert not look(user)["shell"]["busy"]


def test_closing_the_topic_clears_what_was_shown(user: User) -> None:
    user.exec("echo once", TOPIC)
    with watching(user.port, address(user)) as stream:
        stream.until("printed", text="once\n")
        user.exec("//close", TOPIC)
        stream.until("cleared")
        user.exec("echo twice", TOPIC)
        stream.until("printed", text="twice\n")
    assert "once" not in str(look(user)["terminal"]["events"])


def test_the_stream_of_a_topic_that_is_deleted_ends(user: User) -> None:
    user.exec("true", TOPIC)
    with watching(user.port, address(user)) as stream:
        stream.until("ended")
        request(user.port, "DELETE", f"/sessions/{user.id}/{TOPIC}")
        assert stream.ended()


def test_a_stopping_daemon_ends_the_stream(tmp_path: Path) -> None:
    with Daemon(tmp_path) as daemon:
        user = User(daemon.port, "someone", tmp_path / "someone")
        user.exec("true", TOPIC)
        with watching(user.port, address(user)) as stream:
            stream.until("ended")
            daemon.stop()
            assert stream.ended()


def test_a_position_of_another_life_begins_again(user: User) -> None:
    user.exec("echo x", TOPIC)
    with watching(user.port, address(user, "0123456789ab-999")) as stream:
        stream.until("cleared")
        stream.until("printed", text="x\n")


@pytest.mark.parametrize("after", ["x", "-1", "%00"])
def test_a_position_that_is_not_one_is_refused(user: User, after: str) -> None:
    user.exec("true", TOPIC)
    assert request(user.port, "GET", address(user, after)).status == 400


def test_only_bash_topics_have_a_terminal(user: User) -> None:
    user.exec("/info")
    assert request(user.port, "GET", f"/topics/{user.id}/file:main/output").status == 404
