"""A keyring in one file, for daemons under test: `PYTHON_KEYRING_BACKEND` names it."""

import json
import os
from pathlib import Path

from keyring.backend import KeyringBackend


class FileKeyring(KeyringBackend):
    """Keeps everything in the file `TEST_KEYRING` names."""

    priority = 1.0

    def _read(self) -> dict[str, str]:
        path = Path(os.environ["TEST_KEYRING"])
        found: dict[str, str] = json.loads(path.read_text("utf-8")) if path.exists() else {}
        return found

    def get_password(self, service: str, username: str) -> str | None:
        return self._read().get(f"{service}/{username}")

    def set_password(self, service: str, username: str, password: str) -> None:
        content = {**self._read(), f"{service}/{username}": password}
        Path(os.environ["TEST_KEYRING"]).write_text(json.dumps(content), encoding="utf-8")
