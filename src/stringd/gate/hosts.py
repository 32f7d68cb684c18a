"""The other machines commands may run on: a list the owner keeps, each with its pinned key.

The list is a file of the user's, so any program of the user's can change it. It only gives names
to machines: a question shows the address and the key's fingerprint behind the name, and says
when the entry was not there, or was another one, when the gate started.
"""

import base64
import binascii
import json
import re
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from stringd.gate.errors import RefusalError, TroubleError, os_text
from stringd.gate.sha import sha256
from stringd.wire.gate import HERE

FILE_NAME: Final = "gate-hosts.json"
MAX_NAME: Final = 64
_NAME: Final = re.compile(r"[A-Za-z0-9_][A-Za-z0-9._-]*")
_DESTINATION: Final = re.compile(r"(?:[A-Za-z0-9_][A-Za-z0-9._-]*@)?[A-Za-z0-9:][A-Za-z0-9._:-]*")
_KEY: Final = re.compile(r"([a-z0-9@.-]+) ([A-Za-z0-9+/]+=*)")


class HostError(RefusalError):
    """The list of hosts, or an entry of it, cannot be used; the text says what to do."""


@dataclass(frozen=True, slots=True)
class HostEntry:
    """A machine by name. `key` is the one host key it may show, as in a `known_hosts` file."""

    name: str
    destination: str
    key: str
    port: int | None = None
    description: str = ""

    def __post_init__(self) -> None:
        if problem := _objection(self):
            raise HostError(problem)

    @property
    def address(self) -> str:
        """Where ssh connects to."""
        return self.destination if self.port is None else f"{self.destination} port {self.port}"

    @property
    def fingerprint(self) -> str:
        """The key as people compare it."""
        return fingerprint(self.key)


def fingerprint(key: str) -> str:
    """A key's kind and digest, the way ssh shows them. Raises `HostError` for what is not a key."""
    match = _KEY.fullmatch(key)
    try:
        blob = base64.b64decode(match[2], validate=True) if match else b""
    except binascii.Error:
        blob = b""
    if match is None or not blob:
        raise HostError("that is not an SSH host key")
    digest = base64.b64encode(sha256(blob).digest()).decode("ascii").rstrip("=")
    return f"{_kind(match[1])} SHA256:{digest}"


def _kind(algorithm: str) -> str:
    return algorithm.removeprefix("ssh-").removeprefix("sk-").partition("@")[0].upper()


def _objection(entry: HostEntry) -> str | None:
    if not _NAME.fullmatch(entry.name) or len(entry.name) > MAX_NAME or entry.name in HERE:
        return (
            f"{entry.name or 'an empty text'} is not a name for a host: letters, digits, dots, "
            f"dashes and underlines, at most {MAX_NAME}"
        )
    if not _DESTINATION.fullmatch(entry.destination) or len(entry.destination) > 255:
        return f"{entry.destination} is not an address: write it as HOST or USER@HOST"
    if entry.port is not None and not 0 < entry.port < 65536:
        return f"{entry.port} is not a port"
    if not entry.description.isprintable() or len(entry.description) > 200:
        return "the description must be one line of at most 200 characters"
    fingerprint(entry.key)
    return None


class Hosts:
    """The list in its file. Every call looks at the file again."""

    def __init__(self, path: Path) -> None:
        self._path = path

    def all(self) -> dict[str, HostEntry]:
        """Every entry by name, sorted. Raises `HostError` for a file that cannot be read."""
        try:
            data = json.loads(self._path.read_text(encoding="utf-8"))
        except FileNotFoundError:
            return {}
        except OSError as error:
            raise HostError(f"{self._path} cannot be read: {os_text(error)}") from None
        except (ValueError, RecursionError):
            raise HostError(f"{self._path} is not JSON: correct it or move it away") from None
        entries = data.get("hosts") if isinstance(data, dict) else None
        if not isinstance(entries, dict):
            raise HostError(f'{self._path} has no object "hosts": correct it or move it away')
        return {name: _entry(name, entries[name]) for name in sorted(entries)}

    def get(self, name: str) -> HostEntry:
        """One entry. Raises `HostError` if there is none of that name."""
        entries = self.all()
        if name not in entries:
            known = f" It has {', '.join(entries)}." if entries else ""
            raise HostError(
                f"{name} is not in the gate's list of hosts.{known} "
                f"To add it: stringd gate hosts add {name} USER@ADDRESS"
            )
        return entries[name]

    def put(self, entry: HostEntry) -> None:
        """Add an entry, or replace the one of its name. Raises `TroubleError`."""
        self._change(lambda entries: {**entries, entry.name: entry})

    def remove(self, name: str) -> None:
        """Take an entry from the list. Raises `HostError` if there is none of that name."""
        self.get(name)
        self._change(lambda entries: {k: v for k, v in entries.items() if k != name})

    def _change(self, change: Callable[[dict[str, HostEntry]], dict[str, HostEntry]]) -> None:
        # A gate only reads the list, and starts faster without.
        from stringd.system.files import held, make_private_directory, write_atomically

        try:
            make_private_directory(self._path.parent)
            with held(self._path.parent):
                entries = change(self.all())
                listed = {name: _record(entry) for name, entry in sorted(entries.items())}
                text = json.dumps({"hosts": listed}, indent=2) + "\n"
                write_atomically(self._path, text.encode("ascii"), 0o600)
        except OSError as error:
            raise TroubleError(f"{self._path} cannot be written: {os_text(error)}") from None


class KnownHosts:
    """The list as a gate has it: what is there now, and what was there when the gate started."""

    def __init__(self, hosts: Hosts) -> None:
        self._hosts = hosts
        self._at_start: Mapping[str, HostEntry] = {}
        with suppress(HostError):
            self._at_start = hosts.all()

    def get(self, name: str) -> tuple[HostEntry, str]:
        """An entry, and what to say of it if it was not so when the gate started."""
        entry = self._hosts.get(name)
        before = self._at_start.get(name)
        if before is None:
            return entry, "added to the list of hosts after this gate started"
        if (before.destination, before.port, before.key) != (
            entry.destination,
            entry.port,
            entry.key,
        ):
            return entry, f"another machine than when this gate started ({before.address})"
        return entry, ""


def _entry(name: str, record: object) -> HostEntry:
    if not isinstance(record, dict):
        raise HostError(f"the entry of {name} in the list of hosts is not an object")
    port, texts = record.get("port"), [record.get(k, "") for k in ("destination", "key")]
    description = record.get("description", "")
    if not all(isinstance(text, str) for text in [*texts, description]) or not (
        port is None or type(port) is int
    ):
        raise HostError(f"the entry of {name} in the list of hosts has a wrong type")
    return HostEntry(name, texts[0], texts[1], port, description)


def _record(entry: HostEntry) -> dict[str, object]:
    record: dict[str, object] = {"destination": entry.destination}
    if entry.port is not None:
        record["port"] = entry.port
    record["key"] = entry.key
    return record | ({"description": entry.description} if entry.description else {})
