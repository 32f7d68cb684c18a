"""Users and their topics: what there is, before any command runs in it."""

import asyncio
import logging
import sqlite3
from collections.abc import Awaitable, Callable, Iterable, Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from stringd.runtime.errors import NotSavedError, UnknownUserError
from stringd.runtime.topics import undo_store
from stringd.runtime.topics.observer import TopicObserver, Unobserved
from stringd.runtime.topics.session import Session, Slot
from stringd.runtime.topics.store import SessionStore, restored
from stringd.runtime.topics.users import UNCHANGED, Preferences, Registration, UserRegistry
from stringd.wire.topic import parse_topic

if TYPE_CHECKING:
    from stringd.wire.topic import Topic

logger = logging.getLogger("stringd.runtime")


class Topics:
    """Every user with its topics, kept in memory and on disk."""

    def __init__(
        self,
        data_dir: Path,
        settle: Callable[[str], None] = lambda _home: None,
        observer: TopicObserver | None = None,
    ) -> None:
        """`settle` is called with a user's home before anything happens in it."""
        self._observer = observer or Unobserved()
        self.users = UserRegistry(data_dir)
        self._settle = settle
        self._data_dir = data_dir
        self._copied: dict[str, bytes] = {}
        self._slots: dict[str, dict[str, Slot]] = {}
        self._store = SessionStore(data_dir)
        if self.users.lost:
            self.users.restore(self._store.users())
        for user in self.users:
            settle(user.home)
        self._restore()

    def register(
        self,
        user_id: str,
        home: str,
        allowed_paths: Sequence[str] | None = None,
        wants: Preferences = UNCHANGED,
    ) -> tuple[Registration, list[Session]]:
        """Add or update a user. The sessions returned belong to its old home: `discard` them."""
        registration = self.users.register(user_id, home, allowed_paths, wants)
        self._copy_users()
        if registration.created or registration.moved:
            self._settle(home)
        if registration.moved:
            for slot in self._slots.get(user_id, {}).values():
                # What was meant for the old home must not run in the new one.
                slot.queue.drop()
            return registration, self._forget_all(user_id)
        for slot in self._slots.get(user_id, {}).values():
            if slot.session is not None:
                slot.session.user = registration.user
        return registration, []

    async def remove_user(self, user_id: str) -> bool:
        """Drop a user's record and state; False when there was none."""
        removed = self.users.remove(user_id)
        self._copy_users()
        await self.discard(user_id, self._forget_all(user_id))
        return removed

    def _copy_users(self) -> None:
        """Keep a second copy of the registry; that it cannot be written fails nothing."""
        records = self.users.records()
        if records != self._copied and _in_a_loop():
            self._copied = records
            copying = asyncio.ensure_future(self._store.keep_users(records))
            copying.add_done_callback(self._copy_made)

    def _copy_made(self, copying: asyncio.Future[None]) -> None:
        if not copying.cancelled() and (error := copying.exception()) is not None:
            self._copied = {}
            logger.error("cannot copy the users to sessions.db: %s", error)

    async def discard(self, user_id: str, sessions: Iterable[Session]) -> None:
        """Release a user's former sessions and leave nothing of them on disk."""
        erasing = self._store.delete_user(user_id)
        undo_store.forget_user(self._data_dir, user_id)
        try:
            await self._written(erasing)
        finally:
            await release_all(sessions)

    def slot(self, user_id: str, topic: "Topic") -> Slot:
        """The topic's place, made on first use."""
        slots = self._slots.get(user_id)
        if slots is None:
            slots = self._slots[user_id] = {}
        slot = slots.get(topic.canonical)
        if slot is None:
            slot = slots[topic.canonical] = Slot(user_id, topic)
        return slot

    def session(self, slot: Slot) -> Session:
        """The slot's session, made on first use; `save` keeps it. Raises `UnknownUserError`."""
        if slot.session is None:
            user = self.users.get(slot.user_id)
            if user is None:
                raise UnknownUserError(slot.user_id)
            self._settle(user.home)
            slot.session = Session(user, slot.topic)
            self._slots.setdefault(slot.user_id, {})[slot.topic.canonical] = slot
            self._observer.created(slot.user_id, slot.topic.canonical)
        return slot.session

    def holds(self, session: Session) -> bool:
        """Whether a session still is its topic's: nobody has closed the topic."""
        slot = self._slots.get(session.user.id, {}).get(session.topic.canonical)
        return slot is not None and slot.session is session

    def sessions(self, user_id: str | None = None) -> Iterator[Slot]:
        """The slots that hold a session, of one user or of all."""
        owners = self._slots if user_id is None else [user_id]
        for owner in owners:
            for slot in self._slots.get(owner, {}).values():
                if slot.session is not None:
                    yield slot

    def session_count(self) -> int:
        return sum(1 for _ in self.sessions())

    def drop_waiting(self, user_id: str, topic: "Topic") -> list[str]:
        """Answer those that wait for a topic that nothing of theirs will run; what they sent."""
        slot = self._slots.get(user_id, {}).get(topic.canonical)
        return [] if slot is None else slot.queue.drop()

    async def forget(self, user_id: str, topic: "Topic") -> Session | None:
        """Drop a topic's state. The session returned must be released; None when there was none.

        Nothing that waited for the topic runs any more.
        """
        slot = self._slots.get(user_id, {}).get(topic.canonical)
        if slot is None or slot.session is None:
            return None
        slot.queue.drop()
        session, slot.session = slot.session, None
        self._observer.closed(user_id, topic.canonical)
        erasing = self._store.delete(user_id, topic)
        undo_store.forget(self._data_dir, session)
        self._discard_if_idle(slot)
        try:
            await self._written(erasing)
        except BaseException:
            # The caller never gets the session, so its shell is ended here.
            await session.release()
            raise
        return session

    async def erase(self, session: Session) -> None:
        """Leave nothing on disk of what a closed topic held; the topic itself stays."""
        undo_store.forget(self._data_dir, session)
        session.stored = None
        await self._written(self._store.delete(session.user.id, session.topic))

    def leave(self, slot: Slot) -> None:
        """End the slot's turn; the next in line gets it."""
        slot.queue.leave()
        if slot.session is None:
            self._discard_if_idle(slot)

    def save(self, session: Session) -> Awaitable[None] | None:
        """Keep what a session remembers: None when there is nothing new.

        Else await it before anybody is told; it raises `NotSavedError`.
        """
        try:
            writing = self._store.save(session)
        except UnicodeEncodeError:
            # A name that is not UTF-8: the reply is worth more than the memory of it.
            logger.exception("cannot store session %s of %s", session.topic, session.user.id)
            return None
        return None if writing is None else self._written(writing)

    async def _written(self, writing: Awaitable[None]) -> None:
        try:
            await writing
        except sqlite3.Error as error:
            logger.error("cannot write sessions.db: %s", error)
            raise NotSavedError(str(error)) from error

    async def close(self) -> None:
        """Release every session; the daemon is stopping."""
        users = list(self._slots)
        await release_all(session for user_id in users for session in self._forget_all(user_id))
        # Its thread may wait for a disk; the loop has replies to send meanwhile.
        await asyncio.to_thread(self._store.close)

    def _restore(self) -> None:
        for user_id, name, state in self._store.rows():
            user = self.users.get(user_id)
            if user is not None:
                slot = self.slot(user_id, parse_topic(name))
                slot.session = restored(user, slot.topic, state, self._store.seen(user_id, name))

    def _forget_all(self, user_id: str) -> list[Session]:
        slots = list(self._slots.get(user_id, {}).values())
        sessions = [slot.session for slot in slots if slot.session is not None]
        for slot in slots:
            if slot.session is not None:
                self._observer.closed(user_id, slot.topic.canonical)
            slot.session = None
            self._discard_if_idle(slot)
        return sessions

    def _discard_if_idle(self, slot: Slot) -> None:
        """Remove a slot that holds no session and runs nothing."""
        slots = self._slots.get(slot.user_id)
        if slots is not None and slot.idle and slots.get(slot.topic.canonical) is slot:
            del slots[slot.topic.canonical]


def _in_a_loop() -> bool:
    """Whether the daemon is running; before that there is nobody to wait for a copy."""
    try:
        asyncio.get_running_loop()
    except RuntimeError:
        return False
    return True


async def release_all(sessions: Iterable[Session]) -> None:
    """Release sessions side by side: each busy shell takes a moment to end."""
    await asyncio.gather(*(session.release() for session in sessions))
