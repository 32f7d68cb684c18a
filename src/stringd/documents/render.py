"""Rendering: the text an agent reads, from a document, in one walk over its source.

Nothing is rescanned: the walk copies what stays, drops what is never shown, and rewrites links in
place. Included text is walked the same way, from its own document.
"""

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field
from operator import itemgetter
from typing import Final, NamedTuple
from weakref import WeakKeyDictionary

from stringd.documents.action_blocks import action_info
from stringd.documents.addresses import joined
from stringd.documents.auto_shortcuts import AutoShortcuts, shortens
from stringd.documents.directives import Include
from stringd.documents.document import Document, MenuNames, parse
from stringd.documents.links import Link
from stringd.documents.scan import with_newlines
from stringd.documents.shortcuts import (
    ID_CHARACTERS,
    Menu,
    MenuEntry,
    used_shortcut,
)

# Two includes a file, twenty files deep, would be a million: stop long before that.
MAX_INCLUDES: Final = 1000
UNFOLDED_ENTRIES: Final = 20


class Included(NamedTuple):
    """What an include resolver found: the file's canonical address and its text."""

    uri: str
    source: str


class IncludeFailure(NamedTuple):
    """Why an include could not be loaded."""

    reason: str


Resolve = Callable[[str, str], Included | IncludeFailure]
"""`resolve(path, base_uri)`: load an included file. Cycles are found here, not by the resolver."""


@dataclass(frozen=True, slots=True)
class Rendered:
    """A rendered view."""

    text: str
    auto_shortcuts: Mapping[str, str]
    """Ids this rendering introduced → targets; they replace the session's previous ones."""
    unfolded_menus: frozenset[str] = frozenset()
    """Addresses of the menu files shown entry by entry: add them to the session's seen menus."""


def render(
    document: Document,
    *,
    block: str | None = None,
    menus: Mapping[str, Menu] | None = None,
    include: Resolve | None = None,
    seen_menus: Collection[str] | None = None,
    missing_env: Sequence[str] = (),
    requirements: str | None = None,
    taken: Collection[str] = (),
    hints: bool = True,
    action_lines: Sequence[str] | None = None,
) -> Rendered:
    """Render a document, or one block of it. An unknown block renders as empty text.

    `menus` are the loaded menus by name; `seen_menus` the addresses of menu files this session has
    unfolded already (None: never unfold). `taken` are ids auto-shortcuts must avoid, besides the
    document's own. Without `hints`, no lines above the text name menus, actions and variables.
    `action_lines` take the place of the line that names the actions, below the text.
    """
    lines = None if action_lines is None else tuple(action_lines)
    view = _View(block, hints, tuple(missing_env), requirements, tuple(taken), lines)
    remembered = not menus and not document.directives and len(document.source) <= _REMEMBERED
    if remembered and (known := _VIEWS.get(document)) is not None and known[0] == view:
        return known[1]
    rendered = _render(document, view, menus or {}, include, seen_menus)
    if remembered:
        _VIEWS[document] = view, rendered
    return rendered


class _View(NamedTuple):
    """What a rendering depends on besides the document and other files."""

    block: str | None
    hints: bool
    missing_env: tuple[str, ...]
    requirements: str | None
    taken: tuple[str, ...]
    action_lines: tuple[str, ...] | None


def _render(
    document: Document,
    view: _View,
    loaded: Mapping[str, Menu],
    include: Resolve | None,
    seen_menus: Collection[str] | None,
) -> Rendered:
    auto = AutoShortcuts({*document.shortcuts, *view.taken})
    walk = _RenderWalk(document, auto, MenuNames(loaded.values()), include)
    if view.block is not None:
        return Rendered(_finished(walk.block(view.block)), auto.targets)
    body = walk.region(document, document.body_start, len(document.source))
    if not view.hints:
        return Rendered(_finished(body), auto.targets)
    nav, unfolded = _nav_hint(document, loaded, seen_menus)
    actions = _action_hint(document) if view.action_lines is None else []
    above = [*nav, *actions, *_env_hint(view.missing_env, view.requirements)]
    text = "\n".join([*above, "", body]) if above else body
    if view.action_lines:
        text = "\n".join([*_worth_reading(text), *view.action_lines])
    return Rendered(_finished(text), auto.targets, unfolded)


def render_text(text: str, taken: Collection[str] = ()) -> Rendered:
    """Render text that is data, such as an action's answer: only its links change.

    Directives, markers and fences of data are text. A shortcut it defines gets a free id.
    """
    document = parse(text)
    auto = AutoShortcuts(taken)
    body = _RenderWalk(document, auto, MenuNames(()), None, data=True).region(
        document, 0, len(text)
    )
    return Rendered(_finished(body), auto.targets)


def menu_line(entry: MenuEntry) -> str:
    """How a menu entry is shown."""
    return f"[{entry.label}][@{entry.id}]"


def _finished(text: str) -> str:
    return with_newlines(text, "\n").strip()


def _nav_hint(
    document: Document, loaded: Mapping[str, Menu], seen: Collection[str] | None
) -> tuple[list[str], frozenset[str]]:
    folded: list[str] = []
    lines: list[str] = []
    unfolded: set[str] = set()
    for name in document.menus:
        menu = loaded.get(name)
        if seen is None or menu is None or not menu.entries or menu.uri in {*seen, *unfolded}:
            folded.append(name)
            continue
        unfolded.add(menu.uri)
        lines.append(f"[nav] {name} — first view")
        lines += [menu_line(entry) for entry in menu.entries[:UNFOLDED_ENTRIES]]
        more = len(menu.entries) - UNFOLDED_ENTRIES
        if more > 0:
            lines.append(f"... {more} more — /nav {name}")
    if folded:
        lines.append(f"[nav] {', '.join(folded)} — /nav <name>")
    return lines, frozenset(unfolded)


def _worth_reading(text: str) -> list[str]:
    """What is above the lines of actions; a heading alone says nothing they do not."""
    shown = text.strip()
    alone = shown.startswith("#") and "\n" not in shown
    return [] if alone or not shown else [shown, ""]


def _action_hint(document: Document) -> list[str]:
    if not document.actions:
        return []
    return [f"[actions] {', '.join(document.actions)}  ·  /act --help (all)  ·  /act.<name> --help"]


def _env_hint(missing: Sequence[str], requirements: str | None) -> list[str]:
    if not missing:
        return []
    lines = [
        f"[!] Missing required env: {', '.join(f'${name}' for name in missing)}",
        "    Set: " + " ; ".join(f'/set ${name}="..."' for name in missing),
    ]
    return [*lines, f"    Setup: /open {requirements}"] if requirements else lines


_Change = tuple[int, int, Include | Link | str]
"""Start, end, and what is there instead: text, an include's text, or the tail of a link."""


@dataclass(slots=True)
class _RenderWalk:
    """One rendering: shortcuts are numbered across everything it shows, top to bottom."""

    root: Document
    auto: AutoShortcuts
    menus: MenuNames
    resolve: Resolve | None
    chain: list[str] = field(default_factory=list)
    includes: int = 0
    data: bool = False
    """Whether the text is data: then it declares nothing."""

    def block(self, ident: str) -> str:
        """A block of the root document; an include's id means what it includes.

        Include lines inside a block are dropped: only the full view expands them.
        """
        span = self.root.find_block(ident)
        if span is not None:
            self.resolve = None
            return self.region(self.root, span.start, span.shown_end)
        named = next((each for each in self.root.includes if each.id == ident), None)
        return self.included(self.root, named) if named is not None else ""

    def region(self, document: Document, start: int, end: int) -> str:
        """The rendered text of `document.source[start:end]`."""
        source = document.source
        pieces: list[str] = []
        add = pieces.append
        position = start
        for first, last, instead in self.changes(document):
            if first < position:
                continue
            if last > end:
                break
            add(source[position:first])
            position = last
            if not instead:
                continue
            if isinstance(instead, str):
                add(instead)
            elif isinstance(instead, Link):
                add(self.tail(document, instead))
            elif self.resolve is not None:
                pieces += [self.included(document, instead), "\n" * (source[last - 1] == "\n")]
        pieces.append(source[position:end])
        return "".join(pieces)

    def changes(self, document: Document) -> list[_Change]:
        """What to change; for a document that is shown again it is known."""
        if self.data:
            return _link_changes(document, own_ids=False)
        if document is not self.root:
            return _changes(document, own_ids=False)
        known = _PLANS.get(document)
        if known is None:
            known = _PLANS[document] = _changes(document, own_ids=True)
        return known

    def tail(self, document: Document, link: Link) -> str:
        """What follows a link's label."""
        source = document.source
        label = source[link.start + 1 : link.label_end]
        target = link.target
        if target is None:
            if (used := used_shortcut(link)) is not None:
                return f"][@{self.shown(document, used)}]"
            name = link.name or label
            target = document.references.get(name)
            if target is None:
                # Included text may lean on what the document it is in defines.
                document = self.root
                target = document.references.get(name)
            if target is None:
                return source[link.label_end : link.end]
            if link.image or not shortens(target):
                return f"]({target})"
        elif (
            label.startswith("@")
            and (defined := document.defined.inline.get(link.start)) is not None
        ):
            return f"][@{self.page_id(document, defined)}]"
        if document is not self.root:
            target = self.absolute(document, target)
        ident = self.auto.id_for(label, target)
        return f"][@{ident}]" if label else f"{ident}][@{ident}]"

    def shown(self, document: Document, ident: str) -> str:
        if document is not self.root and ident in document.shortcuts:
            return self.page_id(document, ident)
        return self.menus.shown(ident, self.root.shortcuts) or ident

    def page_id(self, document: Document, ident: str) -> str:
        """The id under which a page shortcut resolves; included pages bring theirs along."""
        if document is self.root and not self.data:
            return ident
        return self.auto.adopt(ident, self.absolute(document, document.shortcuts[ident].target))

    def absolute(self, document: Document, target: str) -> str:
        """Targets of included text are relative to the file it came from."""
        if document is self.root or "://" not in document.uri or target.startswith(("~", "@")):
            return target
        return joined(document.uri, target)

    def included(self, document: Document, include: Include) -> str:
        """The text of an include, or the line that says why there is none."""
        if self.resolve is None:
            return ""
        self.includes += 1
        if self.includes > MAX_INCLUDES:
            return f"⚠ Include failed: {include.path} - more than {MAX_INCLUDES} includes"
        found = self.resolve(include.path and include.file, document.uri)
        if isinstance(found, IncludeFailure):
            return f"⚠ Include failed: {include.path} - {found.reason}"
        if found.uri in (self.root.uri, *self.chain):
            return f"⚠ Circular include detected: {include.path} (already included in this chain)"
        page = parse(found.source, found.uri)
        span = page.find_block(include.block)
        if span is None:
            return _NO_BLOCK.format(id=include.block, path=include.path)
        self.chain.append(found.uri)
        text = self.region(page, span.start, span.shown_end).strip()
        self.chain.pop()
        return text


_NO_BLOCK: Final = (
    "⚠ Include failed: Block #{id} not found in {path}\n"
    "Supported formats:\n"
    "  <!-- #{id} --> … <!-- /{id} -->\n"
    "  ## Heading {{#{id}}}\n"
    "  ## Heading whose slug is {id}"
)


_REMEMBERED: Final = 1024 * 1024
"""Characters of the largest document whose last view is kept."""
_VIEWS: Final[WeakKeyDictionary[Document, tuple[_View, Rendered]]] = WeakKeyDictionary()
"""The last view of documents that depend on no other file, as long as someone holds them."""
_PLANS: Final[WeakKeyDictionary[Document, list[_Change]]] = WeakKeyDictionary()
"""The changes of documents shown before, as long as someone holds them."""


def _changes(document: Document, *, own_ids: bool) -> list[_Change]:
    """Everything a rendering does not copy, in document order."""
    changes: list[_Change] = [
        (fence.start, fence.end, "")
        for fence in document.fences.all
        if fence.closed and action_info(fence.info) is not None
    ]
    changes += [(mark.start, mark.end, "") for mark in document.markers]
    changes += [(line.start, line.end, "") for line in document.definitions]
    for each in document.directives:
        expands = each.type == "include" and each.name
        instead = Include(each.name, each.path) if expands and each.name else ""
        changes.append((each.start, each.end, instead))
    # Lines that go away come before the links on them, so those are passed over.
    changes += _link_changes(document, own_ids=own_ids)
    changes.sort(key=itemgetter(0))
    return changes


def _link_changes(document: Document, *, own_ids: bool) -> list[_Change]:
    """What links become; with `own_ids`, shortcuts keep the ids their document gives them."""
    source = document.source
    changes: list[_Change] = []
    inline = document.defined.inline
    for link in document.links:
        target = link.target
        defined = inline.get(link.start) if inline else None
        if defined is not None:
            # `[@id Label](…)` shows `Label`, and `[@id](…)` its id.
            start, end = link.start + 1, link.label_end
            label = source[start + 1 : end].lstrip(ID_CHARACTERS).lstrip()
            label = label or source[start + 1 : end]
            if own_ids and "[" not in label:
                changes.append((start, link.end, f"{label}][@{defined}]"))
                continue
            changes.append((start, end - len(label), ""))
            if own_ids:
                changes.append((end, link.end, f"][@{defined}]"))
                continue
        elif target is not None and (link.image or not shortens(target)):
            continue
        changes.append((link.label_end, link.end, link))
    return changes
