"""Who is behind a connection: asked of the kernel when it is accepted, and again when it decides.

The first question is about the account and costs microseconds; every connection is asked it before
a byte is answered. The second is about the process, looks through all of them, and is asked only
when a visitor wants to decide something that no child of the daemon may decide.
"""

import asyncio
import logging
import os
from typing import TYPE_CHECKING, Final

from stringd.system.lineage import Program, outsider_holding
from stringd.system.network_walls import network_walls
from stringd.system.peers import ROOT, SocketTable, kernel_can_say, open_socket_table, unix_peer

if TYPE_CHECKING:
    from stringd.server.log import EventLog

logger = logging.getLogger("stringd.server")

ANOTHER_ACCOUNT: Final = (
    "Forbidden: this daemon belongs to another account of this machine. "
    "Start your own: stringd up, with STRINGD_PORT set to a free port."
)
CANNOT_SAY: Final = (
    "this kernel cannot say who connects (it has no sock_diag): every account of this machine can "
    "use the daemon, and so can its own children. The Unix socket is not affected."
)
UNKNOWN_ACCOUNT: Final = (
    "Forbidden: the kernel cannot name the account that opened this connection. "
    "Keep the connection open until it is answered."
)

IN_A_SANDBOX: Final = (
    "Forbidden: this connection comes out of a sandbox of this daemon, or from a program that the "
    "kernel does not show while such a sandbox has the network. The Unix socket is not affected."
)


class Visitor:
    """One accepted connection. `refusal` says why it is answered nothing but 403.

    `account` is None where the kernel did not name it.
    """

    __slots__ = ("_inode", "account", "refusal")

    def __init__(self, refusal: str | None, inode: int | None, account: int | None = None) -> None:
        self.refusal = refusal
        self.account = account
        self._inode = inode

    async def outsider(self) -> Program | None:
        """The program behind the connection; None for what this daemon or an earlier one started.

        Where the kernel cannot say whose sockets are whose, every visitor is an outsider.
        """
        if self._inode is None:
            return Program(0, "")
        try:
            return await asyncio.to_thread(outsider_holding, self._inode)
        except OSError:
            return None


class Reception:
    """Looks at each accepted connection once."""

    def __init__(self, log: "EventLog") -> None:
        self._log = log
        self._seen: set[int] = set()
        self._table: SocketTable | None = open_socket_table() if kernel_can_say() else None
        if self._table is None:
            log.error("peer.unknown")
            logger.warning(CANNOT_SAY)
        self._own: Final = os.geteuid()
        self._welcome: Final = (self._own, ROOT)

    def tcp(self, transport: asyncio.BaseTransport) -> Visitor:
        """Who connected to a port."""
        if self._table is None:
            return Visitor(None, None)
        theirs, ours = (transport.get_extra_info(name) for name in ("peername", "sockname"))
        found = self._table.connected(theirs[:2], ours[:2]) if theirs and ours else None
        if found is None:
            return Visitor(UNKNOWN_ACCOUNT, 0)
        if found.uid not in self._welcome:
            self._note(found.uid)
            return Visitor(ANOTHER_ACCOUNT, 0, found.uid)
        # Sockets of root are not shown to us, and no sandbox of ours is root's unless we are.
        if found.uid == self._own and network_walls.hold(found.inode):
            self._log.info("peer.walled")
            return Visitor(IN_A_SANDBOX, 0, found.uid)
        return Visitor(None, found.inode, found.uid)

    def unix(self, transport: asyncio.BaseTransport) -> Visitor:
        """Who connected to the Unix socket."""
        connection = transport.get_extra_info("socket")
        _, uid = unix_peer(connection)
        if uid not in self._welcome:
            self._note(uid)
            return Visitor(ANOTHER_ACCOUNT, 0, uid)
        own = os.fstat(connection.fileno()).st_ino
        other = self._table.unix_other_end(own) if self._table else None
        return Visitor(None, other or 0, uid)

    def _note(self, uid: int) -> None:
        self._log.info("peer.refused", uid=uid)
        if uid not in self._seen:
            self._seen.add(uid)
            logger.warning("refused a connection of another account (uid %d)", uid)

    def close(self) -> None:
        if self._table is not None:
            self._table.close()
