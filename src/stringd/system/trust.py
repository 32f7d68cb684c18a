"""What the owner of this account said may be used, although somebody else may have written it.

An entry is a real path and the digest of what was there when the owner said so. Whatever changes
afterwards is not trusted until the owner says so again. The entries are in `~/.string/trust.json`,
which counts only while nobody but its owner can write it.
"""

import hashlib
import json
import os
import stat
from collections.abc import Iterable
from pathlib import Path
from typing import Final, Literal, NamedTuple

from stringd.system.clock import timestamp
from stringd.system.files import held, make_private_directory, write_atomically
from stringd.system.lineage import started_by_a_daemon

TrustState = Literal["trusted", "changed", "unknown"]
_MAX_BYTES: Final = 8 * 1024 * 1024
_OTHERS_WRITE: Final = stat.S_IWGRP | stat.S_IWOTH


class TrustError(Exception):
    """The owner's word could not be read or kept; `str()` says why and what to do."""


class NotTheOwnerError(TrustError):
    """Something that a daemon started tried to speak for the owner."""

    def __init__(self) -> None:
        super().__init__(
            "nothing was changed: a daemon started this program, and only you can say what is "
            "trusted. Type the command in a terminal of your own."
        )


class TrustedPath(NamedTuple):
    """`digest` is that of the content the owner trusted; `since` is when."""

    path: str
    digest: str
    since: str


def digest_of(content: bytes) -> str:
    """The digest of one file's content."""
    return f"sha256:{hashlib.sha256(content).hexdigest()}"


def digest_of_files(files: Iterable[tuple[str, str]]) -> str:
    """The digest of several files, given as relative names and digests, in any order."""
    whole = hashlib.sha256()
    for name, digest in sorted(files):
        raw = os.fsencode(name)
        whole.update(b"%d:%s %s\n" % (len(raw), raw, digest.encode()))
    return f"sha256:{whole.hexdigest()}"


def real_path(path: Path | str) -> str:
    """The name under which a path is trusted: a link counts as what it leads to."""
    return os.path.realpath(path)


def trust_file() -> Path:
    """Where the owner's word is kept."""
    return Path("~/.string/trust.json").expanduser()


class TrustStore:
    """The owner's word, read again whenever its file has changed. Safe to share by threads."""

    def __init__(self, file: Path | None = None) -> None:
        self.file = file or trust_file()
        self._read: tuple[tuple[int, int, int], dict[str, TrustedPath]] | None = None

    def state(self, path: Path | str, digest: str) -> TrustState:
        """Whether the owner trusts what is at the path now."""
        entry = self._entries().get(real_path(path))
        if entry is None:
            return "unknown"
        return "trusted" if entry.digest == digest else "changed"

    def is_trusted(self, path: Path | str, content: bytes) -> bool:
        """Whether the owner trusts the file at this path with exactly this content."""
        return self.state(path, digest_of(content)) == "trusted"

    def entries(self) -> list[TrustedPath]:
        """Everything trusted, by path. Raises `TrustError` when the file does not count."""
        return sorted(self._load(strict=True).values())

    def trust(self, path: Path | str, digest: str) -> TrustedPath:
        """Keep the owner's word for what is at a path. Raises `TrustError`."""
        entry = TrustedPath(real_path(path), digest, timestamp())
        self._change(entry.path, entry)
        return entry

    def remove(self, path: Path | str) -> bool:
        """Take the owner's word back; False when there was none. Raises `TrustError`."""
        known = self._load(strict=True)
        # What was trusted under a path may be gone, or a link since.
        names = {real_path(path), str(Path(path).absolute())} & known.keys()
        for name in names:
            self._change(name, None)
        return bool(names)

    def _change(self, name: str, entry: TrustedPath | None) -> None:
        if started_by_a_daemon():
            raise NotTheOwnerError
        try:
            make_private_directory(self.file.parent)
            with held(self.file.parent):
                known = {**self._load(strict=True)}
                known.pop(name, None)
                if entry is not None:
                    known[name] = entry
                value = {"trusted": [each._asdict() for each in sorted(known.values())]}
                text = json.dumps(value, indent=1, ensure_ascii=True) + "\n"
                write_atomically(self.file, text.encode(), 0o600)
        except OSError as error:
            raise TrustError(f"cannot write {self.file}: {error.strerror}") from None

    def _entries(self) -> dict[str, TrustedPath]:
        return self._load(strict=False)

    def _load(self, *, strict: bool) -> dict[str, TrustedPath]:
        """By path. A file that does not count trusts nothing; `strict` raises `TrustError`."""
        try:
            return self._checked()
        except TrustError:
            if strict:
                raise
            return {}

    def _checked(self) -> dict[str, TrustedPath]:
        try:
            flags = os.O_RDONLY | os.O_CLOEXEC | os.O_NOFOLLOW | os.O_NONBLOCK
            descriptor = os.open(self.file, flags)
        except FileNotFoundError:
            return {}
        except OSError as error:
            raise TrustError(f"cannot read {self.file}: {error.strerror}") from None
        try:
            status = os.fstat(descriptor)
            self._check_owner(status)
            mark = (status.st_ino, status.st_size, status.st_mtime_ns)
            known = self._read
            if known is None or known[0] != mark:
                with open(descriptor, "rb", closefd=False) as file:
                    known = (mark, self._parsed(file.read(_MAX_BYTES + 1)))
                self._read = known
        finally:
            os.close(descriptor)
        return known[1]

    def _check_owner(self, status: os.stat_result) -> None:
        if not stat.S_ISREG(status.st_mode):
            raise TrustError(f"{self.file} is not a regular file. Move it away.")
        if status.st_uid not in (os.geteuid(), 0) or status.st_mode & _OTHERS_WRITE:
            raise TrustError(
                f"{self.file} can be written by others, so it does not count. Look through it, "
                f"then: chmod 600 {self.file}"
            )

    def _parsed(self, data: bytes) -> dict[str, TrustedPath]:
        try:
            if len(data) > _MAX_BYTES:
                raise ValueError
            entries = [TrustedPath(**each) for each in json.loads(data)["trusted"]]
            if not all(isinstance(part, str) for each in entries for part in each):
                raise ValueError
        except (ValueError, KeyError, TypeError, RecursionError):
            raise TrustError(f"{self.file} is damaged. Move it away and trust again.") from None
        return {each.path: each for each in entries}
