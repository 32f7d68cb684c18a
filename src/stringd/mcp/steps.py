"""What one call of `string` asks for: commands, each with the topic it belongs to."""

import re
from collections.abc import Iterator
from typing import Annotated, Final, NamedTuple

import msgspec

from stringd.mcp.outcome import ToolError
from stringd.wire.topic import DEFAULT_TOPIC, TOPIC_TYPES

MAX_COMMANDS: Final = 20
_TOPIC: Final = re.compile(rf"((?:{'|'.join(TOPIC_TYPES)}):[\w:-]+)\s+(?=\S)", re.ASCII)
_APP: Final = re.compile(r"(app:[\w:-]+)(?:#(?:act\.)?([\w-]+))?", re.ASCII)
_ACTION: Final = re.compile(r"([\w-]+(?::[\w-]+)*)\.([\w.-]+)(?=\s|\Z)", re.ASCII)

Filled = Annotated[str, msgspec.Meta(min_length=1)]


class StringArguments(msgspec.Struct, forbid_unknown_fields=True):
    cmd: Filled | Annotated[list[Filled], msgspec.Meta(min_length=1, max_length=MAX_COMMANDS)]
    topic: Filled | None = None
    timeout: str | int | float | None = None


class AskedCommand(NamedTuple):
    topic: str
    cmd: str


def commands_of(arguments: StringArguments) -> list[AskedCommand]:
    """The commands in order. Raises `ToolError` for one that says neither what nor where."""
    given = [arguments.cmd] if isinstance(arguments.cmd, str) else arguments.cmd
    if arguments.topic is not None:
        return [AskedCommand(arguments.topic, each) for each in given]
    return list(_placed(given))


def _placed(given: list[str]) -> Iterator[AskedCommand]:
    """`app:NAME`, `app:NAME#ACTION`, `TOPIC COMMAND`, `APP.ACTION …`, or a command alone.

    A command alone is for the topic before it.
    """
    topic = DEFAULT_TOPIC
    for each in given:
        named, action = _TOPIC.match(each), _ACTION.match(each)
        if (app := _APP.fullmatch(each)) is not None:
            topic = app[1]
            yield AskedCommand(topic, f"/open {topic}#act.{app[2]}" if app[2] else "/open")
        elif named is not None:
            topic = named[1]
            yield AskedCommand(topic, each[named.end() :])
        elif action is not None:
            topic = f"app:{action[1]}"
            yield AskedCommand(topic, f"/act.{action[2]}{each[action.end() :]}")
        elif each.startswith("/"):
            yield AskedCommand(topic, each)
        else:
            raise ToolError(
                f"Not a command: {each[:80]}\nBegin with /, with APP.ACTION, or with a topic: "
                "bash:dev make test"
            )
