"""Shortcuts and references: names for addresses, so a reader never needs the address."""

import re
from typing import Final, NamedTuple

from msgspec import Struct
from msgspec.structs import replace

from stringd.documents.brackets import LinkDefinition
from stringd.documents.diagnostics import Finding
from stringd.documents.links import Link, one_line

_INLINE = re.compile(r"@([A-Za-z0-9_-]+)(?:[ \t]+(.*))?", re.DOTALL)
ID_CHARACTERS: Final = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789_-"
_ID = re.compile(r"[A-Za-z0-9_-]+")


class Shortcut(Struct, frozen=True, gc=False):
    """`@id` → target. `label` is what a reader sees."""

    id: str
    label: str
    target: str


class MenuEntry(Struct, frozen=True, gc=False):
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
    label = one_line(match[2] or "")
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


def define(inline: list[tuple[int, Shortcut]], lines: list[LinkDefinition]) -> Defined:
    """Give every definition an id that resolves: first come, inline before reference lines."""
    by_id: dict[str, Shortcut] = {}
    defined = Defined(by_id, {}, [])
    repeated: list[tuple[int, Shortcut]] = []
    for position, shortcut in inline:
        defined.inline[position] = ident = shortcut.id
        if by_id.setdefault(ident, shortcut).target != shortcut.target:
            repeated.append((position, shortcut))
    if repeated:
        _rename(repeated, defined, {line.name[1:] for line in lines if line.name.startswith("@")})
        in_order = {ident: by_id[ident] for ident in defined.inline.values()}
        by_id.clear()
        by_id.update(in_order)
    for line in lines:
        ident = line.name.removeprefix("@")
        if line.name.startswith("@") and _ID.fullmatch(ident):
            defined.by_id.setdefault(ident, Shortcut(ident, ident, line.target))
    return defined


def _rename(repeated: list[tuple[int, Shortcut]], defined: Defined, reserved: set[str]) -> None:
    """Number the definitions whose id already means something else."""
    next_suffix: dict[str, int] = {}
    for position, shortcut in repeated:
        number = next_suffix.get(shortcut.id, 2)
        while (ident := f"{shortcut.id}{number}") in defined.by_id or ident in reserved:
            number += 1
        next_suffix[shortcut.id] = number + 1
        defined.by_id[ident] = replace(shortcut, id=ident)
        defined.inline[position] = ident
        text = f"@{shortcut.id} is already defined — this one is @{ident}"
        defined.findings.append(Finding(position, "DUPLICATE_SHORTCUT", text))


def unknown_shortcut(ident: str, label: str) -> str:
    """The warning for a use that resolves nowhere."""
    return f"Unknown shortcut @{ident} — define with: [@{ident} {one_line(label)}](URI)"
