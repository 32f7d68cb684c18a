"""What a shell's terminal showed, as watchers read it: `GET /topics/<user>/<topic>/output`."""

from typing import Final

import msgspec
from msgspec import UNSET, Struct, UnsetType

from stringd.wire.exec import encodable


class TerminalEvent(Struct, rename="camel", kw_only=True, tag_field="kind"):
    """Something a terminal showed."""


class TerminalBegan(TerminalEvent, tag="began"):
    """A command was given to the shell; `by` is what the client calls itself."""

    number: int
    text: str
    directory: str
    by: str
    ts: str
    screen: tuple[int, int] | UnsetType = UNSET
    """Columns and rows of the screen it draws on, where it was given one."""


class Printed(TerminalEvent, tag="printed"):
    """Text as it reached the terminal, escape sequences included."""

    text: str


class Resized(TerminalEvent, tag="resized"):
    """The screen has another size."""

    screen: tuple[int, int]


class TerminalEnded(TerminalEvent, tag="ended"):
    """The shell is back at its prompt, or gone."""

    number: int
    status: int
    directory: str
    ms: float


class Missed(TerminalEvent, tag="missed"):
    """Older output is not kept, or a reader was slower than the terminal."""


class Cleared(TerminalEvent, tag="cleared"):
    """The topic was closed: what was shown before is gone."""


ShownEvent = TerminalBegan | Printed | Resized | TerminalEnded | Missed | Cleared

_encode: Final = msgspec.json.Encoder().encode


def encode_shown(position: str, event: ShownEvent) -> bytes:
    """One server-sent event."""
    try:
        data = _encode(event)
    except UnicodeEncodeError:
        data = _encode(encodable(msgspec.to_builtins(event)))
    name = type(event).__struct_config__.tag
    return b"id: %b\nevent: %b\ndata: %b\n\n" % (position.encode(), str(name).encode(), data)
