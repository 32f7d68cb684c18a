"""How much everybody together, and each account, may have of the daemon at once. No I/O.

Whoever connects gets a place; what it holds is counted there, and given back when it leaves.
"""

from typing import Final, NamedTuple

MEBIBYTE: Final = 1024 * 1024


class PeerLimits(NamedTuple):
    """What all accounts may have together; one of them may have seven eighths of it."""

    connections: int = 8192
    websockets: int = 4096
    requests: int = 2048
    body_bytes: int = 256 * MEBIBYTE
    strangers: int = 64
    """Connections of accounts that are only told that they may not ask."""

    def of_one(self, number: int) -> int:
        """An account's part of a limit."""
        return number - number // 8


def limits_for(descriptors: int) -> PeerLimits:
    """Limits for a process that may open so many files; shells and files need some of them."""
    connections = max(16, min(PeerLimits().connections, descriptors * 3 // 4))
    return PeerLimits(connections=connections, websockets=connections // 2)


class Account:
    """What one account has now."""

    __slots__ = ("body_bytes", "busy", "connections", "requests", "uid", "websockets")

    def __init__(self, uid: int | None) -> None:
        self.uid = uid
        self.connections = 0
        self.websockets = 0
        self.requests = 0
        self.busy = False
        self.body_bytes = 0


class Place:
    """One connection's share."""

    __slots__ = ("_account", "_budget", "_websocket", "left", "stranger")

    def __init__(self, budget: "PeerBudget", account: Account, *, stranger: bool) -> None:
        self._budget = budget
        self._account = account
        self._websocket = False
        self.stranger = stranger
        self.left = False

    @property
    def uid(self) -> int | None:
        return self._account.uid

    def leave(self) -> None:
        """Give the place back; a second time changes nothing."""
        if not self.left:
            self.left = True
            self._budget.leave(self._account, stranger=self.stranger, websocket=self._websocket)

    def become_websocket(self) -> bool:
        """Keep the place for a WebSocket; False when there are too many of those."""
        self._websocket = self._budget.add_websocket(self._account)
        return self._websocket

    @property
    def busy(self) -> bool:
        """Whether as many requests are being answered as may be."""
        return self._account.busy or self._budget.all.busy

    def begin_request(self) -> None:
        """Count a request that takes time."""
        self._budget.add_requests(self._account, 1)

    def end_request(self) -> None:
        self._budget.add_requests(self._account, -1)

    def hold(self, size: int) -> bool:
        """Count so many more bytes of bodies; False, and nothing counted, when that is too many."""
        return self._budget.hold(self._account, size)

    def release(self, size: int) -> None:
        self._budget.release(self._account, size)


class PeerBudget:
    """Counts for each account and for all of them."""

    def __init__(self, limits: PeerLimits | None = None) -> None:
        self.limits = limits or PeerLimits()
        self.all = Account(None)
        self.strangers = 0
        self._accounts: dict[int | None, Account] = {}

    def enter(self, uid: int | None, *, stranger: bool = False) -> Place | None:
        """A place for a connection of this account; None when there is none left."""
        limit = self.limits.connections
        account = self._accounts.get(uid) or Account(uid)
        if stranger:
            if self.strangers >= self.limits.strangers:
                return None
            self.strangers += 1
        elif self.all.connections >= limit or account.connections >= self.limits.of_one(limit):
            return None
        else:
            self.all.connections += 1
        account.connections += 1
        self._accounts[uid] = account
        return Place(self, account, stranger=stranger)

    def leave(self, account: Account, *, stranger: bool, websocket: bool) -> None:
        account.connections -= 1
        if stranger:
            self.strangers -= 1
        else:
            self.all.connections -= 1
        if websocket:
            account.websockets -= 1
            self.all.websockets -= 1
        if not account.connections and not account.requests and not account.body_bytes:
            self._accounts.pop(account.uid, None)

    def largest(self) -> int | None:
        """The account with most connections."""
        accounts = self._accounts.values()
        return max(accounts, key=lambda account: account.connections, default=self.all).uid

    def add_websocket(self, account: Account) -> bool:
        limit = self.limits.websockets
        if self.all.websockets >= limit or account.websockets >= self.limits.of_one(limit):
            return False
        account.websockets += 1
        self.all.websockets += 1
        return True

    def add_requests(self, account: Account, number: int) -> None:
        limit = self.limits.requests
        account.requests += number
        account.busy = account.requests >= self.limits.of_one(limit)
        self.all.requests += number
        self.all.busy = self.all.requests >= limit

    def hold(self, account: Account, size: int) -> bool:
        limit = self.limits.body_bytes
        everybody, alone = self.all.body_bytes + size, account.body_bytes + size
        if everybody > limit or alone > self.limits.of_one(limit):
            return False
        self.all.body_bytes, account.body_bytes = everybody, alone
        return True

    def release(self, account: Account, size: int) -> None:
        account.body_bytes -= size
        self.all.body_bytes -= size


NOWHERE: Final = Place(PeerBudget(), Account(None), stranger=True)
"""The place of a connection that got none."""
NOWHERE.left = True
