"""The execution of commands in their topics."""

import inspect
import logging
from collections.abc import Awaitable, Coroutine, Generator
from typing import TYPE_CHECKING, Any, Final

import msgspec

from stringd.runtime.commands import bash
from stringd.runtime.commands.table import dispatch
from stringd.runtime.errors import CommandError, NotSavedError
from stringd.runtime.packages.interrupted import Interrupted
from stringd.runtime.packages.record import Adoption
from stringd.runtime.services import Services
from stringd.runtime.topics.call import ANYONE, Caller
from stringd.runtime.topics.observer import TopicObserver, Unobserved
from stringd.runtime.topics.session import Session, Slot
from stringd.runtime.topics.topics import Topics
from stringd.wire.exec import Meta
from stringd.wire.result import Result

if TYPE_CHECKING:
    from stringd.net.fetch import Fetcher
    from stringd.runtime.settings import RuntimeSettings

logger = logging.getLogger("stringd.runtime")

_CANCELLED: Final = Result.error("CANCELLED", "The daemon stopped before the command ended.")


class Answer(msgspec.Struct, frozen=True, gc=False):
    """A command's result and the document its topic shows afterwards."""

    result: Result
    meta: Meta | None


class Saving:
    """The answer to a command that is done, as soon as what it changed is on disk."""

    __slots__ = ("_answer",)

    def __init__(self, answer: Coroutine[Any, Any, Answer]) -> None:
        self._answer = answer

    def __await__(self) -> Generator[Any, None, Answer]:
        return self._answer.__await__()


class Runtime:
    """Everything behind `/exec`, `/users` and `/sessions`."""

    def __init__(
        self,
        settings: "RuntimeSettings",
        fetcher: "Fetcher | None" = None,
        observer: TopicObserver | None = None,
    ) -> None:
        self._observer = observer or Unobserved()
        self.services = Services.of(settings, fetcher)
        adopt, settle = Adoption(settings.data_dir), Interrupted()

        def prepare(home: str) -> None:
            settle(home)
            adopt(home)

        self.topics = Topics(settings.data_dir, prepare, self._observer)
        self._closed = False

    def execute(self, slot: Slot, text: str, caller: Caller = ANYONE) -> Answer | Awaitable[Answer]:
        """Run one command in the slot's turn; what answers at once needs no awaiting."""
        if self._closed:
            # Those who waited behind a command that stopping has ended must not start now.
            return Answer(Result.error("CONFLICT", "Not run: stringd is shutting down."), None)
        session = slot.session or self.topics.session(slot)
        try:
            outcome, reads_only = dispatch(self.services, self.topics, session, text, caller)
        except Exception as error:  # noqa: BLE001 - a defect in a command must still be answered
            failure = _failure(session, error)
            self._observer.answered(slot, text, caller.client, failure.result)
            return failure
        if not isinstance(outcome, Result):
            number = self._observer.began(slot, text, caller.client)
            return self._observed(number, self._finish(slot, session, outcome))
        if not reads_only or session.stored is None:
            writing = self._keep(slot, session)
            if writing is not None:
                number = self._observer.began(slot, text, caller.client)
                return Saving(self._observed(number, _kept(session, outcome, writing)))
        self._observer.answered(slot, text, caller.client, outcome)
        return Answer(outcome, session.meta())

    def beside(self, slot: Slot, text: str, caller: Caller = ANYONE) -> Awaitable[Answer] | None:
        """The answer to what need not wait for its turn: it speaks to the command that has it.

        None for everything else.
        """
        session = slot.session
        if session is None or not bash.bypasses_queue(session, text, slot.queue.length):
            return None
        outcome = bash.bash(self.services.settings, self.topics, session, text, caller)
        return self._finish(slot, session, outcome)

    def attend(self, slot: Slot) -> float | None:
        """Renew the time limit of a shell command that somebody waits for; the seconds it has now.

        None where no command runs.
        """
        return bash.attend(slot.session) if slot.session is not None else None

    async def close(self) -> None:
        """Release every session; the daemon is stopping."""
        self._closed = True
        await self.topics.close()
        await self.services.close()

    async def _observed(self, number: int, finishing: Awaitable[Answer]) -> Answer:
        result = _CANCELLED
        try:
            answer = await finishing
            result = answer.result
            return answer
        finally:
            self._observer.ended(number, result)

    async def _finish(self, slot: Slot, session: Session, outcome: Awaitable[Result]) -> Answer:
        try:
            result = await outcome
        except Exception as error:  # noqa: BLE001 - a defect in a command must still be answered
            return _failure(session, error)
        finally:
            if inspect.iscoroutine(outcome):
                outcome.close()
        writing = self._keep(slot, session)
        if writing is not None:
            return await _kept(session, result, writing)
        return Answer(result, session.meta())

    def _keep(self, slot: Slot, session: Session) -> Awaitable[None] | None:
        """Store what a command left behind, unless the topic was closed by or during it."""
        return self.topics.save(session) if slot.session is session else None


async def _kept(session: Session, result: Result, writing: Awaitable[None]) -> Answer:
    """The answer to a command, once what it changed is on disk."""
    try:
        await writing
    except NotSavedError as error:
        # What it said is shown all the same: it may have done what cannot be done twice.
        said = "\n".join(filter(None, (result.message, result.content)))
        return Answer(Result.error(error.code, error.message, said), session.meta())
    return Answer(result, session.meta())


def _failure(session: Session, error: Exception) -> Answer:
    if isinstance(error, CommandError):
        return Answer(Result.error(error.code, error.message), session.meta())
    logger.error("command failed in %s", session.topic, exc_info=error)
    return Answer(Result.error("INTERNAL_ERROR", str(error) or type(error).__name__), None)
