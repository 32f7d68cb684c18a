"""Ctrl-C before the shell of a topic can take it."""

from threading import Event

from stringd.cli.prompt.background_call import BackgroundCall
from stringd.cli.prompt.conversation import press_until_taken
from tests.support.daemon import WAIT_SECONDS


def test_it_is_pressed_until_a_command_takes_it() -> None:
    end, answers = Event(), [True, False, False]
    waiting = BackgroundCall(lambda: end.wait(WAIT_SECONDS))
    press_until_taken(waiting, answers.pop)
    assert answers == []
    end.set()
    assert waiting.result() is True


def test_it_is_not_pressed_once_the_reply_is_there() -> None:
    waiting = BackgroundCall(lambda: 1)
    waiting.result()

    def press() -> bool:
        raise AssertionError("nothing waits any more")

    press_until_taken(waiting, press)
