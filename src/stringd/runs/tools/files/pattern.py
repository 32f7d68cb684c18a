"""Regular expressions of a model, matched in a process that can be killed.

Matching holds the interpreter, and some expressions take for ever on a few characters; in the
daemon itself one of them would stop everything.
"""

import json
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

from stringd.runs.tools.environment import child_environment
from stringd.runs.tools.output import ToolFailure
from stringd.system.command import ask_program


class Hit(NamedTuple):
    """Which file of those given, and the 0-based line and column."""

    file: int
    line: int
    column: int


async def find(expression: str, files: Sequence[Path], limit: int) -> list[Hit]:
    """The first hit of each line, in order. Raises `ToolFailure` for a bad expression."""
    order = {"pattern": expression, "files": [str(path) for path in files], "limit": limit}
    question = json.dumps(order).encode("utf-8", "surrogateescape")
    argv = (sys.executable, "-I", "-S", str(Path(__file__).with_name("pattern_child.py")))
    output = await ask_program(argv, question, child_environment({}))
    answer = json.loads(output or b'{"error": "the search ended unexpectedly"}')
    if "error" in answer:
        raise ToolFailure("command_failed", f"Not a regular expression: {answer['error']}")
    return [Hit(*hit) for hit in answer["hits"]]
