"""Lines that were typed at the prompt, kept from one session to the next."""

import json
import os
from collections.abc import Iterable
from contextlib import suppress
from pathlib import Path
from typing import Final

from prompt_toolkit.history import History

from stringd.system.files import make_private_directory, write_atomically

MOST: Final = 2_000
"""So many lines are kept; the file is cut once it has twice as many."""


class KeptLines(History):
    """One JSON string a line in a file that only its owner reads.

    A line that begins with a blank is not kept, as in shells, nor is what `/set` gives to a
    persistent variable, which may be a secret.
    """

    def __init__(self, path: Path) -> None:
        super().__init__()
        self._path = path

    def load_history_strings(self) -> Iterable[str]:
        """Newest first."""
        lines = self._stored()
        if len(lines) > 2 * MOST:
            text = "".join(f"{json.dumps(line)}\n" for line in lines[-MOST:])
            with suppress(OSError):
                write_atomically(self._path, text.encode(), 0o600)
        return reversed(lines[-MOST:])

    def store_string(self, string: str) -> None:
        if string[:1].isspace() or string.lstrip().startswith("/set $"):
            return
        try:
            make_private_directory(self._path.parent)
            flags = os.O_WRONLY | os.O_APPEND | os.O_CREAT | os.O_CLOEXEC | os.O_NOFOLLOW
            with open(os.open(self._path, flags, 0o600), "a", encoding="utf-8") as file:
                file.write(f"{json.dumps(string)}\n")
        except OSError:
            # A session without a memory is still a session.
            return

    def _stored(self) -> list[str]:
        try:
            with open(self._path, encoding="utf-8", errors="replace") as file:
                rows = file.readlines()
        except OSError:
            return []
        lines = []
        for row in rows:
            try:
                line = json.loads(row)
            except ValueError:
                continue
            if isinstance(line, str):
                lines.append(line)
        return lines
