"""Shortcuts and references: names for addresses, so a reader never needs the address."""

import re
from typing import Final, NamedTuple

from msgspec import Struct
from msgspec.structs import replace

from stringd.documents.brackets import Definition
from stringd.documents.diagnostics import Finding
from stringd.documents.links import Link

_INLINE = re.compile(r"@([A-Za-z0-9_-]+)(?:[ \t]+(.*))?", re.DOTALL)
ID_CHARACTERS: Final = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789_-"
_ID = re.compile(r"[A-Za-z0-9_-]+")


class Shortcut(Struct, frozen=True, gc=False):
    """`@id` → target. `label` is what a reader sees."""

    id: str
    label: str
    target: str


class MenuEntry(NamedTuple):
    """One entry of a menu: `id` is `<menu>.<shortcut id>`, the target as the file writes it."""

    id: str
    label: str
    target: str


class Menu(NamedTuple):
    """A loaded menu file."""

    name: str
    uri: str
    entries: tuple[MenuEntry, ...] = ()


def defined_shortcut(source: str, link: Link) -> Shortcut | None:
    """The shortcut an inline link defines: `[@id Label](target)`."""
    if link.target is None or not link.target or link.image or source[link.start + 1] != "@":
        return None
    match = _INLINE.fullmatch(source, link.start + 1, link.label_end)
    if match is None:
        return None
    label = (match[2] or "").strip()
    return Shortcut(match[1], label or match[1], link.target)


def used_shortcut(link: Link) -> str | None:
    """The id a link uses: `[Label][@id]`."""
    name = link.name
    return name[1:] if name is not None and name.startswith("@") and not link.image else None


class Defined(NamedTuple):
    """Shortcuts of one document."""

    by_id: dict[str, Shortcut]
    inline: dict[int, str]
    """Offset of an inline definition → its id; another one if an earlier one took its own."""
    findings: list[Finding]


def define(inline: list[tuple[int, Shortcut]], lines: list[Definition]) -> Defined:
    """Give every definition an id that resolves: first come, inline before reference lines."""
    wanted = {shortcut.id for _, shortcut in inline} | {
        line.name[1:] for line in lines if line.name.startswith("@")
    }
    defined = Defined({}, {}, [])
    next_suffix: dict[str, int] = {}
    for position, shortcut in inline:
        taken = defined.by_id.setdefault(shortcut.id, shortcut)
        defined.inline[position] = shortcut.id
        if taken.target == shortcut.target:
            continue
        number = next_suffix.get(shortcut.id, 2)
        while f"{shortcut.id}{number}" in wanted:
            number += 1
        next_suffix[shortcut.id] = number + 1
        ident = f"{shortcut.id}{number}"
        wanted.add(ident)
        defined.by_id[ident] = replace(shortcut, id=ident)
        defined.inline[position] = ident
        text = f"@{shortcut.id} is already defined — this one is @{ident}"
        defined.findings.append(Finding(position, "DUPLICATE_SHORTCUT", text))
    for line in lines:
        ident = line.name.removeprefix("@")
        if line.name.startswith("@") and _ID.fullmatch(ident):
            defined.by_id.setdefault(ident, Shortcut(ident, ident, line.target))
    return defined


def unknown_shortcut(ident: str, label: str) -> str:
    """The warning for a use that resolves nowhere."""
    return f"Unknown shortcut @{ident} — define with: [@{ident} {label}](URI)"
