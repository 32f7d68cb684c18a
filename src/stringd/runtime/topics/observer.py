"""Who hears what happens in topics. Nothing a topic does depends on it."""

from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    from stringd.runtime.topics.session import Slot
    from stringd.wire.result import Result


ClientName = bytes | str
"""What a client calls itself: a header as it came, or our own word."""


class TopicObserver(Protocol):
    """Called from the event loop, in order; must neither raise nor take long."""

    def created(self, user_id: str, topic: str) -> None:
        """A topic got a session."""

    def closed(self, user_id: str, topic: str) -> None:
        """A topic's session is gone."""

    def answered(self, slot: "Slot", text: str, client: ClientName, result: "Result") -> None:
        """A command that answered at once."""

    def began(self, slot: "Slot", text: str, client: ClientName, /) -> int:
        """A command that takes time began; returns its number."""

    def ended(self, number: int, result: "Result") -> None:
        """The command of that number ended."""


class Unobserved:
    """Nobody listens."""

    def created(self, user_id: str, topic: str) -> None: ...

    def closed(self, user_id: str, topic: str) -> None: ...

    def answered(self, slot: "Slot", text: str, client: ClientName, result: "Result") -> None: ...

    def began(self, _slot: "Slot", _text: str, _client: ClientName, /) -> int:
        return 0

    def ended(self, number: int, result: "Result") -> None: ...
