"""Executing commands without a wire."""

import asyncio
from collections.abc import Awaitable, Callable
from pathlib import Path

import pytest

from stringd.runtime.commands.table import COMMANDS, CommandEntry
from stringd.runtime.runtime import Answer, Runtime
from stringd.runtime.settings import RuntimeSettings
from stringd.runtime.topics.call import Call
from stringd.wire.result import Result
from stringd.wire.topic import parse_topic
from tests.requirements import proves

pytestmark = pytest.mark.anyio


async def execute(tmp_path: Path, text: str) -> Answer:
    runtime = Runtime(RuntimeSettings(tmp_path / "data"))
    runtime.topics.register("u", str(tmp_path))
    answer = runtime.execute(runtime.topics.slot("u", parse_topic("main")), text)
    done = answer if isinstance(answer, Answer) else await answer
    await runtime.close()
    return done


def _at_once(_call: Call) -> Result:
    raise ZeroDivisionError("division by zero")


async def _later(_call: Call) -> Result:
    await asyncio.sleep(0)
    raise KeyError


@proves("SSE-24")
@pytest.mark.parametrize(
    ("broken", "message"), [(_at_once, "division by zero"), (_later, "KeyError")]
)
async def test_a_defect_in_a_command_is_an_internal_error(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    broken: Callable[[Call], Result | Awaitable[Result]],
    message: str,
) -> None:
    monkeypatch.setitem(COMMANDS, "broken", CommandEntry(broken))
    answer = await execute(tmp_path, "/broken")
    assert answer == Answer(Result.error("INTERNAL_ERROR", message), None)


async def test_an_unknown_command_says_where_to_look(tmp_path: Path) -> None:
    answer = await execute(tmp_path, "/Nope x")
    assert answer.result.code == "COMMAND_UNSUPPORTED"
    assert "Unknown command: /" in answer.result.message
