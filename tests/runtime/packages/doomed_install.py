"""Installs or removes an app and is killed at one point of it.

`doomed_install.py <data> <home> <point> <command>`
"""

import asyncio
import os
import signal
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

from stringd.runtime import Runtime, RuntimeSettings
from stringd.runtime.packages import install, record, removal
from stringd.runtime.topics.call import Caller
from stringd.server.turns import TopicTurns
from stringd.wire.result import Result
from stringd.wire.topic import parse_topic


def dying(work: Callable[..., Any], fits: Callable[..., bool]) -> Callable[..., Any]:
    """What does the same, and is the last thing the process does where it fits."""

    def work_and_die(*args: Any, **more: Any) -> Any:
        result = work(*args, **more)
        if fits(*args):
            os.kill(os.getpid(), signal.SIGKILL)
        return result

    return work_and_die


def always(*_args: object) -> bool:
    return True


def is_kept(path: Path, *_args: object) -> bool:
    return path.name.endswith(".old")


def retires(_path: Path, target: Path) -> bool:
    return is_kept(target)


def places(path: Path, _target: Path) -> bool:
    return path.name.endswith(".tmp")


def doom(point: str) -> None:
    places_to_die: dict[str, list[tuple[object, str, Callable[..., bool]]]] = {
        "staged": [(install, "write_atomically", always)],
        "retired": [(Path, "rename", retires), (Path, "mkdir", is_kept)],
        "placed": [(Path, "rename", places)],
        "recorded": [(record, "keep", always)],
        "registered": [(install, "register", always)],
        "marked": [(removal, "write_atomically", always)],
        "first file": [(Path, "unlink", always), (os, "unlink", always)],
        "cleared": [(removal, "put_aside", always)],
        "unregistered": [(removal, "unregister", always)],
        "struck": [(record, "strike", always)],
    }
    for owner, name, fits in places_to_die[point]:
        setattr(owner, name, dying(getattr(owner, name), fits))


async def say(data: Path, home: Path, *commands: tuple[str, str]) -> list[Result]:
    """What a runtime answers to commands in topics, with `home` as the caller's directory."""
    runtime = Runtime(RuntimeSettings(data))
    try:
        runtime.topics.register("u", str(home))
        turns = TopicTurns(runtime, 60.0)
        caller = Caller(str(home))
        return [await turns.run("u", parse_topic(t), text, caller) for t, text in commands]
    finally:
        await runtime.close()


if __name__ == "__main__":
    doom(sys.argv[3])
    asyncio.run(say(Path(sys.argv[1]), Path(sys.argv[2]), ("file:main", sys.argv[4])))
