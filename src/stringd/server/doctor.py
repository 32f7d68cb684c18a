"""`GET /doctor`: what `stringd doctor` finds, seen from the daemon."""

import asyncio
import json
import os
import sys
from time import monotonic
from typing import Any, Final

from stringd.server.http.messages import HttpError, HttpRequest, HttpResponse, json_response
from stringd.system.command import ask_program

FRESH_SECONDS: Final = 10.0
LIMIT_SECONDS: Final = 30.0
_UNSEEN: Final = "models "
"""The daemon's environment holds no keys of providers, so nothing is said about these."""


class Doctor:
    """Runs the check as a program of its own; one answer serves everybody for some seconds."""

    def __init__(self, port: int, data_dir: str) -> None:
        self._settings = {"STRINGD_PORT": str(port), "STRINGD_DATA_DIR": data_dir}
        self._lock = asyncio.Lock()
        self._found: dict[str, Any] = {}
        self._until = 0.0

    async def __call__(self, _request: HttpRequest) -> HttpResponse:
        async with self._lock:
            if monotonic() >= self._until:
                self._found = await self._examine()
                self._until = monotonic() + FRESH_SECONDS
        return json_response(200, self._found)

    async def _examine(self) -> dict[str, Any]:
        # Without -P, Python would take modules from where we run, which agents may write to.
        argv = [sys.executable, "-P", "-m", "stringd", "doctor", "--json"]
        try:
            async with asyncio.timeout(LIMIT_SECONDS):
                said = await ask_program(argv, b"", {**os.environ, **self._settings})
            checks = json.loads(said)["checks"]
        except (TimeoutError, OSError, ValueError, LookupError) as error:
            raise HttpError(500, "stringd doctor did not answer; run it in a terminal") from error
        seen = [each for each in checks if not each["name"].startswith(_UNSEEN)]
        return {"ok": all(each["state"] != "broken" for each in seen), "checks": seen}
