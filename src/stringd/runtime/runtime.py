"""Users, their topics, and the execution of commands in them."""

import asyncio
import inspect
import logging
from collections.abc import Awaitable, Callable, Iterable, Iterator
from typing import TYPE_CHECKING, NamedTuple

from stringd.actions.fetch import Fetcher
from stringd.runtime.commands import dispatch
from stringd.runtime.errors import CommandError, UnknownUserError
from stringd.runtime.session import Session, Slot
from stringd.runtime.users import Registration, UserRegistry
from stringd.wire.result import Result

if TYPE_CHECKING:
    from collections.abc import Sequence

    from stringd.documents import Action
    from stringd.runtime.commands.call import Call
    from stringd.runtime.settings import RuntimeSettings
    from stringd.wire.exec import Meta
    from stringd.wire.topic import Topic

RunDefault = Callable[["Call", "Action"], Awaitable[str | None]]

logger = logging.getLogger("stringd.runtime")


class Answer(NamedTuple):
    """A command's result and the document its topic shows afterwards."""

    result: Result
    meta: "Meta | None"


class Runtime:
    """Everything behind `/exec`, `/users` and `/sessions`."""

    def __init__(self, settings: "RuntimeSettings") -> None:
        self.settings = settings
        self.users = UserRegistry(settings.data_dir)
        self.fetcher = Fetcher()
        self.run_default: RunDefault | None = None
        """Runs a page's default action after it is opened; a None answer shows nothing."""
        self._slots: dict[str, dict[str, Slot]] = {}

    def register(
        self, user_id: str, home: str, allowed_paths: "Sequence[str] | None" = None
    ) -> tuple[Registration, list[Session]]:
        """Add or update a user. The sessions returned belong to its old home: release them."""
        registration = self.users.register(user_id, home, allowed_paths)
        if registration.moved:
            return registration, self._forget_all(user_id)
        for slot in self._slots.get(user_id, {}).values():
            if slot.session is not None:
                slot.session.user = registration.user
        return registration, []

    def remove_user(self, user_id: str) -> tuple[bool, list[Session]]:
        """Drop a user's record and state. The sessions returned must be released."""
        return self.users.remove(user_id), self._forget_all(user_id)

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
        """The slot's session, made on first use. Raises `UnknownUserError`."""
        if slot.session is None:
            user = self.users.get(slot.user_id)
            if user is None:
                raise UnknownUserError(slot.user_id)
            slot.session = Session(user, slot.topic)
            self._slots.setdefault(slot.user_id, {})[slot.topic.canonical] = slot
        return slot.session

    def sessions(self, user_id: str | None = None) -> Iterator[Slot]:
        """The slots that hold a session, of one user or of all."""
        owners = self._slots if user_id is None else [user_id]
        for owner in owners:
            for slot in self._slots.get(owner, {}).values():
                if slot.session is not None:
                    yield slot

    def session_count(self) -> int:
        return sum(1 for _ in self.sessions())

    def forget(self, user_id: str, topic: "Topic") -> Session | None:
        """Drop a topic's state. The session returned must be released; None when there was none."""
        slot = self._slots.get(user_id, {}).get(topic.canonical)
        if slot is None or slot.session is None:
            return None
        session, slot.session = slot.session, None
        self.discard_if_idle(slot)
        return session

    def discard_if_idle(self, slot: Slot) -> None:
        """Remove a slot that holds no session and runs nothing."""
        slots = self._slots.get(slot.user_id)
        if slots is not None and slot.idle and slots.get(slot.topic.canonical) is slot:
            del slots[slot.topic.canonical]

    async def close(self) -> None:
        """Release every session; the daemon is stopping."""
        users = list(self._slots)
        await release_all(session for user_id in users for session in self._forget_all(user_id))
        await self.fetcher.close()

    def execute(self, slot: Slot, text: str, cwd: str | None = None) -> Answer | Awaitable[Answer]:
        """Run one command in the slot's turn; what answers at once needs no awaiting."""
        session = self.session(slot)
        try:
            outcome = dispatch(self, session, text, cwd)
        except Exception as error:  # noqa: BLE001 - a defect in a command must still be answered
            return _failure(session, error)
        if isinstance(outcome, Result):
            return Answer(outcome, session.meta())
        return _finish(session, outcome)

    def _forget_all(self, user_id: str) -> list[Session]:
        slots = list(self._slots.get(user_id, {}).values())
        sessions = [slot.session for slot in slots if slot.session is not None]
        for slot in slots:
            slot.session = None
            self.discard_if_idle(slot)
        return sessions


async def release_all(sessions: Iterable[Session]) -> None:
    """Release sessions side by side: each busy shell takes a moment to end."""
    await asyncio.gather(*(session.release() for session in sessions))


async def _finish(session: Session, outcome: Awaitable[Result]) -> Answer:
    try:
        return Answer(await outcome, session.meta())
    except Exception as error:  # noqa: BLE001 - a defect in a command must still be answered
        return _failure(session, error)
    finally:
        if inspect.iscoroutine(outcome):
            outcome.close()


def _failure(session: Session, error: Exception) -> Answer:
    if isinstance(error, CommandError):
        return Answer(Result.error(error.code, error.message), session.meta())
    logger.error("command failed in %s", session.topic, exc_info=error)
    return Answer(Result.error("INTERNAL_ERROR", str(error) or type(error).__name__), None)
