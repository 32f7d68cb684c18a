"""Many callers at one terminal: every request is answered as the person said, and in turn."""

import json
import re
import subprocess
import sys
from contextlib import ExitStack
from itertools import pairwise
from pathlib import Path

import pytest

from tests.gate.screen import Screen
from tests.gate.support import PATIENCE, QUESTION, RunningGate, running_gate
from tests.requirements import proves

# A caller of its own: asks one after the other, and prints what it was told.
CALLER = """
import json, socket, sys, time
path, name, count = sys.argv[1], sys.argv[2], int(sys.argv[3])
sys.stdin.readline()
told = {}
for number in range(count):
    now = time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime())
    words = [["true", name, str(number)]]
    message = {"id": f"{name}-{number}", "time": now, "pipeline": words, "privileged": False}
    with socket.socket(socket.AF_UNIX) as connection:
        connection.connect(path)
        connection.sendall(json.dumps(message).encode() + b"\\n")
        reply = json.loads(connection.makefile().readline())
        told[reply["id"]] = reply["status"]
print(json.dumps(told))
"""
ASKED = re.compile(r"Command: true caller(\d+) (\d+)")
WAITING = re.compile(r"(\d+) more waiting")
OPENED = "\x1b[?1049h"


def answered(gate: RunningGate, callers: int, each: int) -> list[tuple[str, int]]:
    """Answer every question, the odd ones with no; who asked, and how many waited behind."""
    asked = []
    for _ in range(callers * each):
        gate.terminal.wait_for(OPENED)
        gate.terminal.wait_for(QUESTION)
        start = gate.terminal.screen.rindex(OPENED)
        shown = Screen(30, 100).feed(gate.terminal.screen[start:]).lines
        # Always in the same place, and whole.
        assert shown[0] == "━━━ Command request ━━━ stringd gate ━━━"
        rows = [row for row in shown if row]
        assert rows[-1].startswith("Execute")
        (command,) = filter(None, map(ASKED.fullmatch, rows))
        behind = WAITING.search(rows[-2])
        asked.append((command[1], int(behind[1]) if behind else 0))
        gate.terminal.type("N" if int(command[2]) % 2 else "y")
        # What was read is not searched again.
        gate.terminal.screen, gate.terminal._read_to = "", 0
    return asked


def crowd(folder: Path, callers: int, each: int) -> None:
    with running_gate(folder) as gate, ExitStack() as stack:
        words = [sys.executable, "-I", "-S", "-c", CALLER, str(gate.path)]
        processes = [
            stack.enter_context(
                subprocess.Popen(
                    [*words, f"caller{number}", str(each)],
                    stdin=subprocess.PIPE,
                    stdout=subprocess.PIPE,
                    text=True,
                )
            )
            for number in range(callers)
        ]
        for process in processes:
            assert process.stdin is not None
            process.stdin.write("go\n")
            process.stdin.flush()
        asked = answered(gate, callers, each)
        for number, process in enumerate(processes):
            told = json.loads(process.communicate(timeout=PATIENCE)[0])
            assert told == {
                f"caller{number}-{index}": "denied" if index % 2 else "ok" for index in range(each)
            }
        # Nobody is asked twice in a row while others wait.
        for (who, behind), (following, _) in pairwise(asked):
            assert not behind or following != who
        decided = [record for record in gate.audit() if record["event"] == "decided"]
        assert len(decided) == callers * each


@proves("GATE-ASK-02", "GATE-ASK-12")
def test_a_crowd_is_answered_in_turn_on_a_screen_that_stays_where_it_is(home: Path) -> None:
    crowd(home, callers=10, each=4)


@pytest.mark.soak
@proves("GATE-ASK-02", "GATE-ASK-12")
def test_a_thousand_requests_of_fifty_callers_are_all_answered(home: Path) -> None:
    crowd(home, callers=50, each=20)
