"""The user registry: `users.json` in the data directory."""

from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import partial
from pathlib import Path
from typing import Final, NamedTuple

import msgspec
from msgspec import UNSET, UnsetType

from stringd.system.clock import timestamp
from stringd.system.damage import put_aside
from stringd.system.files import held, make_private_directory, write_atomically


class User(msgspec.Struct, frozen=True, rename="camel"):
    """An identity with its home directory. Field order is the order in `users.json`."""

    id: str
    home: str
    allowed_paths: tuple[str, ...] = ()
    created_at: str = ""
    diffs: bool | UnsetType = UNSET
    """Whether replies to edits show what changed; unset, as the daemon's setting says."""
    overwrite_guard: bool | UnsetType = UNSET
    """Whether files that a topic has not read are kept from it; unset, as the setting says."""


class Preferences(NamedTuple):
    """How a user wants edits to be handled; what is unset stays as it is."""

    diffs: bool | UnsetType = UNSET
    overwrite_guard: bool | UnsetType = UNSET


UNCHANGED: Final = Preferences()


class Registration(NamedTuple):
    """What registering did."""

    user: User
    created: bool
    moved: bool
    """The home of a known user changed, so what was loaded from the old one is stale."""


def _unless_known(user: User, known: User | None) -> User:
    return known or user


class UserRegistry:
    """All known users, kept in one file that is rewritten on each change."""

    def __init__(self, data_dir: Path) -> None:
        self._path = data_dir / "users.json"
        self.lost = False
        """Whether there was nothing to read when the daemon started."""
        self._seen = self._signature()
        self._users: dict[str, User] = {user.id: user for user in self._load()}

    @property
    def path(self) -> Path:
        return self._path

    def __len__(self) -> int:
        return len(self._users)

    def __iter__(self) -> Iterator[User]:
        return iter(self._users.values())

    def get(self, user_id: str) -> User | None:
        """A user; one that another daemon registered in the same directory too."""
        user = self._users.get(user_id)
        if user is None and self._changed():
            self._users = self._current()
            user = self._users.get(user_id)
        return user

    def register(
        self,
        user_id: str,
        home: str,
        allowed_paths: Sequence[str] | None = None,
        wants: Preferences = UNCHANGED,
    ) -> Registration:
        """Add a user or update its home, keeping what is not given."""
        before = self.get(user_id)

        def updated(known: User | None) -> User:
            if known is None:
                return User(user_id, home, tuple(allowed_paths or ()), timestamp(), *wants)
            paths = known.allowed_paths if allowed_paths is None else tuple(allowed_paths)
            diffs = known.diffs if wants.diffs is UNSET else wants.diffs
            guard = known.overwrite_guard if wants[1] is UNSET else wants[1]
            return User(user_id, home, paths, known.created_at, diffs, guard)

        if before is None or updated(before) != before:
            self._store(user_id, updated)
        user = self._users[user_id]
        return Registration(user, before is None, before is not None and before.home != home)

    def restore(self, records: Iterable[bytes]) -> None:
        """Bring back users from copies of their records; those that cannot be read are left out."""
        for record in records:
            try:
                user = msgspec.json.decode(record, type=User)
            except (msgspec.DecodeError, UnicodeDecodeError):
                continue
            if user.id not in self._users:
                self._store(user.id, partial(_unless_known, user))

    def records(self) -> dict[str, bytes]:
        """Every user by id, as `restore` takes it."""
        return {user.id: msgspec.json.encode(user) for user in self}

    def remove(self, user_id: str) -> bool:
        """Forget a user; its files stay. False when there was none."""
        if user_id not in self._users:
            return False
        self._store(user_id, lambda _known: None)
        return True

    def _store(self, user_id: str, updated: Callable[[User | None], User | None]) -> None:
        """Change one user on disk, and in memory once that worked.

        Another daemon may use the same directory: what it registered, changed or removed
        meanwhile stays so.
        """
        make_private_directory(self._path.parent)
        with held(self._path.parent):
            users = self._current()
            user = updated(users.get(user_id))
            if user is None:
                users.pop(user_id, None)
            else:
                users[user_id] = user
            text = msgspec.json.format(msgspec.json.encode(list(users.values())), indent=2)
            write_atomically(self._path, text + b"\n", 0o600)
            self._seen = self._signature()
        self._users = users

    def _current(self) -> dict[str, User]:
        """The users on disk; those in memory when the file is lost."""
        seen = self._signature()
        if seen is None or seen == self._seen:
            return dict(self._users)
        users = {user.id: user for user in self._load()}
        # A file that cannot be read was put aside, and says nothing.
        if self._signature() is None:
            return self._users | users
        self._seen = seen
        return users

    def _changed(self) -> bool:
        seen = self._signature()
        return seen is not None and seen != self._seen

    def _signature(self) -> tuple[int, ...] | None:
        """What shows whether the file is the one that was read; None without one."""
        try:
            status = self._path.stat()
        except OSError:
            return None
        return status.st_ino, status.st_size, status.st_mtime_ns, status.st_ctime_ns

    def _load(self) -> list[User]:
        try:
            data = self._path.read_bytes()
        except FileNotFoundError:
            self.lost = True
            return []
        try:
            return msgspec.json.decode(data, type=list[User])
        except (msgspec.DecodeError, UnicodeDecodeError):
            # The next registration rewrites the file: keep what could not be read.
            put_aside(self._path)
            self.lost = True
            return []
