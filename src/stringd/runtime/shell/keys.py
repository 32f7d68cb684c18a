"""Names of keys, and the bytes a terminal sends for them."""

from typing import Final

from stringd.runtime.shell.errors import UnknownKeyError

_NAMED: Final = {
    "enter": b"\r",
    "return": b"\r",
    "tab": b"\t",
    "escape": b"\x1b",
    "esc": b"\x1b",
    "space": b" ",
    "backspace": b"\x7f",
    "delete": b"\x1b[3~",
    "insert": b"\x1b[2~",
    "up": b"\x1b[A",
    "down": b"\x1b[B",
    "right": b"\x1b[C",
    "left": b"\x1b[D",
    "home": b"\x1b[H",
    "end": b"\x1b[F",
    "page-up": b"\x1b[5~",
    "page-down": b"\x1b[6~",
    "f1": b"\x1bOP",
    "f2": b"\x1bOQ",
    "f3": b"\x1bOR",
    "f4": b"\x1bOS",
    "f5": b"\x1b[15~",
    "f6": b"\x1b[17~",
    "f7": b"\x1b[18~",
    "f8": b"\x1b[19~",
    "f9": b"\x1b[20~",
    "f10": b"\x1b[21~",
    "f11": b"\x1b[23~",
    "f12": b"\x1b[24~",
    "ctrl-space": b"\0",
}
_CONTROL_PREFIXES: Final = ("ctrl-", "ctrl+", "c-", "^")


def key_bytes(names: str) -> bytes:
    """The bytes for whitespace-separated key names; a single character stands for itself."""
    if not names.strip():
        raise UnknownKeyError("(none)")
    return b"".join(map(_one_key, names.split()))


def _one_key(name: str) -> bytes:
    lowered = name.lower().replace("pageup", "page-up").replace("pagedown", "page-down")
    if lowered in _NAMED:
        return _NAMED[lowered]
    for prefix in _CONTROL_PREFIXES:
        if lowered.startswith(prefix) and len(lowered) == len(prefix) + 1:
            return _control(name, lowered[-1])
    if len(name) == 1:
        return name.encode()
    raise UnknownKeyError(name)


def _control(name: str, letter: str) -> bytes:
    if letter not in "abcdefghijklmnopqrstuvwxyz[\\]^_":
        raise UnknownKeyError(name)
    return bytes([ord(letter.upper()) & 0x1F])
