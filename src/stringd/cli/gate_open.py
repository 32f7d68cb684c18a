"""`stringd gate --open`: a gate in a terminal beside the person, where one can be had."""

import os
import sys
import time
from collections.abc import Sequence
from typing import Final

from stringd.cli.own_program import own_program
from stringd.client.gate import Gate, GateClientError, starting
from stringd.gate.open_terminal import open_terminal

OPEN_SECONDS: Final = 10.0
_LOOK_SECONDS: Final = 0.05


def main(socket: str, rest: Sequence[str]) -> int:
    """Open a gate at a socket, with the other words of the command line."""
    if _answers(socket):
        print(f"stringd gate is already running at {socket}")
        return 0
    words = [*own_program(), "gate", "--socket", socket, *rest]
    if not open_terminal(words, dict(os.environ)):
        print(
            "error: there is neither tmux nor a desktop here to open a terminal in. "
            f"Start it in a terminal of your own: {starting(socket)}",
            file=sys.stderr,
        )
        return 1
    deadline = time.monotonic() + OPEN_SECONDS
    while not _answers(socket):
        if time.monotonic() > deadline:
            print(
                f"error: a terminal was opened, but no gate answers at {socket} yet: look there",
                file=sys.stderr,
            )
            return 1
        time.sleep(_LOOK_SECONDS)
    print(f"stringd gate runs in a new terminal, at {socket}")
    return 0


def _answers(socket: str) -> bool:
    try:
        Gate(socket).ping()
    except GateClientError:
        return False
    return True
