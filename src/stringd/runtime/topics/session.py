"""The state of one topic, and the slot that keeps it together with its queue."""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Final, Protocol

from stringd.net.cookies import CookieJar
from stringd.runtime.shell.scrollback import Scrollback
from stringd.runtime.topics.history import History
from stringd.runtime.topics.location import Location, display, path_of
from stringd.runtime.topics.queue import MAX_WAITING, TopicQueue
from stringd.runtime.topics.seen_files import SeenFiles
from stringd.wire.result import Result

if TYPE_CHECKING:
    from pathlib import Path

    from stringd.runtime.topics.users import User
    from stringd.wire.exec import Meta
    from stringd.wire.topic import Topic

_NAMED: Final = 80
ShortcutValue = str | tuple[str, ...]
"""What an action's answer stores under `@name`: one text or a tuple."""


class Running(Protocol):
    """A shell or a command that a topic started: closing the topic ends it."""

    @property
    def directory(self) -> str:
        """The directory it is in."""

    @property
    def ended(self) -> bool:
        """Whether it has ended by itself; its last output can still be read."""

    async def close(self) -> None:
        """End it and everything it started."""


class Session:
    """What a topic remembers between commands."""

    __slots__ = (
        "auto_shortcuts",
        "cookies",
        "directory",
        "had_shell",
        "history",
        "location",
        "running",
        "scrollback",
        "seen_files",
        "seen_menus",
        "shortcut_owners",
        "stored",
        "topic",
        "user",
        "value_shortcuts",
        "variable_owners",
        "variables",
    )

    def __init__(self, user: "User", topic: "Topic") -> None:
        self.user = user
        self.topic = topic
        self.running: Running | None = None
        self.stored: bytes | None = None
        """What is kept of it on disk."""
        self.scrollback: Scrollback | None = None
        """What its terminal showed, where it has one."""
        self._forget()

    def _forget(self) -> None:
        self.location: Location | None = None
        self.cookies = CookieJar() if self.topic.type == "web" else None
        """What sites set in a web topic; in memory only."""
        self.history = History()
        self.variables: dict[str, str] = {}
        self.auto_shortcuts: dict[str, str] = {}
        self.value_shortcuts: dict[str, ShortcutValue] = {}
        self.variable_owners: dict[str, str] = {}
        self.shortcut_owners: dict[str, str] = {}
        """Whose answers set a value; what the caller set is in neither."""
        self.seen_menus: set[str] = set()
        self.seen_files = SeenFiles()
        self.directory: Path | None = None
        self.had_shell = False
        """Whether a shell was started in it, by this daemon or one before it."""

    def number(self, variable: str, least: int, default: int) -> int:
        """A setting among the variables; the default when it is not a number of that size."""
        text = self.variables.get(variable, "").strip()
        return int(text) if text.isdecimal() and len(text) < 10 and int(text) >= least else default

    def assign(self, name: str, value: str) -> None:
        """Set a variable as the caller asked."""
        self.variables[name] = value
        self.variable_owners.pop(name, None)

    def meta(self) -> "Meta | None":
        """The open document as the head event shows it."""
        return None if self.location is None else self.location.meta(len(self.history))

    def document_directory(self) -> "Path | None":
        """Where the open local document is."""
        path = path_of(self.location.uri) if self.location else None
        return path.parent if path else None

    def shown_path(self) -> str | None:
        """The open document as replies name it."""
        return self.shown(self.location.uri) if self.location else None

    def shown(self, uri: str) -> str:
        """An address as replies name it: files relative to home, pages by their URL."""
        path = path_of(uri)
        return uri if path is None else display(self.user.home, path)

    def detail(self) -> str:
        """What `/topics` says about this topic."""
        if self.topic.type == "bash":
            shell = self.running
            return f"cwd: {shell.directory}" if shell and not shell.ended else "(no shell)"
        shown = self.shown_path()
        return f"current: {shown}" if shown else "(no doc)"

    async def reset(self) -> None:
        """Discard everything the topic remembers."""
        self._forget()
        if self.scrollback is not None:
            self.scrollback.clear()
        await self.release()

    def terminal(self) -> Scrollback:
        """What its terminal shows, for its shells to write and watchers to read."""
        if self.scrollback is None:
            self.scrollback = Scrollback()
        return self.scrollback

    async def release(self) -> None:
        """End what the session holds outside memory."""
        running, self.running = self.running, None
        if running is not None:
            await running.close()

    @contextmanager
    def holding(self, running: Running) -> Iterator[None]:
        """Hold a command while it runs: a topic closed meanwhile ends it."""
        self.running = running
        try:
            yield
        finally:
            if self.running is running:
                self.running = None


def titled(text: str) -> str:
    """A command as an answer names it: its first line, cut to a length that names it."""
    first, _, rest = text.strip().partition("\n")
    return f"{first[:_NAMED].rstrip()}…" if rest or len(first) > _NAMED else first


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

    def dropped(self, text: str) -> Result:
        """The answer to a command that waited while the topic was closed."""
        return Result.error(
            "CONFLICT",
            f"Not run: {self.topic} was closed while this waited for its turn: {titled(text)}\n"
            "Send it again if it is meant for the topic as it is now.",
        )

    @property
    def crowded(self) -> str:
        """The error for a caller who finds every waiting place taken."""
        return (
            f"Topic {self.user_id}:{self.topic} has {MAX_WAITING} commands queued. Try again later."
        )
