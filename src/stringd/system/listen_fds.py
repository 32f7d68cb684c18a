"""Sockets that a service manager opened for us, as `LISTEN_FDS` announces them."""

import os
import socket
from collections.abc import MutableMapping
from typing import Final

_FIRST: Final = 3


def take_sockets(environ: MutableMapping[str, str]) -> list[socket.socket]:
    """The sockets meant for this process; none when the variables are those of another one.

    The variables are removed: what we start would take them for its own.
    """
    meant = environ.pop("LISTEN_PID", "")
    count = environ.pop("LISTEN_FDS", "")
    environ.pop("LISTEN_FDNAMES", None)
    if meant != str(os.getpid()) or not (count.isascii() and count.isdigit()):
        return []
    taken = []
    for descriptor in range(_FIRST, _FIRST + int(count)):
        os.set_inheritable(descriptor, False)
        taken.append(socket.socket(fileno=descriptor))
    return taken
