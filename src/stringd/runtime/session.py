"""The state of one topic, and the slot that keeps it together with its queue."""

import asyncio
from typing import TYPE_CHECKING, Protocol

from stringd.runtime.queue import TopicQueue

if TYPE_CHECKING:
    from collections.abc import Iterable
    from pathlib import Path

    from stringd.runtime.users import User
    from stringd.wire.exec import Meta
    from stringd.wire.topic import Topic


class LiveShell(Protocol):
    """A running shell, as far as a session cares: it stands somewhere and can be ended."""

    @property
    def place(self) -> str | None:
        """The directory it stands in, None when it has ended."""

    async def close(self) -> None:
        """End the shell and everything it started."""


class Session:
    """What a topic remembers between commands."""

    __slots__ = ("directory", "shell", "topic", "user", "variables")

    def __init__(self, user: "User", topic: "Topic") -> None:
        self.user = user
        self.topic = topic
        self.variables: dict[str, str] = {}
        self.directory: Path | None = None
        self.shell: LiveShell | None = None

    def meta(self) -> "Meta | None":
        """The open document as the head event shows it."""
        return None

    def document_directory(self) -> "Path | None":
        """Where the open local document lies."""
        return None

    def shown_path(self) -> str | None:
        """The open document as replies name it."""
        return None

    def detail(self) -> str:
        """What `/topics` says about this topic."""
        if self.topic.type == "bash":
            place = self.shell.place if self.shell else None
            return f"cwd: {place}" if place else "(no shell)"
        shown = self.shown_path()
        return f"current: {shown}" if shown else "(no doc)"

    def action_help(self) -> list[str]:
        """The section of `/help` about the open page."""
        return []

    async def reset(self) -> None:
        """Discard everything the topic remembers."""
        self.variables.clear()
        self.directory = None
        await self.release()

    async def release(self) -> None:
        """End what the session holds outside memory."""
        shell, self.shell = self.shell, None
        if shell is not None:
            await shell.close()


async def release_all(sessions: "Iterable[Session]") -> None:
    """Release many sessions side by side: a busy shell takes a moment to end."""
    await asyncio.gather(*(session.release() for session in sessions))


class Slot:
    """A topic's place in the runtime: it outlives its session while commands still wait."""

    __slots__ = ("queue", "session", "topic", "user_id")

    def __init__(self, user_id: str, topic: "Topic") -> None:
        self.user_id = user_id
        self.topic = topic
        self.queue = TopicQueue()
        self.session: Session | None = None

    @property
    def idle(self) -> bool:
        return self.session is None and not self.queue.busy
