"""Who is at the other end of a connection, by the kernel's word."""

import os
import socket
import struct

from stringd.gate.question import AskingPeer


def peer_of(connection: socket.socket) -> AskingPeer:
    """The process that connected. Raises `OSError` when the kernel does not say."""
    raw = connection.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, 12)
    pid, uid, _ = struct.unpack("iII", raw)
    return AskingPeer(pid, uid, executable_of(pid), _link(f"/proc/{pid}/cwd"))


def executable_of(pid: int) -> str:
    """The program of a process; its arguments are its own words and do not count."""
    return _link(f"/proc/{pid}/exe") or "(unknown)"


def _link(path: str) -> str:
    try:
        return os.readlink(path)  # noqa: PTH115  (a deleted file's name is not a path)
    except OSError:
        return ""
