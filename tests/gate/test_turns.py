import socket
import threading
from collections.abc import Callable, Iterator
from contextlib import closing

import pytest

from stringd.gate.errors import CallerGoneError, StoppingError
from stringd.gate.turns import Turns
from stringd.gate.watch import READABLE, Signal, Watch
from tests.gate.support import PATIENCE
from tests.requirements import proves


@pytest.fixture
def stopping() -> Iterator[Signal]:
    with closing(Signal()) as stopping:
        yield stopping


def until(condition: Callable[[], bool]) -> None:
    waiting = threading.Event()
    for _ in range(int(PATIENCE * 100)):
        if condition():
            return
        waiting.wait(0.01)
    raise AssertionError("it did not happen")


@proves("GATE-ASK-02")
def test_turns_come_in_the_order_of_asking(stopping: Signal) -> None:
    turns = Turns()
    order: list[int] = []
    ours, theirs = socket.socketpair()
    watch = Watch(ours, stopping)

    def take(number: int) -> None:
        with turns.take(watch):
            order.append(number)

    threads = [threading.Thread(target=take, args=(number,)) for number in range(10)]
    with ours, theirs:
        with turns.take(watch):
            for number, thread in enumerate(threads, start=1):
                thread.start()
                until(lambda number=number: turns.waiting == number)  # type: ignore[misc]
        for thread in threads:
            thread.join(PATIENCE)
    assert order == list(range(10))
    assert turns.waiting == 0


@proves("GATE-ASK-03")
def test_who_hangs_up_leaves_the_queue_and_the_next_one_moves_up(stopping: Signal) -> None:
    turns = Turns()
    left: list[type] = []
    ours, theirs = socket.socketpair()
    steady, other = socket.socketpair()

    def take() -> None:
        try:
            with turns.take(Watch(ours, stopping)):
                raise AssertionError("a caller that hung up got a turn")
        except CallerGoneError:
            left.append(CallerGoneError)

    thread = threading.Thread(target=take)
    with ours, steady, other:
        with turns.take(Watch(steady, stopping)):
            thread.start()
            until(lambda: turns.waiting == 1)
            theirs.close()
            thread.join(PATIENCE)
            assert left == [CallerGoneError]
            assert turns.waiting == 0
        with turns.take(Watch(steady, stopping)):
            pass


@proves("GATE-ASK-03")
def test_a_half_closed_caller_is_still_there_and_a_closed_one_is_not(stopping: Signal) -> None:
    ours, theirs = socket.socketpair()
    with ours, theirs:
        watch = Watch(ours, stopping)
        watch.check()
        theirs.shutdown(socket.SHUT_WR)
        watch.check()
        theirs.close()
        with pytest.raises(CallerGoneError):
            watch.check()
        assert watch.wait({}, 0, caller=False) == {}


def test_a_stop_wakes_everyone(stopping: Signal) -> None:
    ours, theirs = socket.socketpair()
    with ours, theirs:
        stopping.set()
        with pytest.raises(StoppingError):
            Watch(ours, stopping).wait({theirs.fileno(): READABLE}, None)


def test_notices_wait_while_the_terminal_is_taken(stopping: Signal) -> None:
    turns = Turns()
    shown: list[str] = []
    ours, theirs = socket.socketpair()
    with ours, theirs:
        with turns.take(Watch(ours, stopping)):
            assert not turns.when_free(lambda: shown.append("early"))
        assert turns.when_free(lambda: shown.append("free"))
    assert shown == ["free"]
