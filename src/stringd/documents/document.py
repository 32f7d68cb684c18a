"""A document: one text parsed as SFMD, every part found when it is first asked for.

Parsing never raises and never changes the text: `parse(source).source == source` for any text.
"""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from difflib import get_close_matches
from functools import cached_property
from typing import Final

import stringd.documents.frontmatter as header
from stringd.documents.action_blocks import Action
from stringd.documents.action_fences import read_actions
from stringd.documents.blocks import (
    BlockSpan,
    Heading,
    Marker,
    heading_block,
    headings,
    marker_blocks,
    marker_findings,
    markers,
    slug,
)
from stringd.documents.brackets import Bracketed, LinkDefinition, bracketed
from stringd.documents.diagnostics import Diagnostic, Finding, diagnose
from stringd.documents.directives import (
    RESERVED_MENU,
    Directive,
    Include,
    directive_findings,
)
from stringd.documents.links import Link
from stringd.documents.scan import Fences
from stringd.documents.shortcuts import (
    Defined,
    Menu,
    MenuEntry,
    Shortcut,
    define,
    defined_shortcut,
    unknown_shortcut,
    used_shortcut,
)

SFMD_VERSION: Final = (0, 1)
BLOCKS_SHOWN: Final = 20
"""As many a refusal names."""


@dataclass(frozen=True, slots=True)
class EnvVariable:
    """One entry of the frontmatter's `env` list."""

    name: str
    description: str = ""
    default: str | None = None


class Document:
    """A loaded text and everything SFMD finds in it. Treat as immutable; made by `parse`."""

    def __init__(
        self, source: str, uri: str = "", *, original: str | None = None, converted: bool = False
    ) -> None:
        self.source = source
        """The text that is parsed, rendered and edited."""
        self.uri = uri
        self.original = source if original is None else original
        """What was loaded, before any conversion: what `/source` shows."""
        self.converted = converted
        """Whether `source` was made from HTML."""

    @cached_property
    def body_start(self) -> int:
        """Offset of the text below the frontmatter."""
        return header.body_start(self.source)

    @cached_property
    def frontmatter(self) -> dict[str, header.Value]:
        return header.frontmatter(self.source) if self.body_start else {}

    @property
    def title(self) -> str | None:
        """The frontmatter title, if it is text."""
        return self._text("title")

    @property
    def default_action(self) -> str | None:
        """Id of the action to run after opening; the action itself may not exist."""
        return self._text("default")

    @property
    def requires(self) -> tuple[str, ...]:
        """Names of persistent variables the document needs, without `$`."""
        listed = self.frontmatter.get("requires")
        names = listed.replace(",", " ").split() if isinstance(listed, str) else listed
        if not isinstance(names, list):
            return ()
        return tuple(name.strip().removeprefix("$") for name in names if isinstance(name, str))

    @property
    def env(self) -> tuple[EnvVariable, ...]:
        """The variables the `env` list declares, in either of its two shapes."""
        listed = self.frontmatter.get("env")
        read = [_env_variable(entry) for entry in listed] if isinstance(listed, list) else []
        return tuple(variable for variable in read if variable is not None)

    @property
    def hosts(self) -> tuple[str, ...] | None:
        """The hosts an app's actions may reach; None when the document declares none."""
        listed = self.frontmatter.get("hosts")
        names = listed.replace(",", " ").split() if isinstance(listed, str) else listed
        if not isinstance(names, list):
            return None
        return tuple(name.strip() for name in names if isinstance(name, str) and name.strip())

    @property
    def declared_names(self) -> tuple[str, ...]:
        """Every persistent variable the frontmatter names, in `requires`, `env` or `hosts`."""
        hosts = (host[1:] for host in self.hosts or () if host.startswith("$"))
        found = (*self.requires, *(variable.name for variable in self.env), *hosts)
        return tuple(dict.fromkeys(found))

    @property
    def unsupported_version(self) -> str | None:
        """The declared `sfmd` version, if it is higher than the one spoken here."""
        declared = str(self.frontmatter.get("sfmd", ""))
        parts = declared.split(".")
        if not all(part.isdecimal() for part in parts) or not parts[0]:
            return None
        return declared if tuple(int(part) for part in parts[:2]) > SFMD_VERSION else None

    @cached_property
    def fences(self) -> Fences:
        return Fences(self.source, self.body_start)

    @cached_property
    def markers(self) -> list[Marker]:
        return markers(self.source, self.fences, self.body_start)

    @cached_property
    def blocks(self) -> dict[str, BlockSpan]:
        """Marker blocks by id, in document order."""
        return marker_blocks(self.markers)

    @cached_property
    def block_ids(self) -> tuple[str, ...]:
        """Ids a reader can open: marker blocks in order, then includes."""
        return tuple(dict.fromkeys([*self.blocks, *(each.id for each in self.includes)]))

    @cached_property
    def headings(self) -> tuple[Heading, ...]:
        return tuple(headings(self.source, self.fences, self.body_start))

    @cached_property
    def _bracketed(self) -> Bracketed:
        return bracketed(self.source, self.fences, self.body_start)

    @property
    def directives(self) -> list[Directive]:
        """Every directive line outside fences, those inside blocks too."""
        return self._bracketed.directives

    @cached_property
    def _declared(self) -> list[Directive]:
        """Directives that count: the ones outside marker blocks."""
        if not self.directives:
            return []
        inside = _Coverage(self.blocks.values())
        return [each for each in self.directives if not inside.covers(each.start)]

    @cached_property
    def menus(self) -> dict[str, str]:
        """Menu name → path of its file."""
        found: dict[str, str] = {}
        for each in self._declared:
            if each.type == "nav" and each.name and each.name != RESERVED_MENU:
                found.setdefault(each.name, each.path)
        return found

    @cached_property
    def includes(self) -> tuple[Include, ...]:
        named = [each for each in self._declared if each.type == "include"]
        return tuple(Include(each.name, each.path) for each in named if each.name)

    @property
    def included_files(self) -> Iterator[str]:
        """Paths of the files the whole view shows parts of, by includes inside blocks too."""
        named = (each for each in self.directives if each.type == "include" and each.name)
        return (path for each in named if (path := Include("", each.path).file))

    @cached_property
    def requirements(self) -> str | None:
        """Path of the setup document the text names."""
        named = (each.path for each in self._declared if each.type == "requirements")
        return next(named, None)

    @property
    def definitions(self) -> list[LinkDefinition]:
        """Reference definition lines, shortcut definitions among them."""
        return self._bracketed.definitions

    @cached_property
    def references(self) -> dict[str, str]:
        """Standard references: name → url."""
        found: dict[str, str] = {}
        for line in self.definitions:
            if not line.name.startswith("@"):
                found.setdefault(line.name, line.target)
        return found

    @property
    def links(self) -> list[Link]:
        """Every link outside code, in document order."""
        return self._bracketed.links

    @cached_property
    def defined(self) -> Defined:
        source = self.source
        inline = [
            (link.start, shortcut)
            for link in self.links
            if source[link.start + 1] == "@"
            and (shortcut := defined_shortcut(source, link)) is not None
        ]
        return define(inline, self.definitions)

    @property
    def shortcuts(self) -> Mapping[str, Shortcut]:
        """Page shortcuts by id, in document order, inline definitions first."""
        return self.defined.by_id

    @cached_property
    def actions(self) -> dict[str, Action]:
        """Actions by id, in document order, each with its response template."""
        return self._actions[0]

    @cached_property
    def _actions(self) -> tuple[dict[str, Action], list[Finding]]:
        return read_actions(self.source, self.fences.all)

    @cached_property
    def diagnostics(self) -> tuple[Diagnostic, ...]:
        """What the author should know, in document order."""
        found = [
            *marker_findings(self.markers),
            *directive_findings(self._declared),
            *self._actions[1],
            *self.defined.findings,
        ]
        return diagnose(self.source, found)

    def explore(self) -> None:
        """Find every part now, for a caller who can wait better than those who ask later."""
        parts = self.frontmatter, self.menus, self.includes, self.requirements, self.shortcuts
        found = *parts, self.references, self.actions, self.diagnostics, self._uses
        del found

    def warnings(self, menus: Iterable[Menu] = ()) -> tuple[str, ...]:
        """Diagnostics as text, then uses of shortcuts that neither the page nor a menu defines."""
        return tuple(self.each_warning(menus))

    def each_warning(self, menus: Iterable[Menu] = ()) -> Iterator[str]:
        """`warnings` one by one, for who wants only the first of them."""
        yield from map(str, self.diagnostics)
        if not self._uses:
            return
        names, shortcuts = MenuNames(menus), self.shortcuts
        said: set[str] = set()
        for ident, label in dict.fromkeys(self._uses):
            if names.shown(ident, shortcuts) is None:
                text = unknown_shortcut(ident, label)
                if text not in said:
                    said.add(text)
                    yield text

    @cached_property
    def _uses(self) -> list[tuple[str, str]]:
        """Id and label of every `[Label][@id]`."""
        return [
            (ident, self.source[link.start + 1 : link.label_end])
            for link in self.links
            if link.name is not None and (ident := used_shortcut(link)) is not None
        ]

    def find_block(self, ident: str) -> BlockSpan | None:
        """Where block `id` is: markers first, then headings top to bottom."""
        found = self.blocks.get(ident)
        if found is None and ident:
            every = headings(self.source, self.fences, self.body_start)
            found = heading_block(self.source, ident, every, self.blocks.values())
        return found

    def has_block(self, ident: str) -> bool:
        """Whether `#id` can be opened: a block, a heading, or an include of that id."""
        return any(each.id == ident for each in self.includes) or self.find_block(ident) is not None

    def shortcut(self, ident: str) -> Shortcut | None:
        """The page shortcut `@ident`; `@page.ident` is its long form."""
        return self.shortcuts.get(ident) or self.shortcuts.get(ident.removeprefix("page."))

    def _text(self, key: str) -> str | None:
        value = self.frontmatter.get(key)
        return value if isinstance(value, str) else None


def parse(
    source: str, uri: str = "", *, original: str | None = None, converted: bool = False
) -> Document:
    """Parse any text. Cheap: each part of the document is found when first asked for."""
    return Document(source, uri, original=original, converted=converted)


def parse_menu(name: str, source: str, uri: str) -> Menu:
    """The menu a menu file describes: its inline shortcuts, in order. Targets stay as written."""
    document = Document(source, uri)
    entries: list[MenuEntry] = []
    for link in document.links:
        shortcut = defined_shortcut(source, link)
        if shortcut is not None:
            ident = document.defined.inline[link.start]
            entries.append(MenuEntry(f"{name}.{ident}", shortcut.label, shortcut.target))
    return Menu(name, uri, tuple({entry.id: entry for entry in reversed(entries)}.values())[::-1])


_COMPARED: Final = 300
_COMPARED_CHARACTERS: Final = 60


def available_blocks(document: Document, wanted: str = "", *, brief: bool = False) -> str:
    """Which blocks a document has, for whoever wanted another one; the nearest on a line before.

    `brief` leaves headings out where there are marked blocks.
    """
    slugs = (slug(each.text) for each in document.headings)
    every = [each for each in dict.fromkeys([*document.block_ids, *slugs]) if each]
    ids = (document.block_ids if brief else None) or every
    more = f", +{len(ids) - BLOCKS_SHOWN} more" if len(ids) > BLOCKS_SHOWN else ""
    listed = f"{', '.join(ids[:BLOCKS_SHOWN])}{more}"
    if not ids:
        return "This document has no blocks."
    short = [each for each in every[:_COMPARED] if len(each) <= _COMPARED_CHARACTERS]
    near = get_close_matches(wanted.lower()[:_COMPARED_CHARACTERS], short, cutoff=0.7)
    meant = f"Did you mean {' or '.join(f'#{each}' for each in near)}?\n" if near else ""
    return f"{meant}Available blocks: {listed}"


def find_block(source: str, ident: str) -> BlockSpan | None:
    """Where block `id` of a text is."""
    return Document(source).find_block(ident)


class MenuNames:
    """Which ids the loaded menus can resolve."""

    def __init__(self, menus: Iterable[Menu]) -> None:
        ids = [entry.id for menu in menus for entry in menu.entries]
        self._full = set(ids)
        self._short: dict[str, str] = {}
        for ident in ids:
            self._short.setdefault(ident.partition(".")[2], ident)

    def shown(self, ident: str, page: Mapping[str, object]) -> str | None:
        """The id a use of `@id` is displayed with; None when nothing defines it."""
        if ident in page or ident in self._full:
            return ident
        if ident.startswith("page.") and ident[5:] in page:
            return ident
        return self._short.get(ident)


class _Coverage:
    """Whether an offset is inside any of some spans; asked with growing offsets."""

    def __init__(self, spans: Iterable[BlockSpan]) -> None:
        self._spans = sorted((span.start, span.end) for span in spans)
        self._at = 0
        self._reach = 0

    def covers(self, position: int) -> bool:
        while self._at < len(self._spans) and self._spans[self._at][0] <= position:
            self._reach = max(self._reach, self._spans[self._at][1])
            self._at += 1
        return position < self._reach


def _env_variable(entry: header.Value) -> EnvVariable | None:
    if isinstance(entry, str):
        return EnvVariable(entry.strip().removeprefix("$"))
    if not isinstance(entry, dict) or not entry:
        return None
    default = entry.get("default")
    shown = None if default is None else str(default)
    if "name" in entry:
        return EnvVariable(str(entry["name"]), str(entry.get("description") or ""), shown)
    name = next((key for key in entry if key != "default"), None)
    return EnvVariable(name, str(entry[name] or ""), shown) if name else None
