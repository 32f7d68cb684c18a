"""What another version of a package changes: its files, its actions, and what it asks for."""

import os
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Final, NamedTuple

from stringd.actions.network import literal_host
from stringd.documents import Action, Document, parse
from stringd.net.hosts import Host
from stringd.runtime.packages import record
from stringd.runtime.packages.install import package_directory
from stringd.runtime.packages.installed import MAIN_FILE, ORIGIN_FILE

_NAMED: Final = 20


class Demands(NamedTuple):
    """What a package asks of its owner."""

    hosts: frozenset[str]
    names: frozenset[str]
    commands: bool
    """Whether it runs any."""


class PackageChanges(NamedTuple):
    """How a package that was put together differs from the installed one."""

    before: str
    after: str
    """Versions; empty where a package does not say."""
    added: tuple[str, ...]
    changed: tuple[str, ...]
    removed: tuple[str, ...]
    actions: tuple[str, ...]
    """`+id`, `~id`, `-id`."""
    demands: tuple[str, ...]
    """What it asks for and the installed one did not, a line each."""

    @property
    def any(self) -> bool:
        return bool(self.added or self.changed or self.removed)

    @property
    def versions(self) -> str:
        if self.before == self.after:
            return f" ({self.after})" if self.after else ""
        return f" ({self.before or 'no version'} → {self.after or 'no version'})"

    @property
    def lines(self) -> list[str]:
        """What changes, for a reply."""
        rows = {
            "Changed": self.changed,
            "Added": self.added,
            "Removed": self.removed,
            "Actions": self.actions,
        }
        listed = [f"  {title}: {_listed(items)}" for title, items in rows.items() if items]
        return [*listed, *(f"  Asks for {line}" for line in self.demands)]


def compare(home: str, name: str, directory: Path) -> PackageChanges:
    """How what is in `directory` differs from what is installed under a name. Use a thread."""
    kept = record.record_of(home, name)
    old, new = package_directory(home, name), directory
    known = {path for path in kept.files if path != ORIGIN_FILE}
    # A file that was changed in its place is brought back too.
    there, found = record.digests(old), record.digests(new)
    found.pop(ORIGIN_FILE, None)
    return PackageChanges(
        version_of(main_document(old)),
        version_of(main_document(new)),
        tuple(sorted(found.keys() - known)),
        tuple(sorted(path for path in found.keys() & known if found[path] != there.get(path))),
        tuple(sorted(known - found.keys())),
        tuple(_action_marks(_actions(old), _actions(new))),
        tuple(_more(_demands(old, kept), _demands(new))),
    )


def main_document(directory: Path) -> Document:
    """The document a package opens with; empty when it cannot be read."""
    try:
        return parse((directory / MAIN_FILE).read_text("utf-8", "replace"))
    except OSError:
        return parse("")


def version_of(document: Document) -> str:
    """What a package calls its version; empty when it does not say."""
    value = document.frontmatter.get("version")
    return " ".join(str(value).split())[:40] if isinstance(value, str | int | float) else ""


def _demands(directory: Path, kept: record.PackageRecord | None = None) -> Demands:
    """What a package asks for; of an installed one what counts is on record."""
    document = main_document(directory)
    actions = list(_actions(directory).values())
    hosts = document.hosts if kept is None else kept.hosts
    if hosts is None:
        literal = (literal_host(action) for action in actions)
        hosts = tuple(_written(host) for host in literal if host is not None)
    names = kept.names if kept is not None and kept.names is not None else document.declared_names
    return Demands(
        frozenset(hosts), frozenset(names), any(action.method == "CLI" for action in actions)
    )


def _written(host: Host) -> str:
    """A host as `hosts:` takes it; the ports of http and https go without saying."""
    name = f"[{host.name}]" if ":" in host.name else host.name
    return name if host.port in (None, 80, 443) else f"{name}:{host.port}"


def _more(old: Demands, new: Demands) -> Iterator[str]:
    if hosts := sorted(new.hosts - old.hosts):
        yield f"hosts it did not reach: {_listed(hosts)}"
    if names := sorted(new.names - old.names):
        yield f"stored names it did not get: {_listed([f'${name}' for name in names])}"
    if new.commands and not old.commands:
        yield "commands, which it did not run"


def _actions(directory: Path) -> dict[str, Action]:
    """The actions of every page of a package, by page and id."""
    found = dict[str, Action]()
    for parent, folders, names in os.walk(directory):
        folders.sort()
        for name in sorted(names):
            path = Path(parent) / name
            if name.endswith(".md") and path.is_file() and not path.is_symlink():
                page = path.relative_to(directory).as_posix()
                prefix = "" if page == MAIN_FILE else f"{page}:"
                actions = parse(path.read_text("utf-8", "replace")).actions
                found |= {f"{prefix}{ident}": action for ident, action in actions.items()}
    return found


def _action_marks(old: Mapping[str, Action], new: Mapping[str, Action]) -> Iterator[str]:
    for ident in [*new, *(each for each in old if each not in new)]:
        if ident not in old:
            yield f"+{ident}"
        elif ident not in new:
            yield f"-{ident}"
        elif old[ident] != new[ident]:
            yield f"~{ident}"


def _listed(items: Iterable[str]) -> str:
    every = list(items)
    more = f", +{len(every) - _NAMED} more" if len(every) > _NAMED else ""
    return f"{', '.join(every[:_NAMED])}{more}"
