"""A new passkey: asked for at the terminal, made in a browser, confirmed at the terminal."""

import secrets
import threading
import time
from collections.abc import Callable
from typing import Final

from stringd.gate.passkeys.passkey import Passkey, PasskeyError
from stringd.gate.watch import Signal

REGISTRATION_SECONDS: Final = 120.0


class NewPasskey:
    """One passkey of one name. Only the first one that a browser makes is asked about."""

    def __init__(self, name: str, clock: Callable[[], float] = time.monotonic) -> None:
        self.name = name
        self.token = secrets.token_urlsafe(16)
        """Part of the address that only the terminal shows."""
        self.challenge = secrets.token_bytes(32)
        self.user_id = secrets.token_bytes(16)
        self.made = Signal()
        """Set when a browser has made it."""
        self.state = "open"
        """`open`, `made`, then `registered` or `dropped`."""
        self.passkey: Passkey | None = None
        self._clock = clock
        self._deadline = clock() + REGISTRATION_SECONDS
        self._lock = threading.Lock()

    @property
    def seconds_left(self) -> float:
        return max(0.0, self._deadline - self._clock())

    def check(self) -> None:
        """Raises `PasskeyError` when no passkey is awaited any more."""
        if self.state != "open" or self.seconds_left <= 0:
            raise PasskeyError("this registration is over: start another one at the terminal")

    def take(self, passkey: Passkey) -> None:
        """A browser made it. Raises `PasskeyError` if another one was first."""
        with self._lock:
            self.check()
            self.passkey, self.state = passkey, "made"
            self.made.set()

    def end(self, *, registered: bool) -> None:
        """The person has said whether it counts."""
        with self._lock:
            self.state = "registered" if registered else "dropped"
