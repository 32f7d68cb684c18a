"""The text of a strategy or manifest file as plain values, with the place of every value."""

import json
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import Any, Final

import msgspec

from stringd.formats.places import Places, SourcePlace, SourceSyntaxError
from stringd.formats.shapes import Issue, dotted
from stringd.formats.shapes import Path as ValuePath
from stringd.runs.errors import StrategyFileError
from stringd.runs.strategy.files import Provenance, SourceFile, StrategyFiles
from stringd.system.safe_open import FileTooLargeError
from stringd.system.workers import WorkerError, WorkerTask, ask

FORMATS: Final = {".json": "JSON", ".jsonc": "JSON", ".yaml": "YAML", ".yml": "YAML"}
# A hand-written strategy is a few KiB; prompts live in their own files.
MAX_BYTES: Final = 1024 * 1024
SMALL_YAML: Final = 64 * 1024
"""Characters; a larger file is parsed in a worker."""
REMEMBERED: Final = 16 * 1024
"""Characters; what a smaller text says is remembered, since most runs use a strategy again."""
PARSING_SECONDS: Final = 10.0
_PARSING: Final = WorkerTask(__name__, "yaml_for_daemon", PARSING_SECONDS)


@dataclass(frozen=True)
class StrategySource:
    """A parsed file: its value, the place of each value, and whose word the file is.

    `value` is the caller's own to change. `text` and `form` are what it was parsed from.
    """

    path: Path
    value: Any
    places: Places
    provenance: Provenance = "foreign"
    text: str = ""
    form: str = ""

    def place(self, path: ValuePath) -> SourcePlace:
        """Where the value at `path` is, or its nearest parent that is there."""
        while path and path not in self.places:
            path = path[:-1]
        return self.places.get(path, SourcePlace(1, 1))

    def describe(self, issue: Issue) -> str:
        """What is wrong where, for the person who wrote the file; details on lines of their own."""
        return "\n      ".join(self._line(each) for each in (issue, *issue.leaves()))

    def _line(self, issue: Issue) -> str:
        line, column = self.place(issue.about or issue.path)
        return f"{dotted(issue.path)}: {issue.problem} ({self.path}:{line}:{column})"


def read_source(
    path: Path,
    what: str = "Strategy",
    files: StrategyFiles | None = None,
    within: Path | None = None,
) -> StrategySource:
    """Read and parse a file. Raises `StrategyFileError` with a text for its author.

    Without `files` it counts as foreign. With `within` it must not lead out of that folder.
    """
    form = FORMATS.get(path.suffix.lower())
    if form is None:
        raise StrategyFileError(
            f'Unsupported file extension "{path.suffix}" ({path}). '
            f"Supported extensions: {', '.join(FORMATS)}."
        )
    read = _read(path, what, files or StrategyFiles(), within)
    text = _text(read.data, path, what)
    try:
        value, places = parse(text, form)
    except SourceSyntaxError as bad:
        at = f":{bad.place.line}:{bad.place.column}" if bad.place else ""
        message = f"Failed to parse {what.lower()} {form}: {bad.problem} ({path}{at})"
        raise StrategyFileError(message) from None
    return StrategySource(path, value, places, read.provenance, text, form)


def parse(text: str, form: str) -> tuple[Any, Places]:
    """The value of a text, a new one each time, and its places. Raises `SourceSyntaxError`."""
    if len(text) > REMEMBERED:
        return _parse(text, form)
    value, places = _remembered(text, form)
    return _copied(value), places


@lru_cache(maxsize=32)
def _remembered(text: str, form: str) -> tuple[Any, Places]:
    return _parse(text, form)


def _copied(value: Any) -> Any:
    if isinstance(value, dict):
        return {key: _copied(each) for key, each in value.items()}
    if isinstance(value, list):
        return [_copied(each) for each in value]
    return value


def _parse(text: str, form: str) -> tuple[Any, Places]:
    # The parsers are loaded with the first file; a daemon without runs never needs them.
    if form == "YAML" and len(text) > SMALL_YAML:
        return _parse_away(text)
    if form == "YAML":
        return _parse_here(text)
    from stringd.formats.jsonc import parse_json

    return _sendable(*parse_json(text))


def _parse_here(text: str) -> tuple[Any, Places]:
    from stringd.formats.yaml12 import parse_yaml

    return _sendable(*parse_yaml(text))


def _sendable(value: Any, places: Places) -> tuple[Any, Places]:
    try:
        msgspec.json.encode(value)
    except UnicodeEncodeError:
        raise SourceSyntaxError("a \\u escape is an unpaired surrogate", None) from None
    return value, places


def _parse_away(text: str) -> tuple[Any, Places]:
    """Parse a large text in a process that can be ended."""
    try:
        answer = json.loads(ask(_PARSING, text))
    except WorkerError as error:
        raise SourceSyntaxError(f"the file cannot be used: {error}", None) from None
    if "problem" in answer:
        place = answer["place"]
        raise SourceSyntaxError(answer["problem"], SourcePlace(*place) if place else None)
    places = {tuple(path): SourcePlace(*place) for path, place in answer["places"]}
    return answer["value"], places


def yaml_for_daemon(text: str) -> str:
    """What a worker answers: the value and its places, or what is wrong."""
    try:
        value, places = _parse_here(text)
    except SourceSyntaxError as bad:
        return json.dumps({"problem": bad.problem, "place": bad.place})
    return json.dumps({"value": value, "places": list(places.items())})


def _read(path: Path, what: str, files: StrategyFiles, within: Path | None) -> SourceFile:
    try:
        return files.read(path, MAX_BYTES, within)
    except FileNotFoundError:
        raise StrategyFileError(f"{what} file not found: {path}") from None
    except FileTooLargeError:
        raise StrategyFileError(
            f"{what} file is larger than {MAX_BYTES // 1024} KiB: {path}. "
            "Move long prompts into .md files next to it."
        ) from None
    except OSError as error:
        raise StrategyFileError(f"Cannot read {path}: {error.strerror or error}") from None


def _text(raw: bytes, path: Path, what: str) -> str:
    try:
        return raw.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        line = raw.count(b"\n", 0, error.start) + 1
        raise StrategyFileError(f"{what} file is not UTF-8: {path}:{line}") from None
