"""Programs that draw in a bash topic: a screen, keys and sizes, at the real daemon."""

from typing import Any

import pytest

from tests.server.feed.test_events import watching
from tests.support.http import User, request

TOPIC = "bash:drawn"
STATE = "echo $TERM; stty size; stty -a | grep -ow -e '-\\?onlcr' -e '-\\?echo'"
PLAIN = ["dumb", "24 200", "-onlcr", "-echo"]
KEYS = "stty -icanon -echo; for i in 1 2 3; do read -rsn1 key; printf '<%q>' \"$key\"; done"


def press(user: User, topic: str = TOPIC, **typed: Any) -> tuple[int, Any]:
    answer = request(user.port, "POST", f"/topics/{user.id}/{topic}/input", typed)
    return answer.status, answer.json.get("typed")


def lines(reply: str) -> list[str]:
    return reply.split("---\n", 1)[1].splitlines()


def test_a_program_gets_a_screen_for_itself_and_the_terminal_is_plain_again(user: User) -> None:
    assert lines(user.exec(STATE, TOPIC)[1]) == PLAIN
    drawn = lines(user.exec(f"//screen 91x17 {STATE}", TOPIC)[1])
    assert drawn == ["xterm-256color", "17 91", "onlcr", "echo"]
    assert lines(user.exec(STATE, TOPIC)[1]) == PLAIN
    assert lines(user.exec("echo ${_STRINGD_TERM-gone}", TOPIC)[1]) == ["gone"]


def test_the_status_of_a_drawn_command_is_its_own(user: User) -> None:
    head, _ = user.exec("//screen 80x24 (exit 7)", TOPIC)
    assert head["code"] == "EXIT_7"
    assert lines(user.exec("echo $?", TOPIC)[1]) == ["7"]


def test_keys_and_sizes_reach_the_program_at_once_and_in_order(user: User) -> None:
    user.exec("true", TOPIC)
    with watching(user.port, f"/topics/{user.id}/{TOPIC}/output") as stream:
        user.exec(f"//screen 80x24 printf ready; {KEYS}; stty size", TOPIC)
        assert stream.until("began", number=2)["screen"] == [80, 24]
        stream.until("printed", text="ready")
        assert press(user, text="ab") == (200, True)
        assert press(user, columns=50, rows=12) == (200, True)
        assert stream.until("resized")["screen"] == [50, 12]
        assert press(user, text="\x1b") == (200, True)
        stream.until("ended", number=2)
    said = "".join(each.get("text", "") for each in stream.seen if each["kind"] == "printed")
    assert said.endswith("<a><b><$'\\E'>12 50\r\n")


@pytest.mark.parametrize(
    ("topic", "typed", "answer"),
    [
        (TOPIC, {"text": "x"}, (200, False)),
        ("bash:nobody", {"text": "x"}, (404, None)),
        (TOPIC, {"text": 7}, (400, None)),
        (TOPIC, {"columns": 0, "rows": 10}, (400, None)),
        (TOPIC, {"columns": 10, "rows": 10_000}, (400, None)),
    ],
)
def test_what_no_program_can_take_is_refused(
    user: User, topic: str, typed: dict[str, Any], answer: tuple[int, Any]
) -> None:
    user.exec("true", TOPIC)
    assert press(user, topic, **typed) == answer


@pytest.mark.parametrize("given", ["", "80x24", "80 top", "0x0 top", "9999x9999 top", "x top"])
def test_a_screen_needs_a_size_and_a_command(user: User, given: str) -> None:
    head, text = user.exec(f"//screen {given}", TOPIC)
    assert head["code"] == "INVALID_PAYLOAD"
    assert "Usage: //screen" in text


def test_a_page_of_another_origin_types_nothing(user: User) -> None:
    user.exec("true", TOPIC)
    answer = request(
        user.port,
        "POST",
        f"/topics/{user.id}/{TOPIC}/input",
        {"text": "x"},
        headers={"Origin": "https://evil.example"},
    )
    assert answer.status == 403
