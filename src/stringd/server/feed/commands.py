"""Commands as watchers see them: one short line, without the values people keep secret. Pure."""

import re
from typing import TYPE_CHECKING, Final

from stringd.wire.exec import command_label

if TYPE_CHECKING:
    from stringd.runtime.topics.observer import ClientName

_SET: Final = re.compile(r"(/(?:set|var)\b[^$\n]*\$\w+)[ =].*", re.IGNORECASE)
_HEADER: Final = re.compile(r"((?:^|\s)(?:-H|--header)[ =])\s*(?:\"[^\"]*\"|'[^']*'|\S+)")


def shown_command(text: str) -> str:
    """The first line of a command; what `/set $NAME` stores and headers hold are left out."""
    label = command_label(text)
    if "$" in label and (found := _SET.match(label)) is not None:
        return f"{found[1]} …"
    return _HEADER.sub(r"\1…", label) if "-H" in label or "--header" in label else label


def client_name(client: "ClientName") -> str:
    """What a client calls itself, short enough to list."""
    name = client if isinstance(client, str) else client.decode("utf-8", "replace")
    return name[:80]
