"""Random and mutated requests against a server whose human always says no."""

import json
import random
from pathlib import Path
from typing import Any

import pytest

from stringd.gate.decide import Event, KeyAnswer
from tests.gate.support import Desk, Human, connect, read_line, request, serving

STATUSES = {"denied", "error", "ok"}
GROWTH_LIMIT = 48 * 1024 * 1024
VALUES: list[Any] = [
    None,
    True,
    0,
    1e308,
    "",
    "\x1b[2J",
    "\u202e",
    "x" * 5000,
    [],
    {},
    [[]],
    [[""]],
    [["-u", "root"]],
    {"LD_PRELOAD": "/x"},
    {"A": None},
    "3000-01-01T00:00:00Z",
    "ping",
]


def resident() -> int:
    pages = int(Path("/proc/self/statm").read_text().split()[1])
    return pages * 4096


def bent(dice: random.Random, message: dict[str, Any]) -> bytes:
    """A request with fields replaced, removed or added."""
    for _ in range(dice.randint(0, 3)):
        name = dice.choice([*message, "env", "action", "version", "forward_agent", "x"])
        if dice.random() < 0.2:
            message.pop(name, None)
        elif name != "action" or dice.random() < 0.5:
            message[name] = dice.choice(VALUES)
    if message.get("action") == "stop":
        message.pop("action")
    return json.dumps(message).encode()


def battered(dice: random.Random, line: bytes) -> bytes:
    """Bytes flipped, cut, doubled or replaced."""
    data = bytearray(line)
    for _ in range(dice.randint(0, 4)):
        at = dice.randrange(len(data) + 1)
        match dice.randrange(5):
            case 0:
                data[at : at + 1] = dice.randbytes(1)
            case 1:
                del data[at : at + dice.randrange(20)]
            case 2:
                data[at:at] = data[at : at + dice.randrange(20)]
            case 3:
                data[at:at] = dice.choice([b"[", b"{", b'"', b"\\u", b"\\", b",", b"\xff", b"\n"])
            case _:
                data[at:at] = dice.randbytes(dice.randrange(8))
    return bytes(data)


def attack(desk: Desk, canary: Path, count: int, seed: int) -> set[str]:
    """Send this many lines; the statuses that came back."""
    dice = random.Random(seed)
    seen: set[str] = set()
    for number in range(count):
        words = dice.choice([["touch", str(canary)], ["sh", "-c", f"touch {canary}"]])
        message = request(words, id=f"{seed}-{number}", privileged=dice.random() < 0.5)
        line = battered(dice, bent(dice, message)) if number % 10 else dice.randbytes(60)
        with connect(desk.path) as connection:
            connection.sendall(line + b"\n")
            reply = read_line(connection)
        if reply:
            seen.add(json.loads(reply)["status"])
    return seen


def fuzz(home: Path, count: int) -> None:
    canary = home / "canary"
    with serving(home, Human(decide=lambda _: KeyAnswer(Event.NO))) as desk:
        attack(desk, canary, 500, seed=0)
        before = resident()
        seen = attack(desk, canary, count, seed=1)
        growth = resident() - before
        desk.human.asked.clear()
        assert desk.handler.places.taken == 0
        assert '"decision":"approved"' not in desk.audit.read_text()
    assert seen <= STATUSES
    assert {"denied", "error"} <= seen
    assert not canary.exists()
    assert growth < GROWTH_LIMIT


def test_five_thousand_random_and_mutated_requests_run_nothing(home: Path) -> None:
    fuzz(home, 5_000)


@pytest.mark.soak
@pytest.mark.timeout(1800)
def test_a_hundred_thousand_random_and_mutated_requests_run_nothing(home: Path) -> None:
    fuzz(home, 100_000)
