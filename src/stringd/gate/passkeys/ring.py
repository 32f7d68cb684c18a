"""The passkeys that count: accepted at the terminal, and from then on in this gate's memory.

Every program of the account can write the file, so what it says counts only after the person at
the terminal has seen and accepted it, at each start. While a gate runs the file is not read again.
"""

import os
import stat
import threading
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Final

from stringd.gate.errors import TroubleError, os_text
from stringd.gate.passkeys.passkey import (
    MAX_PASSKEYS,
    Passkey,
    PasskeyError,
    decode_passkeys,
    encode_passkeys,
)

_MAX_BYTES: Final = 256 * 1024


def read_passkeys(path: Path) -> tuple[Passkey, ...]:
    """The passkeys in the file, none without one. Raises `PasskeyError`."""
    flags = os.O_RDONLY | os.O_CLOEXEC | os.O_NONBLOCK | os.O_NOCTTY | os.O_NOFOLLOW
    try:
        with os.fdopen(os.open(path, flags), "rb") as file:
            if not stat.S_ISREG(os.fstat(file.fileno()).st_mode):
                raise PasskeyError(f"{path} is not a file: move it away")
            data = file.read(_MAX_BYTES + 1)
    except FileNotFoundError:
        return ()
    except OSError as error:
        raise PasskeyError(f"{path} cannot be read: {os_text(error)}") from None
    try:
        if len(data) > _MAX_BYTES:
            raise PasskeyError(f"it has more than {_MAX_BYTES} bytes")
        return decode_passkeys(data)
    except PasskeyError as error:
        raise PasskeyError(f"{path} does not count: {error}") from None


class PasskeyRing:
    """Adds, revokes and uses passkeys; from any thread."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._lock = threading.Lock()
        self._counting: tuple[Passkey, ...] = ()
        # In the file but not accepted: kept for the next start, where it is asked about again.
        self._declined: tuple[Passkey, ...] = ()

    @property
    def counting(self) -> tuple[Passkey, ...]:
        """Those that may approve."""
        return self._counting

    @property
    def declined(self) -> tuple[Passkey, ...]:
        """Those of the file that were not accepted at the start."""
        return self._declined

    def by_id(self) -> dict[bytes, Passkey]:
        return {each.id: each for each in self._counting}

    def start(self, found: tuple[Passkey, ...], *, accepted: bool) -> None:
        """Take what the file had, as the person said."""
        with self._lock:
            self._counting, self._declined = (found, ()) if accepted else ((), found)

    def check_free(self, name: str) -> None:
        """Raises `PasskeyError` if no passkey of this name can be added."""
        listed = self._counting + self._declined
        if any(each.name == name for each in listed):
            raise PasskeyError(f"there is a passkey named {name}: revoke it first")
        if len(listed) >= MAX_PASSKEYS:
            raise PasskeyError(f"there are {MAX_PASSKEYS} passkeys: revoke one first")

    def add(self, passkey: Passkey) -> None:
        """It counts from now on. Raises `PasskeyError`, and `TroubleError` if it cannot be kept."""
        with self._lock:
            self.check_free(passkey.name)
            if any(each.id == passkey.id for each in self._counting + self._declined):
                raise PasskeyError("this passkey is registered already")
            self._counting += (passkey,)
            self._keep()

    def revoke(self, name: str) -> None:
        """It counts no more, here at once. Raises `TroubleError` if the file still has it."""
        with self._lock:
            self._counting = tuple(each for each in self._counting if each.name != name)
            self._declined = tuple(each for each in self._declined if each.name != name)
            self._keep()

    def use(self, checked: Passkey, approve: Callable[[], None]) -> None:
        """Approve with a passkey whose counter has moved on, if it still counts.

        Raises `PasskeyError`, also what `approve` raises; the counter is then as it was.
        """
        with self._lock:
            known = self.by_id().get(checked.id)
            if known is None:
                raise PasskeyError("this passkey is not registered at this gate")
            # Those that count have to count up; many never do and always say 0.
            if checked.sign_count <= known.sign_count and (checked.sign_count or known.sign_count):
                raise PasskeyError("this passkey's counter did not move: it may be a copy")
            approve()
            moved = replace(known, sign_count=checked.sign_count)
            self._counting = tuple(moved if each is known else each for each in self._counting)
            if moved != known:
                try:
                    self._keep()
                except TroubleError:
                    # It was approved; the next gate only compares with an older counter.
                    return

    def _keep(self) -> None:
        from stringd.system.files import make_private_directory, write_atomically

        try:
            make_private_directory(self._path.parent)
            write_atomically(self._path, encode_passkeys(self._counting + self._declined), 0o600)
        except OSError as error:
            raise TroubleError(f"{self._path} cannot be written: {os_text(error)}") from None
