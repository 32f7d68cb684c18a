"""Sessions on disk: what a topic remembers comes back after a restart or a crash.

One small write per command that changed something, in the loop thread: SQLite in WAL mode takes
some twenty microseconds, a thread would take ten times that.
"""

import sqlite3
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Final

import msgspec

from stringd.actions.hosts import origin_of
from stringd.actions.provenance import WebPage
from stringd.documents import Included, Menu, parse
from stringd.runtime.topics.history import History
from stringd.runtime.topics.location import AppManifest, DocumentPlace, Location, Page, is_web
from stringd.runtime.topics.seen_files import SeenFiles
from stringd.runtime.topics.session import Session
from stringd.system.files import make_private_directory

if TYPE_CHECKING:
    from stringd.runtime.topics.users import User
    from stringd.wire.topic import Topic

MAX_KEPT_SOURCE: Final = 1024 * 1024
"""A web page up to this size is kept with its session, so that a restart needs no network."""


class OpenPlace(DocumentPlace, frozen=True, omit_defaults=True):
    """Where a session stands; with a `source`, a web page that is open."""

    source: str | None = None
    original: str | None = None
    converted: bool = False
    text_url: str = ""
    """Where the text came from, if not from `uri`."""
    menus: tuple[Menu, ...] = ()
    includes: tuple[tuple[str, str, Included], ...] = ()


class StoredSession(msgspec.Struct, omit_defaults=True):
    """What a session keeps in its row. New fields need defaults: old rows stay readable."""

    version: int = 1
    location: OpenPlace | None = None
    history: list[DocumentPlace] = []
    variables: dict[str, str] = {}
    auto_shortcuts: dict[str, str] = {}
    value_shortcuts: dict[str, str | tuple[str, ...]] = {}
    variable_owners: dict[str, str] = {}
    shortcut_owners: dict[str, str] = {}
    seen_menus: list[str] = []
    directory: str | None = None


_NOWHERE: Final = "nowhere"
_TABLES: Final = ("sessions", "seen")

_encode = msgspec.json.Encoder().encode
_decode = msgspec.json.Decoder(StoredSession).decode


class SessionStore:
    """The sessions in `<data dir>/sessions.db`.

    The files a session has seen are rows of their own: a long session costs no more to keep.
    """

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
        if session.seen_files.unsaved:
            with self._db:
                self._db.execute("BEGIN IMMEDIATE")
                self._save_state(session, state)
                self._save_seen(session)
            session.seen_files.saved()
        elif state != session.stored:
            self._save_state(session, state)
        session.stored = state

    def _save_state(self, session: Session, state: bytes) -> None:
        self._db.execute(
            "INSERT INTO sessions (user, topic, state) VALUES (?, ?, ?) "
            "ON CONFLICT DO UPDATE SET state = excluded.state",
            (session.user.id, session.topic.canonical, state),
        )

    def _save_seen(self, session: Session) -> None:
        owner = session.user.id, session.topic.canonical
        for path, digest in session.seen_files.unsaved.items():
            if digest is None:
                self._db.execute(
                    "DELETE FROM seen WHERE user = ? AND topic = ? AND path = ?", (*owner, path)
                )
            else:
                self._db.execute("REPLACE INTO seen VALUES (?, ?, ?, ?)", (*owner, path, digest))

    def delete(self, user_id: str, topic: "Topic") -> None:
        """Forget one session for good."""
        for table in _TABLES:
            self._db.execute(
                f"DELETE FROM {table} WHERE user = ? AND topic = ?",  # noqa: S608 - our own names
                (user_id, topic.canonical),
            )
        self._erase()

    def delete_user(self, user_id: str) -> None:
        """Forget every session of a user for good."""
        for table in _TABLES:
            self._db.execute(f"DELETE FROM {table} WHERE user = ?", (user_id,))  # noqa: S608
        self._erase()

    def rows(self) -> Iterator[tuple[str, str, bytes]]:
        """User, topic and state of every kept session, oldest first."""
        yield from self._db.execute("SELECT user, topic, state FROM sessions ORDER BY rowid")

    def seen(self, user_id: str, topic: str) -> Iterator[tuple[str, bytes]]:
        """Path and digest of every file a session has seen, the one seen last at the end."""
        yield from self._db.execute(
            "SELECT path, digest FROM seen WHERE user = ? AND topic = ? ORDER BY rowid",
            (user_id, topic),
        )

    def close(self) -> None:
        self._db.close()

    def _erase(self) -> None:
        """Deleted rows also live in the log of changes until that is emptied."""
        self._db.execute("PRAGMA wal_checkpoint(TRUNCATE)")

    def _open(self) -> sqlite3.Connection:
        # The files beside it get the rights of this one.
        self._path.touch(0o600)
        db = sqlite3.connect(self._path, isolation_level=None)
        try:
            db.execute("PRAGMA journal_mode = WAL")
            db.execute("PRAGMA synchronous = NORMAL")
            db.execute("PRAGMA secure_delete = ON")
            db.execute(
                "CREATE TABLE IF NOT EXISTS sessions "
                "(user TEXT, topic TEXT, state BLOB, PRIMARY KEY (user, topic))"
            )
            db.execute(
                "CREATE TABLE IF NOT EXISTS seen "
                "(user TEXT, topic TEXT, path TEXT, digest BLOB, PRIMARY KEY (user, topic, path))"
            )
        except BaseException:
            db.close()
            raise
        self._path.chmod(0o600)
        return db


def restored(
    user: "User", topic: "Topic", state: bytes, seen: Iterable[tuple[str, bytes]] = ()
) -> Session:
    """The session a row describes; a row that cannot be read is an empty session."""
    session = Session(user, topic)
    try:
        kept = _decode(state)
    except (msgspec.DecodeError, UnicodeDecodeError):
        return session
    session.location = _location(kept.location) if kept.location else None
    session.history = History(map(Location, kept.history))
    session.variables = kept.variables
    session.variable_owners = kept.variable_owners
    session.shortcut_owners = kept.shortcut_owners
    session.auto_shortcuts = kept.auto_shortcuts
    session.value_shortcuts = {**kept.value_shortcuts}
    session.seen_menus = set(kept.seen_menus)
    session.seen_files = SeenFiles(seen)
    session.directory = Path(kept.directory) if kept.directory else None
    session.stored = state
    return session


def _stored(session: Session) -> StoredSession:
    return StoredSession(
        location=_open_place(session.location) if session.location else None,
        history=[location.place for location in session.history],
        variables=session.variables,
        auto_shortcuts=session.auto_shortcuts,
        value_shortcuts=session.value_shortcuts,
        variable_owners=session.variable_owners,
        shortcut_owners=session.shortcut_owners,
        seen_menus=sorted(session.seen_menus),
        directory=str(session.directory) if session.directory else None,
    )


def _open_place(location: Location) -> OpenPlace:
    page, place = location.page, location.place
    if page is None or not is_web(place.uri) or len(page.document.source) > MAX_KEPT_SOURCE:
        return OpenPlace(place.uri, place.block, place.public, place.manifest)
    document = page.document
    original = document.original if document.converted else None
    if original is not None and len(original) > MAX_KEPT_SOURCE:
        original = None
    return OpenPlace(
        place.uri,
        place.block,
        place.public,
        place.manifest,
        document.source,
        original,
        document.converted,
        _text_url(page),
        tuple(page.menus.values()),
        tuple((path, base, text) for (path, base), text in page.includes.items()),
    )


def _text_url(page: Page) -> str:
    origin = page.provenance.origin if isinstance(page.provenance, WebPage) else None
    if origin is None:
        return _NOWHERE
    return "" if origin == origin_of(page.uri) else str(origin)


def _location(kept: OpenPlace) -> Location:
    place = DocumentPlace(kept.uri, kept.block, kept.public, kept.manifest)
    if kept.source is None:
        return Location(place)
    document = parse(kept.source, kept.uri, original=kept.original, converted=kept.converted)
    page = Page(
        document,
        WebPage(origin_of(kept.text_url or kept.uri), kept.public),
        menus={menu.name: menu for menu in kept.menus},
        includes={(path, base): text for path, base, text in kept.includes},
        public=kept.public,
        # Only its address: the files it lists come back with `/refresh`.
        manifest=AppManifest(kept.manifest, {}) if kept.manifest else None,
    )
    return Location(place, page)
