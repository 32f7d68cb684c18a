"""Events that programs of this machine leave for a user, in a topic, until somebody reads them.

`<data dir>/webhooks.json` says whom a token belongs to, `<data dir>/events/<user>/<id>.json` holds
one event. An event is data: nothing of it is ever run.
"""

import secrets
import threading
import time
from contextlib import suppress
from pathlib import Path
from typing import Final, Literal
from urllib.parse import quote

import msgspec

from stringd.system.clock import timestamp
from stringd.system.files import make_private_directory, write_atomically

MAX_EVENTS: Final = 200
"""Of one user; when all of them wait to be read, no more are taken."""
MAX_EVENT_BYTES: Final = 64 * 1024
_DIGITS: Final = "0123456789abcdefghijklmnopqrstuvwxyz"


class InboxEvent(msgspec.Struct, frozen=True, rename="camel", omit_defaults=True):
    """One event. New fields need defaults: old files stay readable."""

    id: str
    user_id: str
    topic: str
    received_at: str
    text: str
    status: Literal["pending", "ack"] = "pending"
    acked_at: str | None = None


class WebhookOwner(msgspec.Struct, frozen=True):
    """Whom events sent with a token are for."""

    user: str
    topic: str


class InboxFullError(Exception):
    """A user has too many events that nobody has read."""


class Inbox:
    """All events of the daemon's users. Methods touch the disk: call them in a thread."""

    def __init__(self, data_dir: Path) -> None:
        self._tokens_path = data_dir / "webhooks.json"
        self._events_path = data_dir / "events"
        self._lock = threading.Lock()
        self._tokens: dict[str, WebhookOwner] | None = None
        self._events: dict[str, dict[str, InboxEvent]] = {}

    def token(self, user: str, topic: str, *, rotate: bool = False) -> str:
        """The token of a user's topic, made on demand; `rotate` makes the old one worthless.

        Raises `OSError`.
        """
        with self._lock:
            tokens = self._load_tokens()
            owner = WebhookOwner(user, topic)
            known = next((token for token, each in tokens.items() if each == owner), None)
            if known is not None and not rotate:
                return known
            token = f"wh_{secrets.token_urlsafe(24)}"
            kept = {name: each for name, each in tokens.items() if each != owner}
            self._store_tokens({**kept, token: owner})
            return token

    def owner(self, token: str) -> WebhookOwner | None:
        """Whom a token belongs to."""
        with self._lock:
            return self._load_tokens().get(token)

    def add(self, owner: WebhookOwner, text: str) -> InboxEvent:
        """Keep an event. Raises `InboxFullError`, `OSError`."""
        with self._lock:
            held = self._of(owner.user)
            if len(held) >= MAX_EVENTS:
                read = next((each.id for each in held.values() if each.status == "ack"), None)
                if read is None:
                    raise InboxFullError
                self._drop(owner.user, read)
            event = InboxEvent(_new_id(), owner.user, owner.topic, timestamp(), text)
            self._write(event)
            held[event.id] = event
            return event

    def events(self, user: str) -> list[InboxEvent]:
        """What a user has, oldest first."""
        with self._lock:
            return list(self._of(user).values())

    def pending(self, user: str, topic: str) -> int:
        """How many events wait in a topic."""
        with self._lock:
            held = self._of(user)
            if not held:
                return 0
            return sum(e.topic == topic and e.status == "pending" for e in held.values())

    def acknowledge(self, user: str, ident: str) -> InboxEvent | None:
        """Mark an event as dealt with; None when there is no such one. Raises `OSError`."""
        with self._lock:
            held = self._of(user)
            event = held.get(ident)
            if event is None or event.status == "ack":
                return event
            event = msgspec.structs.replace(event, status="ack", acked_at=timestamp())
            self._write(event)
            held[ident] = event
            return event

    def clear(self, user: str, *, pending_too: bool) -> int:
        """Remove the events that are dealt with, or all; how many those were."""
        with self._lock:
            gone = [
                each.id for each in self._of(user).values() if pending_too or each.status == "ack"
            ]
            for ident in gone:
                self._drop(user, ident)
            return len(gone)

    def forget(self, user: str) -> None:
        """A user is gone, and with it its tokens and events. Raises `OSError`."""
        self.clear(user, pending_too=True)
        with self._lock:
            tokens = self._load_tokens()
            kept = {name: each for name, each in tokens.items() if each.user != user}
            if kept != tokens:
                self._store_tokens(kept)

    def _load_tokens(self) -> dict[str, WebhookOwner]:
        if self._tokens is None:
            try:
                data = self._tokens_path.read_bytes()
                self._tokens = msgspec.json.decode(data, type=dict[str, WebhookOwner])
            except (OSError, msgspec.DecodeError, UnicodeDecodeError):
                # What cannot be read belongs to nobody; new tokens are made on demand.
                self._tokens = {}
        return self._tokens

    def _store_tokens(self, tokens: dict[str, WebhookOwner]) -> None:
        make_private_directory(self._tokens_path.parent)
        data = msgspec.json.format(msgspec.json.encode(tokens), indent=2)
        write_atomically(self._tokens_path, data + b"\n", 0o600)
        self._tokens = tokens

    def _of(self, user: str) -> dict[str, InboxEvent]:
        held = self._events.get(user)
        if held is None:
            held = self._events[user] = {}
            for path in sorted(self._folder(user).glob("evt_*.json")):
                with suppress(OSError, msgspec.DecodeError, UnicodeDecodeError):
                    event = msgspec.json.decode(path.read_bytes(), type=InboxEvent)
                    held[event.id] = event
        return held

    def _write(self, event: InboxEvent) -> None:
        folder = self._folder(event.user_id)
        make_private_directory(folder)
        write_atomically(folder / f"{event.id}.json", msgspec.json.encode(event) + b"\n", 0o600)

    def _drop(self, user: str, ident: str) -> None:
        del self._events[user][ident]
        with suppress(OSError):
            (self._folder(user) / f"{ident}.json").unlink()

    def _folder(self, user: str) -> Path:
        return self._events_path / quote(user, safe="").replace(".", "%2E")


def _new_id() -> str:
    """Ids sort by the time they were given."""
    number, digits = time.time_ns() // 1000, ""
    while number:
        number, digit = divmod(number, 36)
        digits = _DIGITS[digit] + digits
    return f"evt_{digits:0>11}_{secrets.token_hex(3)}"
