"""Resolving `@name` in a session."""

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Mapping

    from stringd.runtime.topics.location import Page
    from stringd.runtime.topics.session import Session, ShortcutValue


def resolve_shortcut(
    session: "Session", name: str, values: "Mapping[str, ShortcutValue] | None" = None
) -> "ShortcutValue | None":
    """What `@name` stands for: page, action answers, last rendering, menus; None if unknown.

    Targets are as the document writes them; those of menus are absolute. `values` are the answers
    to look among, by default all.
    """
    values = session.value_shortcuts if values is None else values
    page = session.location.page if session.location else None
    if page is None:
        return values.get(name)
    ident = name.removeprefix("page.")
    shortcut = page.document.shortcuts.get(ident)
    if shortcut is not None:
        return shortcut.target
    if name in values:
        return values[name]
    if ident in session.auto_shortcuts:
        return session.auto_shortcuts[ident]
    return _menu_target(page, name)


def owner_of_shortcut(session: "Session", name: str) -> str | None:
    """Whose answer left what `@name` stands for; None when it is not from an answer."""
    page = session.location.page if session.location else None
    if page is not None and name.removeprefix("page.") in page.document.shortcuts:
        return None
    return session.shortcut_owners.get(name) if name in session.value_shortcuts else None


def known_shortcuts(
    session: "Session", values: "Mapping[str, ShortcutValue] | None" = None
) -> list[str]:
    """Every name `resolve_shortcut` knows, in the order it looks, without `@`."""
    values = session.value_shortcuts if values is None else values
    page = session.location.page if session.location else None
    if page is None:
        return list(values)
    menus = (entry.id for menu in page.menus.values() for entry in menu.entries)
    names = (*page.document.shortcuts, *values, *session.auto_shortcuts, *menus)
    return list(dict.fromkeys(names))


def _menu_target(page: "Page", name: str) -> str | None:
    entries = [entry for menu in page.menus.values() for entry in menu.entries]
    for entry in entries:
        if entry.id == name:
            return entry.target
    short = (entry.target for entry in entries if entry.id.partition(".")[2] == name)
    return next(short, None)
