"""All connections of a daemon: who is let in, who must leave when there are too many."""

import asyncio
import heapq
import resource
from abc import abstractmethod
from typing import TYPE_CHECKING, Final, Protocol

from stringd.server.http.budget import PeerBudget, PeerLimits, Place, limits_for
from stringd.server.http.outbox import Outbox
from stringd.server.http.rounds import Rounds

if TYPE_CHECKING:
    from stringd.server.visitors import Visitor

UNREAD_BYTES: Final = 256 * 1024 * 1024
"""Answers nobody reads, of all connections; beyond it the one that waited longest is cut off."""


CONNECTION_BYTES: Final = 4096
"""What an idle connection takes."""


class Writer(Protocol):
    """Whoever sends to a peer that may not read."""

    @abstractmethod
    def cut_off(self) -> None:
        """End at once; whatever the peer has not read is lost."""


class Member(Writer, Protocol):
    """A connection, as the others know it."""

    @property
    @abstractmethod
    def uid(self) -> int | None:
        """The account it belongs to."""

    @abstractmethod
    def idleness(self, now: float) -> tuple[int, float] | None:
        """How soon it should give way, lowest first; None while it is answered."""

    @abstractmethod
    def give_way(self) -> None:
        """End because others need the room."""

    @abstractmethod
    def sweep(self, now: float) -> None:
        """Close what has been idle, stalled or unread for too long."""

    @abstractmethod
    def stop(self) -> None:
        """Close now if idle, else after the answer under way."""


class Crowd:
    """What connections share: the loop's tasks, the outbox, and the budget they live on."""

    def __init__(
        self,
        loop: asyncio.AbstractEventLoop,
        limits: PeerLimits | None = None,
        *,
        unread: int = UNREAD_BYTES,
    ) -> None:
        descriptors = resource.getrlimit(resource.RLIMIT_NOFILE)[0]
        if descriptors == resource.RLIM_INFINITY:
            descriptors = 1 << 20
        self.budget = PeerBudget(limits or limits_for(descriptors))
        self.outbox = Outbox(loop)
        self.rounds = Rounds(loop)
        self.connections: set[Member] = set()
        self.tasks: set[asyncio.Task[None]] = set()
        self._loop = loop
        self._last_descriptors = descriptors - max(8, descriptors // 16)
        self._unread_limit = unread
        self._unread_bytes = 0
        # In the order in which they stopped reading.
        self._unread: dict[Writer, int] = {}

    def admit(self, visitor: "Visitor | None", descriptor: int) -> Place | None:
        """A place for a new connection, made by closing idle ones if need be; None without one."""
        uid = visitor.account if visitor else None
        if visitor is not None and visitor.refusal is not None:
            return self.budget.enter(uid, stranger=True)
        if descriptor >= self._last_descriptors:
            self._make_room(self.budget.largest())
        place = self.budget.enter(uid)
        if place is None:
            limits, everybody = self.budget.limits, self.budget.all.connections
            self._make_room(self.budget.largest() if everybody >= limits.connections else uid)
            place = self.budget.enter(uid)
        return place

    def _make_room(self, uid: int | None) -> None:
        """Close some connections of an account that wait for nothing, the most idle first.

        Several at once, so that a flood does not look through all of them each time.
        """
        now = self._loop.time()
        idle = [
            (rank, index, connection)
            for index, connection in enumerate(self.connections)
            if connection.uid == uid and (rank := connection.idleness(now)) is not None
        ]
        for _, _, connection in heapq.nsmallest(max(1, len(idle) // 32), idle):
            connection.give_way()

    def unread(self, connection: Writer, size: int) -> None:
        """A connection's peer has stopped reading, with so much to be read."""
        self._unread[connection] = size
        self._unread_bytes += size
        while self._unread_bytes > self._unread_limit and len(self._unread) > 1:
            next(iter(self._unread)).cut_off()

    def read(self, connection: Writer) -> None:
        """It reads again, or is gone."""
        self._unread_bytes -= self._unread.pop(connection, 0)

    @property
    def load(self) -> int:
        """About how many bytes all connections need now."""
        now = self.budget.all
        return now.connections * CONNECTION_BYTES + now.body_bytes + self._unread_bytes

    def sweep(self) -> None:
        """Close what has been idle or stalled for too long."""
        now = self._loop.time()
        for connection in list(self.connections):
            connection.sweep(now)
