"""Which strategies are at hand, from the working directory outwards."""

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Final, NamedTuple

from stringd.formats.shapes import dotted
from stringd.runs.errors import StrategyFileError
from stringd.runs.strategy.project import MANIFEST_NAMES, read_manifest
from stringd.runs.strategy.schema import STRATEGY
from stringd.runs.strategy.source import FORMATS, read_source
from stringd.wire.runs.names import is_called

PROJECT_FOLDERS: Final = (".stringd", ".comma")
BUNDLED: Final = Path(__file__).parent.parent / "bundled"


class Found(NamedTuple):
    """A strategy that could be run. `label` tells two of the same name apart."""

    name: str
    label: str
    description: str | None
    path: Path
    origin: str
    manifest: Path | None = None


class Warned(NamedTuple):
    path: Path
    reason: str


class Discovery(NamedTuple):
    strategies: list[Found]
    warnings: list[Warned]


def discover(cwd: Path, data_dir: Path) -> Discovery:
    """Everything in priority order; a file found twice is listed where it came first."""
    found: dict[Path, Found] = {}
    warnings: list[Warned] = []
    for item in _candidates(cwd, data_dir):
        if isinstance(item, Warned):
            warnings.append(item)
        else:
            found.setdefault(item.path.resolve(), item)
    return Discovery(list(found.values()), warnings)


def _candidates(cwd: Path, data_dir: Path) -> Iterator[Found | Warned]:
    for folder in PROJECT_FOLDERS:
        yield from _files(cwd / folder / "strategies", "cwd")
    for folder in PROJECT_FOLDERS:
        yield from _projects(cwd / folder / "strategies", "cwd-project")
    for folder in PROJECT_FOLDERS:
        yield from _project(cwd / folder, "cwd-root-project")
    yield from _files(data_dir / "strategies", "data")
    yield from _projects(data_dir / "strategies", "data-project")
    for scope in sorted(_folders(data_dir / "packages")):
        yield from _projects(scope, "hub-package")
    yield from _files(BUNDLED, "bundled")


def _folders(folder: Path) -> list[Path]:
    return [each for each in folder.iterdir() if each.is_dir()] if folder.is_dir() else []


def _files(folder: Path, origin: str) -> Iterator[Found | Warned]:
    if not folder.is_dir():
        return
    for path in sorted(folder.iterdir()):
        known = path.suffix.lower() in FORMATS and path.name not in MANIFEST_NAMES
        if known and path.is_file():
            yield _strategy(path, origin)


def _projects(folder: Path, origin: str) -> Iterator[Found | Warned]:
    for project in sorted(_folders(folder)):
        yield from _project(project, origin)


def _project(folder: Path, origin: str) -> Iterator[Found | Warned]:
    path = next((folder / name for name in MANIFEST_NAMES if (folder / name).is_file()), None)
    if path is None:
        return
    try:
        manifest = read_manifest(path)
    except StrategyFileError as error:
        yield Warned(path, f"Manifest invalid ({error})")
        return
    for artifact in manifest.strategies:
        if artifact.expose:
            item = _strategy(artifact.path, origin)
            if isinstance(item, Found):
                label = f"{manifest.name} > {item.name}"
                item = item._replace(label=label, manifest=path)
            yield item


def _strategy(path: Path, origin: str) -> Found | Warned:
    try:
        value = read_source(path).value
    except StrategyFileError as error:
        return Warned(path, f"Parse error: {error}")
    issues = STRATEGY.check(value)
    if issues:
        problem = f"{dotted(issues[0].path)}: {issues[0].problem}"
        return Warned(path, f"Schema invalid ({problem})")
    return Found(value["name"], value["name"], value.get("description"), path, origin)


def find_by_name(found: Sequence[Found], name: str) -> Found | None:
    """The strategy a person means by its name, its label or the name of its file."""
    return next((each for each in found if is_called(each, name)), None)


def find(reference: str, cwd: Path, data_dir: Path) -> Path:
    """The file a caller means: a path, or `@scope/package/strategies/<id>`."""
    if not reference.startswith("@"):
        return cwd / reference
    scope, _, rest = reference.partition("/")
    package, _, artifact_id = rest.partition("/strategies/")
    folder = data_dir / "packages" / scope / package
    # A package is a plain name; an absolute one would take the place of the folder before it.
    if "/" in package or ".." in folder.parts or not artifact_id:
        raise StrategyFileError(f"Strategy file not found: {reference}")
    path = next((folder / name for name in MANIFEST_NAMES if (folder / name).is_file()), None)
    artifacts = read_manifest(path).strategies if path else ()
    match = next((each.path for each in artifacts if each.id == artifact_id), None)
    if match is None:
        raise StrategyFileError(f"Strategy file not found: {reference}")
    return match
