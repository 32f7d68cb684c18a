"""The user registry: `users.json` in the data directory."""

from collections.abc import Iterable, Iterator, Sequence
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


class UserRegistry:
    """All known users, kept in one file that is rewritten on each change."""

    def __init__(self, data_dir: Path) -> None:
        self._path = data_dir / "users.json"
        self.lost = False
        """Whether there was nothing to read when the daemon started."""
        self._users: dict[str, User] = {user.id: user for user in self._load()}

    @property
    def path(self) -> Path:
        return self._path

    def __len__(self) -> int:
        return len(self._users)

    def __iter__(self) -> Iterator[User]:
        return iter(self._users.values())

    def get(self, user_id: str) -> User | None:
        return self._users.get(user_id)

    def register(
        self,
        user_id: str,
        home: str,
        allowed_paths: Sequence[str] | None = None,
        wants: Preferences = UNCHANGED,
    ) -> Registration:
        """Add a user or update its home, keeping what is not given."""
        known = self._users.get(user_id)
        if known is None:
            user = User(user_id, home, tuple(allowed_paths or ()), timestamp(), *wants)
        else:
            paths = known.allowed_paths if allowed_paths is None else tuple(allowed_paths)
            diffs = known.diffs if wants.diffs is UNSET else wants.diffs
            guard = known.overwrite_guard if wants[1] is UNSET else wants[1]
            user = User(user_id, home, paths, known.created_at, diffs, guard)
        if user != known:
            self._store(user_id, user)
        return Registration(user, known is None, known is not None and known.home != home)

    def restore(self, records: Iterable[bytes]) -> None:
        """Bring back users from copies of their records; those that cannot be read are left out."""
        for record in records:
            try:
                user = msgspec.json.decode(record, type=User)
            except (msgspec.DecodeError, UnicodeDecodeError):
                continue
            if user.id not in self._users:
                self._store(user.id, user)

    def records(self) -> dict[str, bytes]:
        """Every user by id, as `restore` takes it."""
        return {user.id: msgspec.json.encode(user) for user in self}

    def remove(self, user_id: str) -> bool:
        """Forget a user; its files stay. False when there was none."""
        if user_id not in self._users:
            return False
        self._store(user_id, None)
        return True

    def _store(self, user_id: str, user: User | None) -> None:
        """Change one user on disk, and in memory once that worked.

        Another daemon may use the same directory: what it registered meanwhile stays.
        """
        make_private_directory(self._path.parent)
        with held(self._path.parent):
            users = self._users | {known.id: known for known in self._load()}
            if user is None:
                users.pop(user_id, None)
            else:
                users[user_id] = user
            text = msgspec.json.format(msgspec.json.encode(list(users.values())), indent=2)
            write_atomically(self._path, text + b"\n", 0o600)
        self._users = users

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
