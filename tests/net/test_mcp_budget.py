"""What an MCP server may send: counted on a clock of our own."""

import json
from collections.abc import Callable

import pytest

from stringd.net.mcp_budget import (
    BURST,
    FLOOD_SECONDS,
    MAX_MESSAGE_BYTES,
    MAX_VALUES,
    RATE,
    FloodError,
    MessageBudget,
    check_message,
)


class Clock:
    def __init__(self) -> None:
        self.now = 100.0

    def __call__(self) -> float:
        return self.now


def spend_all(budget: MessageBudget) -> float:
    """Send until there is a pause; its length."""
    while not (pause := budget.spend()):
        pass
    return pause


def never_pause(budget: MessageBudget, clock: Clock) -> None:
    while clock.now < 100.0 + 10 * FLOOD_SECONDS:
        clock.now += spend_all(budget)


def test_a_burst_is_read_at_once_and_then_the_rate_counts() -> None:
    clock = Clock()
    budget = MessageBudget(clock)
    assert [budget.spend() for _ in range(int(BURST))] == [0.0] * int(BURST)
    assert budget.spend() == pytest.approx(1 / RATE)
    clock.now += 1.0
    assert [budget.spend() for _ in range(int(RATE) - 1)] == [0.0] * (int(RATE) - 1)


def test_a_server_that_never_pauses_is_a_flood() -> None:
    clock = Clock()
    with pytest.raises(FloodError, match="messages a second"):
        never_pause(MessageBudget(clock), clock)
    assert clock.now == pytest.approx(100.0 + FLOOD_SECONDS, abs=0.1)


def test_one_that_pauses_now_and_then_is_not() -> None:
    clock = Clock()
    budget = MessageBudget(clock)
    for _ in range(100):
        spend_all(budget)
        clock.now += BURST / RATE


def result(value: object) -> bytes:
    return json.dumps({"jsonrpc": "2.0", "id": 1, "result": value}).encode()


HONEST: dict[str, Callable[[], object]] = {
    "text": lambda: "x" * (MAX_MESSAGE_BYTES - 100),
    "JSON in text": lambda: '{"a": [1, 2, 3]}, ' * 100_000,
    "escapes": lambda: '"\\' * 400_000,
    "numbers": lambda: [1] * (MAX_VALUES - 10),
    "fields": lambda: {str(each): "text, more [text]" for each in range(MAX_VALUES // 3)},
}
FLOODS: dict[str, Callable[[], bytes]] = {
    "large": lambda: result("x" * MAX_MESSAGE_BYTES),
    "numbers": lambda: result([1] * 200_000),
    "texts": lambda: result(["text"] * 200_000),
    "lists": lambda: result([[]] * 200_000),
    "fields": lambda: result({str(number): None for number in range(200_000)}),
    "depth": lambda: b"[" * 300_000,
}


@pytest.mark.parametrize("value", HONEST.values(), ids=HONEST)
def test_honest_answers_pass(value: Callable[[], object]) -> None:
    check_message(result(value()))


@pytest.mark.parametrize("line", FLOODS.values(), ids=FLOODS)
def test_what_takes_long_to_parse_does_not(line: Callable[[], bytes]) -> None:
    sent = line()
    with pytest.raises(FloodError):
        check_message(sent)
