"""`/find`: lines that hold a text, in the open document, a file or a folder; or installed apps."""

import asyncio
import os
from collections.abc import Iterator
from pathlib import Path
from typing import Final, NamedTuple

from stringd.runtime.commands.edit_target import unquoted
from stringd.runtime.commands.find_apps import find_apps
from stringd.runtime.editing.paths import (
    FilePath,
    is_directory,
    is_file,
    locate,
    locate_named,
    standing_directory,
)
from stringd.runtime.editing.text_file import read_text
from stringd.runtime.errors import CommandError
from stringd.runtime.packages.installed import KINDS, installed
from stringd.runtime.topics.call import Call
from stringd.runtime.topics.location import is_web, path_of
from stringd.wire.result import Result

MAX_HITS: Final = 100
MAX_FILES: Final = 5_000
MAX_FILE_BYTES: Final = 1024 * 1024
_LINE_CHARACTERS: Final = 160
_SKIPPED: Final = frozenset(("node_modules", "__pycache__", "venv", "target", "dist", "build"))
_USAGE: Final = """Usage: /find <text> [--in <file or folder> | --apps]
Without --in: the open document, else the folder where this topic is.
With --apps: installed apps and mounted servers, best first."""


class _Hits:
    """Found lines, up to a limit."""

    def __init__(self, wanted: str) -> None:
        self.wanted = wanted.casefold()
        self.rows: list[str] = []
        self.files = 0

    @property
    def full(self) -> bool:
        return len(self.rows) >= MAX_HITS or self.files >= MAX_FILES

    def search(self, name: str, text: str) -> None:
        self.files += 1
        for number, line in enumerate(text.split("\n"), 1):
            if self.wanted in line.casefold():
                self.rows.append(f"{name}:L{number}: {_cut(line, self.wanted)}")
                if len(self.rows) >= MAX_HITS:
                    return


class _Wanted(NamedTuple):
    text: str
    place: str | None
    apps: bool


async def find(call: Call) -> Result:
    """List the lines that hold a text, whatever the case, by file and line number.

    With `--apps` the apps that the words mean; the lines of their pages where no app is meant.
    """
    wanted = _wanted(call.argument)
    if wanted.apps:
        apps = await asyncio.to_thread(find_apps, call, wanted.text)
        if apps is not None:
            return apps
    hits = _Hits(wanted.text)
    where = await asyncio.to_thread(_search, call, wanted, hits)
    count = f"{len(hits.rows)} {'line' if len(hits.rows) == 1 else 'lines'}"
    rows = hits.rows or ["(nothing found)", *_elsewhere(call, wanted)]
    if hits.full:
        rows = [*rows, "(there may be more: search for a longer text, or --in a smaller place)"]
    return Result.page(f"Found {count} with “{wanted.text}” in {where}", "\n".join(rows))


def _elsewhere(call: Call, wanted: _Wanted) -> list[str]:
    """Where else to look for what was not found."""
    if wanted.place is not None or wanted.apps:
        return []
    words = wanted.text.split()
    for name, rest in ((words[-1], words[:-1]), (words[0], words[1:])):
        if rest and _exists(call, name):
            return [f"To search {name}: /find {' '.join(rest)} --in {name}"]
    return [f"Elsewhere: /find {wanted.text} --in <file or folder>, or --apps"]


def _exists(call: Call, name: str) -> bool:
    try:
        real = locate_named(call, name).real
    except CommandError:
        return False
    return is_file(real) or is_directory(real)


def _wanted(argument: str) -> _Wanted:
    text, apps = argument.strip(), False
    if text.endswith(" --apps"):
        text, apps = text.removesuffix(" --apps").strip(), True
    text, _, place = text.partition(" --in ")
    text = unquoted(text.strip())
    if not text or text.startswith("--"):
        raise CommandError("INVALID_TARGET", _USAGE)
    return _Wanted(text, unquoted(place.strip()) or None, apps)


def _search(call: Call, wanted: _Wanted, hits: _Hits) -> str:
    """Search; the name of the place that was searched. Raises `CommandError`."""
    if wanted.apps:
        return _search_apps(call, hits)
    page = call.session.location.page if call.session.location else None
    if wanted.place is None and page is not None and call.session.directory is None:
        name = call.session.shown(page.uri)
        hits.search(name, page.document.source)
        return name
    place = (
        locate_named(call, wanted.place)
        if wanted.place is not None
        else locate(call, str(standing_directory(call)))
    )
    _search_path(call, place, hits)
    return call.session.shown(place.path.as_uri())


def _search_apps(call: Call, hits: _Hits) -> str:
    home = call.session.user.home
    for kind in KINDS:
        for uri in installed(home, kind).values():
            path = None if is_web(uri) else path_of(uri) or Path(uri)
            if path is not None and is_file(path):
                _search_path(call, locate(call, str(path.parent)), hits)
    return "installed apps and tools"


def _search_path(call: Call, place: FilePath, hits: _Hits) -> None:
    if is_file(place.real):
        hits.search(call.session.shown(place.path.as_uri()), read_text(place).text)
        return
    if not is_directory(place.real):
        raise CommandError("NOT_FOUND", f"Not found: {place.typed}")
    for path in _files(place.path):
        if hits.full:
            return
        try:
            text = read_text(locate(call, str(path))).text
        except CommandError:
            # Not text, or a link that leads out of reach.
            continue
        hits.search(call.session.shown(path.as_uri()), text)


def _files(root: Path) -> Iterator[Path]:
    for directory, below, names in os.walk(root):
        below[:] = sorted(each for each in below if each[0] != "." and each not in _SKIPPED)
        for name in sorted(names):
            path = Path(directory, name)
            if name[0] != "." and is_file(path) and path.stat().st_size <= MAX_FILE_BYTES:
                yield path


def _cut(line: str, wanted: str) -> str:
    line = line.strip()
    if len(line) <= _LINE_CHARACTERS:
        return line
    start = max(0, line.casefold().find(wanted) - _LINE_CHARACTERS // 3)
    shown = line[start : start + _LINE_CHARACTERS]
    return f"{'…' if start else ''}{shown}…"
