"""Sessions on disk: what a topic remembers comes back after a restart or a crash.

One small write per command that changed something, on disk before the command is answered.
"""

import sqlite3
from collections.abc import Awaitable, Iterable, Iterator, Mapping
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Final

import msgspec

from stringd.actions.hosts import origin_of
from stringd.actions.provenance import WebPage
from stringd.documents import Included, Menu, parse
from stringd.runtime.errors import StorageError
from stringd.runtime.topics.history import History
from stringd.runtime.topics.location import AppManifest, DocumentPlace, Location, Page, is_web
from stringd.runtime.topics.seen_files import SeenFiles
from stringd.runtime.topics.session import Session
from stringd.runtime.topics.session_writer import SessionWriter
from stringd.system.damage import put_aside
from stringd.system.files import make_private_directory

if TYPE_CHECKING:
    from stringd.runtime.topics.users import User
    from stringd.wire.topic import Topic

MAX_KEPT_SOURCE: Final = 1024 * 1024
"""A web page up to this size is kept with its session, so that a restart needs no network."""


class OpenPlace(DocumentPlace, frozen=True, omit_defaults=True):
    """Where a session is; with a `source`, a web page that is open."""

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
    had_shell: bool = False


_NOWHERE: Final = "nowhere"
_TABLES: Final = (
    "sessions (user TEXT, topic TEXT, state BLOB, PRIMARY KEY (user, topic))",
    "seen (user TEXT, topic TEXT, path TEXT, digest BLOB, PRIMARY KEY (user, topic, path))",
    "users (id TEXT PRIMARY KEY, record BLOB)",
)
_SELECT: Final = {
    "sessions": "SELECT user, topic, state FROM sessions ORDER BY rowid",
    "seen": "SELECT user, topic, path, digest FROM seen ORDER BY rowid",
    "users": "SELECT id, record FROM users ORDER BY rowid",
}
_INSERT: Final = {
    "sessions": "INSERT INTO sessions (user, topic, state) VALUES (?, ?, ?) "
    "ON CONFLICT DO UPDATE SET state = excluded.state",
    "seen": "REPLACE INTO seen VALUES (?, ?, ?, ?)",
    "users": "REPLACE INTO users VALUES (?, ?)",
}
_DAMAGE: Final = (sqlite3.SQLITE_CORRUPT, sqlite3.SQLITE_NOTADB, sqlite3.SQLITE_ERROR)
"""What SQLite says of a file that is not, or not any more, what we wrote."""
_NOT_SAID: Final = sqlite3.SQLITE_CORRUPT
_Row = tuple[str | bytes, ...]

_encode = msgspec.json.Encoder().encode
_decode = msgspec.json.Decoder(StoredSession).decode


class SessionStore:
    """The sessions in `<data dir>/sessions.db`, and a copy of the users for when theirs is lost.

    The files a session has seen are rows of their own: a long session costs no more to keep.
    Reading happens before the first write; after that the database is the writer's.
    """

    def __init__(self, data_dir: Path) -> None:
        make_private_directory(data_dir)
        self._path = data_dir / "sessions.db"
        self._db, rescued = self._opened()
        self._writer = SessionWriter(self._db)
        for statement, row in rescued:
            self._db.execute(statement, row)

    def save(self, session: Session) -> Awaitable[None] | None:
        """Keep what the session remembers: None when that is kept already.

        What is returned must be awaited; it raises `sqlite3.Error`.
        """
        state, unsaved = _encode(_stored(session)), dict(session.seen_files.unsaved)
        if state == session.stored and not unsaved:
            return None
        write = partial(_save, session.user.id, session.topic.canonical, state, unsaved)
        return _confirm(session, state, unsaved, self._writer.put(write))

    def delete(self, user_id: str, topic: "Topic") -> Awaitable[None]:
        """Forget one session for good."""
        return self._writer.put(partial(_delete, user_id, topic.canonical), erases=True)

    def delete_user(self, user_id: str) -> Awaitable[None]:
        """Forget every session of a user for good."""
        return self._writer.put(partial(_delete_user, user_id), erases=True)

    def rows(self) -> Iterator[tuple[str, str, bytes]]:
        """User, topic and state of every kept session, oldest first."""
        yield from self._db.execute(_SELECT["sessions"])

    def seen(self, user_id: str, topic: str) -> Iterator[tuple[str, bytes]]:
        """Path and digest of every file a session has seen, the one seen last at the end."""
        yield from self._db.execute(
            "SELECT path, digest FROM seen WHERE user = ? AND topic = ? ORDER BY rowid",
            (user_id, topic),
        )

    def users(self) -> Iterator[bytes]:
        """The copy of every user's record."""
        for _, record in self._db.execute(_SELECT["users"]):
            yield record

    def keep_users(self, records: Mapping[str, bytes]) -> Awaitable[None]:
        """Copy the users. What is returned must be awaited."""
        return self._writer.put(partial(_keep_users, dict(records)))

    def close(self) -> None:
        self._writer.close()
        self._db.close()

    def _opened(self) -> tuple[sqlite3.Connection, list[tuple[str, _Row]]]:
        """The database, and what could be read of one that was put aside for a new one.

        Raises `StorageError`.
        """
        rescued: list[tuple[str, _Row]] = []
        try:
            db = self._open()
            try:
                # Damage shows when every row is read, which a start does anyway.
                for table, insert in _INSERT.items():
                    rescued.extend((insert, row) for row in db.execute(_SELECT[table]))
            except BaseException:
                db.close()
                raise
        except sqlite3.DatabaseError as error:
            if getattr(error, "sqlite_errorcode", _NOT_SAID) & 0xFF not in _DAMAGE:
                raise StorageError(self._path, error) from error
            # Better an empty memory than no daemon; what could not be read is kept aside.
            put_aside(self._path, also=("-wal", "-shm"))
            try:
                return self._open(), rescued
            except sqlite3.DatabaseError as again:
                raise StorageError(self._path, again) from again
        return db, []

    def _open(self) -> sqlite3.Connection:
        # The files beside it get the rights of this one.
        self._path.touch(0o600)
        # The writer's thread is the only one that uses it once there is something to write.
        db = sqlite3.connect(self._path, isolation_level=None, check_same_thread=False)
        try:
            db.execute("PRAGMA journal_mode = WAL")
            db.execute("PRAGMA synchronous = NORMAL")
            db.execute("PRAGMA secure_delete = ON")
            for table in _TABLES:
                db.execute(f"CREATE TABLE IF NOT EXISTS {table}")
        except BaseException:
            db.close()
            raise
        self._path.chmod(0o600)
        return db


def _save(
    user: str,
    topic: str,
    state: bytes,
    seen: Mapping[str, bytes | None],
    db: sqlite3.Connection,
) -> None:
    db.execute(_INSERT["sessions"], (user, topic, state))
    for path, digest in seen.items():
        if digest is None:
            db.execute(
                "DELETE FROM seen WHERE user = ? AND topic = ? AND path = ?", (user, topic, path)
            )
        else:
            db.execute(_INSERT["seen"], (user, topic, path, digest))


def _delete(user: str, topic: str, db: sqlite3.Connection) -> None:
    db.execute("DELETE FROM sessions WHERE user = ? AND topic = ?", (user, topic))
    db.execute("DELETE FROM seen WHERE user = ? AND topic = ?", (user, topic))


def _delete_user(user: str, db: sqlite3.Connection) -> None:
    db.execute("DELETE FROM sessions WHERE user = ?", (user,))
    db.execute("DELETE FROM seen WHERE user = ?", (user,))


def _keep_users(records: Mapping[str, bytes], db: sqlite3.Connection) -> None:
    db.execute("DELETE FROM users")
    db.executemany(_INSERT["users"], records.items())


async def _confirm(
    session: Session,
    state: bytes,
    unsaved: Mapping[str, bytes | None],
    writing: Awaitable[None],
) -> None:
    await writing
    session.stored = state
    session.seen_files.saved(unsaved)


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
    session.had_shell = kept.had_shell
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
        had_shell=session.had_shell,
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
