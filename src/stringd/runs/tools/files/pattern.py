"""Regular expressions of a model, matched in a process that can be killed.

Matching holds the interpreter, and some expressions take for ever on a few characters; in the
daemon itself one of them would stop everything.
"""

import asyncio
import json
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

from stringd.runs.tools.environment import child_environment
from stringd.runs.tools.output import ToolFailure


class Hit(NamedTuple):
    """Which file of those given, and the 0-based line and column."""

    file: int
    line: int
    column: int


async def find(expression: str, files: Sequence[Path], limit: int) -> list[Hit]:
    """The first hit of each line, in order. Raises `ToolFailure` for a bad expression."""
    child = await asyncio.create_subprocess_exec(
        sys.executable,
        "-I",
        "-S",
        str(Path(__file__).with_name("pattern_child.py")),
        stdin=asyncio.subprocess.PIPE,
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.DEVNULL,
        env=child_environment({}),
        start_new_session=True,
    )
    try:
        order = {"pattern": expression, "files": [str(path) for path in files], "limit": limit}
        output, _ = await child.communicate(json.dumps(order).encode("utf-8", "surrogateescape"))
    finally:
        if child.returncode is None:
            child.kill()
            await child.wait()
    answer = json.loads(output or b'{"error": "the search ended unexpectedly"}')
    if "error" in answer:
        raise ToolFailure("command_failed", f"Not a regular expression: {answer['error']}")
    return [Hit(*hit) for hit in answer["hits"]]
