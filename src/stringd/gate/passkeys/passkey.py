"""A registered passkey, and how a list of them is written. Pure."""

import base64
import binascii
import json
import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Final

from stringd.gate.errors import RefusalError
from stringd.gate.sha import sha256

MAX_PASSKEYS: Final = 9
MAX_NAME: Final = 40
_NAME: Final = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]*")


class PasskeyError(RefusalError):
    """A passkey, or an answer by one, does not count; the text says why."""


@dataclass(frozen=True, slots=True)
class Passkey:
    """What the gate knows of a credential: its name, its number and its public key."""

    name: str
    id: bytes
    public_key: bytes
    sign_count: int = 0
    added: str = ""

    def __post_init__(self) -> None:
        check_name(self.name)
        if not self.id or not self.public_key or self.sign_count < 0:
            raise PasskeyError(f"the passkey {self.name} is not complete")

    @property
    def fingerprint(self) -> str:
        """The key as people compare it."""
        digest = sha256(self.id + b"\0" + self.public_key).digest()
        return "SHA256:" + base64.b64encode(digest).decode("ascii").rstrip("=")

    @property
    def summary(self) -> str:
        """One line for people."""
        return f"{self.name}  {self.fingerprint}  added {self.added}"


def check_name(name: str) -> None:
    """Raises `PasskeyError` for a text that cannot be a passkey's name."""
    if not _NAME.fullmatch(name) or len(name) > MAX_NAME:
        raise PasskeyError(
            "a passkey's name has letters, digits, dots, dashes and underlines, at most "
            f"{MAX_NAME}, and begins with a letter or a digit"
        )


def encode_passkeys(passkeys: Iterable[Passkey]) -> bytes:
    """The list as its file has it."""
    listed = [
        {
            "name": each.name,
            "id": to_base64url(each.id),
            "public_key": to_base64url(each.public_key),
            "sign_count": each.sign_count,
            "added": each.added,
        }
        for each in passkeys
    ]
    return json.dumps({"passkeys": listed}, indent=2).encode("ascii") + b"\n"


def decode_passkeys(data: bytes) -> tuple[Passkey, ...]:
    """The list from its file. Raises `PasskeyError`: where one is wrong, none of them counts."""
    try:
        value = json.loads(data)
    except (ValueError, RecursionError):
        raise PasskeyError("it is not JSON") from None
    listed = value.get("passkeys") if isinstance(value, dict) else None
    if not isinstance(listed, list) or len(listed) > MAX_PASSKEYS:
        raise PasskeyError(f"it has no list of at most {MAX_PASSKEYS} passkeys")
    passkeys = tuple(map(_passkey, listed))
    for what in ("name", "id"):
        if len({getattr(each, what) for each in passkeys}) < len(passkeys):
            raise PasskeyError(f"two of its passkeys have the same {what}")
    return passkeys


def _passkey(record: object) -> Passkey:
    if not isinstance(record, Mapping):
        raise PasskeyError("one of its passkeys is not an object")
    texts = [record.get(name) for name in ("name", "id", "public_key", "added")]
    count = record.get("sign_count")
    name, number, key, added = (each if isinstance(each, str) else "" for each in texts)
    if type(count) is not int or not added.isprintable() or len(added) > MAX_NAME:
        raise PasskeyError("one of its passkeys is not complete")
    return Passkey(name, from_base64url(number), from_base64url(key), count, added)


def to_base64url(data: bytes) -> str:
    """Bytes as WebAuthn writes them in JSON."""
    return base64.urlsafe_b64encode(data).decode("ascii").rstrip("=")


def from_base64url(text: str) -> bytes:
    """Raises `PasskeyError`."""
    try:
        return base64.b64decode(text + "=" * (-len(text) % 4), altchars=b"-_", validate=True)
    except (ValueError, binascii.Error):
        raise PasskeyError("that is not base64url") from None
