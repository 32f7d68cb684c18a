"""The daemon's log: one line an event, off unless asked for.

`[<time>] INFO  <event> k=v k="v with space"`, or one JSON object; at 10 MiB the file becomes
`stringd.log.1`.
"""

import json
from pathlib import Path
from typing import IO, Final

from stringd.system.clock import timestamp

MAX_LOG_BYTES: Final = 10 * 1024 * 1024


class EventLog:
    """Appends events to `<directory>/stringd.log`; with no directory it is silent."""

    def __init__(
        self, directory: Path | None, *, as_json: bool = False, errors_only: bool = False
    ) -> None:
        self._path = directory / "stringd.log" if directory else None
        self._file: IO[str] | None = None
        self._as_json = as_json
        self.enabled = directory is not None and not errors_only
        """Whether what happens is written; callers on the hot path look before they speak."""
        if self._path is not None:
            self._path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
            self._open()

    def info(self, event: str, **fields: object) -> None:
        """Record what happened; fields that are None are left out."""
        if self.enabled:
            self._write("info", event, fields)

    def error(self, event: str, **fields: object) -> None:
        """Record what went wrong."""
        self._write("error", event, fields)

    def close(self) -> None:
        if self._file is not None:
            self._file.close()
            self._file = None

    def _open(self) -> None:
        assert self._path is not None
        self._file = open(self._path, "a", encoding="utf-8", errors="replace")  # noqa: SIM115
        self._path.chmod(0o600)

    def _write(self, level: str, event: str, fields: dict[str, object]) -> None:
        if self._file is None:
            return
        held = {key: item for key, item in fields.items() if item is not None}
        if self._as_json:
            record = {"time": timestamp(), "level": level, "event": event, **held}
            self._file.write(json.dumps(record, default=str) + "\n")
        else:
            pairs = "".join(f" {key}={_value(item)}" for key, item in held.items())
            self._file.write(f"[{timestamp()}] {level.upper():<6}{event}{pairs}\n")
        self._file.flush()
        if self._file.tell() >= MAX_LOG_BYTES:
            self._rotate()

    def _rotate(self) -> None:
        assert self._path is not None
        self.close()
        self._path.replace(self._path.with_name("stringd.log.1"))
        self._open()


def _value(item: object) -> str:
    if isinstance(item, bool):
        return "true" if item else "false"
    text = str(item)
    if text and not any(c.isspace() or c in '"=\\' or not c.isprintable() for c in text):
        return text
    escaped = text.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n")
    return f'"{"".join(c if c.isprintable() else "?" for c in escaped)}"'
