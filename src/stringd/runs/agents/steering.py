"""Texts a human sends into a running strategy, until an agent's call takes them."""

from collections.abc import Callable, Iterator
from typing import Final, NamedTuple

from stringd.runs.record.events import DecidedBy

# A person types these; a hundred unread ones mean nobody is taking them.
MAX_WAITING: Final = 100
PERSON: Final = DecidedBy(kind="human", via="an earlier segment")


class Steer(NamedTuple):
    """One accepted text. `receipt` is called with the agent that took it, or with None.

    `between` lets it reach a call that is under way, between two model round-trips.
    """

    text: str
    by: DecidedBy = PERSON
    receipt: Callable[[str | None], None] | None = None
    between: bool = False


class Mailbox:
    __slots__ = ("_waiting",)

    def __init__(self) -> None:
        self._waiting: list[Steer] = []

    @property
    def full(self) -> bool:
        return len(self._waiting) >= MAX_WAITING

    def __iter__(self) -> Iterator[Steer]:
        return iter(self._waiting)

    def put(self, steer: Steer) -> None:
        self._waiting.append(steer)

    def drain(self) -> list[Steer]:
        taken, self._waiting = self._waiting, []
        return taken

    def drain_between(self) -> list[Steer]:
        """Take those that may reach a call that is under way."""
        taken = [steer for steer in self._waiting if steer.between]
        self._waiting = [steer for steer in self._waiting if not steer.between]
        return taken


def with_steering(message: str, texts: list[str]) -> str:
    """The message with each text in a block of its own behind it."""
    blocks = [f"<user_steering>\n{text}\n</user_steering>" for text in texts]
    return "\n\n".join([message, *blocks] if message else blocks)
