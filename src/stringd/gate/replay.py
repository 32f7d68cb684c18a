"""The memory that makes an approval usable once. The clock is an argument and must be monotonic."""

import threading
from typing import Final

from stringd.gate.errors import BusyError, RefusalError
from stringd.gate.sha import sha256
from stringd.gate.validate import MAX_AGE_SECONDS

MARGIN_SECONDS: Final = 60
MAX_IDS: Final = 100_000
# Of pings and stops, which run nothing: the oldest of more than these may come again.
MAX_CONTROL_IDS: Final = 1000


class ReplayMemory:
    """Remembers every admitted id for as long as its bytes could still pass the freshness check."""

    def __init__(
        self, max_future: int, capacity: int = MAX_IDS, *, forgets_oldest: bool = False
    ) -> None:
        self.retention: Final = MAX_AGE_SECONDS + max_future + MARGIN_SECONDS
        self._capacity = capacity
        self._forgets_oldest = forgets_oldest
        self._lock = threading.Lock()
        # Digests, so that a long id costs what a short one does. Oldest first.
        self._seen: dict[bytes, float] = {}

    def __len__(self) -> int:
        return len(self._seen)

    def admit(self, request_id: str, now: float) -> None:
        """Check and remember an id in one step. Raises `RefusalError` if seen, or when full."""
        key = sha256(request_id.encode()).digest()
        with self._lock:
            self._forget(now)
            if key in self._seen:
                raise RefusalError(f"duplicate request id: {request_id}")
            if len(self._seen) >= self._capacity:
                self._make_room()
            self._seen[key] = now

    def _make_room(self) -> None:
        if not self._forgets_oldest:
            # Refusing new work is safe; forgetting an id early is not.
            raise BusyError
        del self._seen[next(iter(self._seen))]

    def _forget(self, now: float) -> None:
        expired = []
        for key, admitted in self._seen.items():
            if now - admitted <= self.retention:
                break
            expired.append(key)
        for key in expired:
            del self._seen[key]
