"""A user with a home full of files, who types commands and reads replies."""

import os
from pathlib import Path
from typing import Any, NamedTuple

from tests.support.http import Answer, User, request


class Said(NamedTuple):
    """A reply: its text without the `re:` line, and what the head says."""

    text: str
    head: dict[str, Any]

    @property
    def code(self) -> str | None:
        code: str | None = self.head["code"]
        return code

    @property
    def meta(self) -> dict[str, Any]:
        meta: dict[str, Any] = self.head["meta"]
        return meta

    @property
    def message(self) -> str:
        """The system message, or what an error says after its code."""
        text = self.text.removeprefix(f"ERROR({self.code or 'UNKNOWN'}): ")
        return text.partition("\n---\n")[0]

    @property
    def content(self) -> str:
        return self.text.partition("\n---\n")[2]


class Person(User):
    """Types into one topic, `file:main` unless told otherwise."""

    def put(self, name: str, text: str | bytes = "") -> Path:
        """A file in the home, byte for byte."""
        path = self.home / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(text.encode() if isinstance(text, str) else text)
        return path

    def read(self, name: str) -> bytes:
        return (self.home / name).read_bytes()

    def says(self, cmd: str, topic: str = "file:main", cwd: Path | None = None) -> Said:
        """Run a command; whether it went well is in the answer."""
        given = {"cwd": os.fspath(cwd)} if cwd else {}
        answer = self.post(cmd=cmd, topic=topic, **given)
        assert answer.status == 200, answer
        (_, head), (_, content), (_, _) = answer.events
        return Said(content.partition("\n")[2], head)

    def gets(self, cmd: str, topic: str = "file:main", cwd: Path | None = None) -> str:
        """Run a command that must go well; its whole text."""
        said = self.says(cmd, topic, cwd)
        assert said.head["ok"], said.text
        return said.text

    def fails(self, cmd: str, topic: str = "file:main", cwd: Path | None = None) -> Said:
        """Run a command that must be refused."""
        said = self.says(cmd, topic, cwd)
        assert not said.head["ok"], said.text
        return said

    def chanflow(self, text: str | bytes, **fields: str) -> str:
        """Send a text with blocks; the reply blocks as one text."""
        answer = self.post_chanflow(text, **fields)
        assert answer.status == 200, answer
        return answer.body.decode()

    def post_chanflow(self, text: str | bytes, **fields: str) -> Answer:
        """`POST /chanflow` as JSON, or as plain text when given bytes."""
        if isinstance(text, bytes):
            headers = {"X-User-Id": self.id, "Content-Type": "text/plain; charset=utf-8"}
            return request(self.port, "POST", "/chanflow", text, headers)
        body = {"text": text, **fields}
        return request(self.port, "POST", "/chanflow", body, {"X-User-Id": self.id})
