"""What nobody decided, on record: enough to see that somebody knocks, too little to fill a disk."""

import threading
import time
from collections.abc import Callable
from contextlib import suppress
from typing import Final

from stringd.gate.audit import AuditLog
from stringd.gate.errors import TroubleError
from stringd.gate.question import AskingPeer
from stringd.gate.report import recorded_id

# So many in a row, then one for each period that has passed; the rest are counted.
BURST: Final = 100
PERIOD_SECONDS: Final = 30.0
MAX_MESSAGE: Final = 300


class Ration:
    """How many records may be written; the others are counted for the next one."""

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._lock = threading.Lock()
        self._allowance = float(BURST)
        self._counted_at = clock()
        self.unrecorded = 0

    def admit(self) -> int | None:
        """How many went unrecorded before this one, or None if it does as well."""
        with self._lock:
            now = self._clock()
            grown = self._allowance + (now - self._counted_at) / PERIOD_SECONDS
            self._allowance, self._counted_at = min(float(BURST), grown), now
            if self._allowance < 1:
                self.unrecorded += 1
                return None
            self._allowance -= 1
            missed, self.unrecorded = self.unrecorded, 0
            return missed

    def give_back(self, count: int) -> None:
        """So many could not be written after all."""
        with self._lock:
            self.unrecorded += count


class RefusalRecords:
    """Writes `refused` records to the audit log at a bounded rate and size."""

    def __init__(self, audit: AuditLog, clock: Callable[[], float] = time.monotonic) -> None:
        self._audit = audit
        self._ration = Ration(clock)

    @property
    def unrecorded(self) -> int:
        return self._ration.unrecorded

    def add(self, peer: AskingPeer, request_id: str, message: str) -> None:
        """Record a refusal, or count it where there are too many. Never fails."""
        if (missed := self._ration.admit()) is None:
            return
        fields: dict[str, object] = {
            "id": recorded_id(request_id),
            "peer": {"pid": peer.pid, "uid": peer.uid, "exe": peer.exe},
            "message": message[:MAX_MESSAGE],
        }
        if missed:
            fields["unrecorded"] = missed
        try:
            self._audit.append("refused", fields)
        except TroubleError:
            # Nothing ran, so nothing is lost but this line; what may run has its own record.
            self._ration.give_back(missed + 1)

    def revoked(self, peer: AskingPeer, grants: list[int]) -> None:
        """Record that a program ended grants. Never fails."""
        fields: dict[str, object] = {
            "peer": {"pid": peer.pid, "uid": peer.uid, "exe": peer.exe},
            "grants": grants,
        }
        with suppress(TroubleError):
            self._audit.append("revoked", fields)
