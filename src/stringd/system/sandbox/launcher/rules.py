"""From what a command may see to rules for Landlock, which can only add rights down a tree.

To leave a place out, everything beside it is allowed one by one, at each step of the way from the
root. The directories on that way can be passed through, but neither listed nor added to.
"""

import os

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

HIDDEN, READ, WRITE = "h", "r", "w"
"""How an entry begins; its path follows. What a sandbox has of its own is hidden here."""

_EXECUTE, _WRITE_FILE, _READ_FILE, _READ_DIR = 1 << 0, 1 << 1, 1 << 2, 1 << 3
_MAKE_CHAR, _MAKE_BLOCK = 1 << 6, 1 << 11
_TRUNCATE, _IOCTL_DEV = 1 << 14, 1 << 15
_ON_FILES = _EXECUTE | _WRITE_FILE | _READ_FILE | _TRUNCATE | _IOCTL_DEV
# How many rights the versions 1 to 5 know; later ones add none for files.
_RIGHTS = (13, 14, 15, 15, 16)

_CONNECT_AND_BIND = 0b11
_ABSTRACT_SOCKETS_AND_SIGNALS = 0b11

GUARDS_TRUNCATION = 3
"""The first version that withholds the right to cut a file short."""

DEVICES = ("null", "zero", "full", "random", "urandom", "tty", "ptmx", "pts")
"""The only devices that can be opened: a disk would show what its files hide."""


def handled(version: int) -> int:
    """Every right on files that this version can withhold."""
    return (1 << _RIGHTS[min(version, len(_RIGHTS)) - 1]) - 1


def network_rights(version: int) -> int:
    return _CONNECT_AND_BIND if version >= 4 else 0


def scopes(version: int) -> int:
    return _ABSTRACT_SOCKETS_AND_SIGNALS if version >= 6 else 0


def rights(kind: str, version: int, *, directory: bool) -> int:
    """What a rule for a place allows. Files take no rights that only directories have."""
    everything = handled(version)
    if kind == WRITE:
        allowed = everything & ~(_MAKE_CHAR | _MAKE_BLOCK)
    else:
        allowed = _EXECUTE | _READ_FILE | _READ_DIR
    return allowed if directory else allowed & _ON_FILES


def with_devices(entries: "list[str]") -> "list[str]":
    return [*entries, f"{HIDDEN}/dev", *(f"{WRITE}/dev/{name}" for name in DEVICES)]


def kept_inside(entries: "list[str]") -> "list[str]":
    """The places that are to stay readable only, right inside what is writable and with nothing
    of their own inside.
    """
    kinds = {entry[1:]: entry[0] for entry in entries}
    found: list[str] = []
    for path, kind in kinds.items():
        if kind == READ and not any(other.startswith(f"{path}/") for other in kinds):
            around = path
            while around != "/" and (around == path or around not in kinds):
                around = around.rpartition("/")[0] or "/"
            if kinds.get(around) == WRITE:
                found.append(path)
    return found


def allowed_places(
    entries: "list[str]", names: "Callable[[str], Iterable[str]]" = os.listdir
) -> "list[tuple[str, str]]":
    """Every place to allow, with `READ` or `WRITE`. `names` lists a directory."""
    kinds = {entry[1:]: entry[0] for entry in entries}
    below: dict[str, set[str]] = {}
    for path in kinds:
        while path != "/":
            parent = path.rpartition("/")[0] or "/"
            below.setdefault(parent, set()).add(path)
            path = parent
    found: list[tuple[str, str]] = []
    # A place, what is wanted there, and what a rule above has allowed already.
    pending = [("/", kinds.get("/", READ), HIDDEN)]
    while pending:
        path, kind, allowed = pending.pop()
        special = below.get(path, ())
        whole = kind != HIDDEN and not _something_stricter(path, kind, kinds, below)
        if whole and kind != allowed:
            found.append((path, kind))
            allowed = kind
        pending += [(each, kinds.get(each, kind), allowed) for each in special]
        if not whole and kind != HIDDEN:
            found += [(each, kind) for each in _inside(path, names) if each not in special]
    return found


def _inside(path: str, names: "Callable[[str], Iterable[str]]") -> "list[str]":
    try:
        return [f"{path.rstrip('/')}/{name}" for name in names(path)]
    except OSError:
        return []


def _something_stricter(
    path: str, kind: str, kinds: "dict[str, str]", below: "dict[str, set[str]]"
) -> bool:
    """Whether a place inside has fewer rights than its surroundings."""
    pending = list(below.get(path, ()))
    while pending:
        each = pending.pop()
        inside = kinds.get(each, kind)
        if inside == HIDDEN or (inside == READ and kind == WRITE):
            return True
        pending += below.get(each, ())
    return False
