"""Sessions on disk: what a topic remembers comes back after a restart or a crash.

One small write per command that changed something, in the loop thread: SQLite in WAL mode takes
some twenty microseconds, a thread would take ten times that.
"""

import sqlite3
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Final

import msgspec

from stringd.documents import Included, Menu, parse
from stringd.runtime.manifest import Manifest
from stringd.runtime.page import Location, Page, is_web
from stringd.runtime.session import Session
from stringd.runtime.storage import make_private_directory

if TYPE_CHECKING:
    from stringd.runtime.users import User
    from stringd.wire.topic import Topic

MAX_KEPT_SOURCE: Final = 1024 * 1024
"""A web page up to this size is kept with its session, so that a restart needs no network."""


class StoredPlace(msgspec.Struct, omit_defaults=True):
    """A document at a block; `source` only for a web page that is open."""

    uri: str
    block: str | None = None
    source: str | None = None
    original: str | None = None
    converted: bool = False
    public: bool = False
    menus: list[Menu] = []
    includes: list[tuple[str, str, Included]] = []
    manifest: str | None = None
    """Address of the manifest the page came from; its files come back with `/refresh`."""


class StoredSession(msgspec.Struct, omit_defaults=True):
    """Everything a session keeps. New fields need defaults: old rows stay readable."""

    version: int = 1
    location: StoredPlace | None = None
    history: list[StoredPlace] = []
    variables: dict[str, str] = {}
    auto_shortcuts: dict[str, str] = {}
    value_shortcuts: dict[str, str | tuple[str, ...]] = {}
    seen_menus: list[str] = []
    seen_files: dict[str, bytes] = {}
    directory: str | None = None


_encode = msgspec.json.Encoder().encode
_decode = msgspec.json.Decoder(StoredSession).decode


class SessionStore:
    """The table of sessions in `<data dir>/sessions.db`."""

    def __init__(self, data_dir: Path) -> None:
        make_private_directory(data_dir)
        self._path = data_dir / "sessions.db"
        try:
            self._db = self._open()
        except sqlite3.DatabaseError:
            # Better an empty memory than no daemon; what could not be read is kept aside.
            self._path.replace(self._path.with_name("sessions.db.unreadable"))
            self._db = self._open()

    def save(self, session: Session) -> None:
        """Keep what the session remembers, if it differs from what is kept."""
        state = _encode(_stored(session))
        if state == session.stored:
            return
        self._db.execute(
            "INSERT INTO sessions (user, topic, state) VALUES (?, ?, ?) "
            "ON CONFLICT DO UPDATE SET state = excluded.state",
            (session.user.id, session.topic.canonical, state),
        )
        session.stored = state

    def delete(self, user_id: str, topic: "Topic") -> None:
        """Forget one session for good."""
        self._db.execute(
            "DELETE FROM sessions WHERE user = ? AND topic = ?", (user_id, topic.canonical)
        )
        self._erase()

    def delete_user(self, user_id: str) -> None:
        """Forget every session of a user for good."""
        self._db.execute("DELETE FROM sessions WHERE user = ?", (user_id,))
        self._erase()

    def rows(self) -> Iterator[tuple[str, str, bytes]]:
        """User, topic and state of every kept session, oldest first."""
        yield from self._db.execute("SELECT user, topic, state FROM sessions ORDER BY rowid")

    def close(self) -> None:
        self._db.close()

    def _erase(self) -> None:
        """Deleted rows also live in the log of changes until that is emptied."""
        self._db.execute("PRAGMA wal_checkpoint(TRUNCATE)")

    def _open(self) -> sqlite3.Connection:
        db = sqlite3.connect(self._path, isolation_level=None)
        try:
            db.execute("PRAGMA journal_mode = WAL")
            db.execute("PRAGMA synchronous = NORMAL")
            db.execute("PRAGMA secure_delete = ON")
            db.execute(
                "CREATE TABLE IF NOT EXISTS sessions "
                "(user TEXT, topic TEXT, state BLOB, PRIMARY KEY (user, topic))"
            )
        except BaseException:
            db.close()
            raise
        self._path.chmod(0o600)
        return db


def restored(user: "User", topic: "Topic", state: bytes) -> Session:
    """The session a row describes; a row that cannot be read is an empty session."""
    session = Session(user, topic)
    try:
        kept = _decode(state)
    except (msgspec.DecodeError, UnicodeDecodeError):
        return session
    session.location = _location(kept.location) if kept.location else None
    session.history = [_location(place) for place in kept.history]
    session.variables = kept.variables
    session.auto_shortcuts = kept.auto_shortcuts
    session.value_shortcuts = {**kept.value_shortcuts}
    session.seen_menus = set(kept.seen_menus)
    session.seen_files = {Path(path): digest for path, digest in kept.seen_files.items()}
    session.directory = Path(kept.directory) if kept.directory else None
    session.stored = state
    return session


def _stored(session: Session) -> StoredSession:
    return StoredSession(
        location=_open_place(session.location) if session.location else None,
        history=[_place(place) for place in session.history],
        variables=session.variables,
        auto_shortcuts=session.auto_shortcuts,
        value_shortcuts=session.value_shortcuts,
        seen_menus=sorted(session.seen_menus),
        seen_files={str(path): digest for path, digest in session.seen_files.items()},
        directory=str(session.directory) if session.directory else None,
    )


def _open_place(location: Location) -> StoredPlace:
    page = location.page
    if page is None or not is_web(location.uri) or len(page.document.source) > MAX_KEPT_SOURCE:
        return _place(location)
    document = page.document
    original = document.original if document.converted else None
    if original is not None and len(original) > MAX_KEPT_SOURCE:
        original = None
    return StoredPlace(
        location.uri,
        location.block,
        document.source,
        original,
        document.converted,
        location.public,
        list(page.menus.values()),
        [(path, base, text) for (path, base), text in page.includes.items()],
        location.manifest,
    )


def _place(location: Location) -> StoredPlace:
    """Where it is, without what is there."""
    public, manifest = location.public, location.manifest
    return StoredPlace(location.uri, location.block, public=public, manifest=manifest)


def _location(place: StoredPlace) -> Location:
    page = None
    if place.source is not None:
        document = parse(
            place.source, place.uri, original=place.original, converted=place.converted
        )
        page = Page(
            document,
            menus={menu.name: menu for menu in place.menus},
            includes={(path, base): text for path, base, text in place.includes},
            public=place.public,
            manifest=Manifest(place.manifest, {}) if place.manifest else None,
        )
    return Location(place.uri, place.block, page, public=place.public, manifest=place.manifest)
