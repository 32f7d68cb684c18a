"""`GET /gate/audit`: the gate's log for readers, with its chain checked."""

import asyncio
from collections import deque
from pathlib import Path
from typing import Any, Final
from urllib.parse import parse_qs

from stringd.server.http.messages import HttpError, HttpRequest, HttpResponse, json_response

MOST: Final = 5_000
USUAL: Final = 500


class GateLog:
    """Reads the log again for every request; nothing is kept."""

    def __init__(self, path: Path) -> None:
        self._path = path

    async def __call__(self, request: HttpRequest) -> HttpResponse:
        text = parse_qs(request.query.decode("utf-8", "replace")).get("limit", [str(USUAL)])[0]
        if not (text.isascii() and text.isdigit() and 0 < int(text[:9]) <= MOST):
            raise HttpError(400, f"limit must be a number from 1 to {MOST}")
        return json_response(200, await asyncio.to_thread(self._read, int(text)))

    def _read(self, limit: int) -> dict[str, Any]:
        """The newest records, the newest last, and what the check of all of them says."""
        from stringd.gate.audit import records, verify

        try:
            kept = deque((record for _, _, record in records(self._path)), maxlen=limit)
            verdict = verify(self._path)
        except FileNotFoundError:
            return {"path": str(self._path), "records": [], "count": 0, "broken": None}
        except OSError as error:
            raise HttpError(500, f"{self._path} cannot be read: {error.strerror}") from error
        broken = verdict.broken
        return {
            "path": str(self._path),
            "records": list(kept),
            "count": verdict.records,
            "broken": None if broken is None else {"line": broken.line, "why": broken.why},
        }
