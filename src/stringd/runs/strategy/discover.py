"""Which strategies are at hand, from the working directory outwards."""

from collections.abc import Iterator, Sequence
from itertools import islice
from pathlib import Path
from typing import NamedTuple

from stringd.formats.shapes import dotted
from stringd.runs.errors import StrategyFileError
from stringd.runs.strategy.files import BUNDLED, MAX_FILES, PROJECT_FOLDERS, StrategyFiles
from stringd.runs.strategy.project import MANIFEST_NAMES, read_manifest
from stringd.runs.strategy.schema import STRATEGY
from stringd.runs.strategy.source import FORMATS, read_source
from stringd.wire.runs.names import is_called


class Found(NamedTuple):
    """A strategy that could be run. `label` tells two of the same name apart."""

    name: str
    label: str
    description: str | None
    path: Path
    origin: str
    manifest: Path | None = None


class Warned(NamedTuple):
    """A file that is left out. `trust` is what the owner could trust so that it is not."""

    path: Path
    reason: str
    trust: str | None = None


class Discovery(NamedTuple):
    strategies: list[Found]
    warnings: list[Warned]


def discover(cwd: Path, data_dir: Path, files: StrategyFiles | None = None) -> Discovery:
    """Everything from the nearest outwards; a file found twice is listed where it came first.

    What a workspace offers and its owner has not trusted is among the warnings.
    """
    found: dict[Path, Found] = {}
    warnings: list[Warned] = []
    for item in _Search(cwd, data_dir, files or StrategyFiles(data_dir)).candidates():
        if isinstance(item, Warned):
            warnings.append(item)
        else:
            found.setdefault(item.path.resolve(), item)
    return Discovery(list(found.values()), warnings)


class _Search:
    """Looks through the places where strategies are found."""

    def __init__(self, cwd: Path, data_dir: Path, files: StrategyFiles) -> None:
        self._cwd = cwd
        self._data_dir = data_dir
        self._trusting = files

    def candidates(self) -> Iterator[Found | Warned]:
        cwd, data_dir = self._cwd, self._data_dir
        for folder in PROJECT_FOLDERS:
            yield from self._files(cwd / folder / "strategies", "cwd", cwd)
        for folder in PROJECT_FOLDERS:
            yield from self._projects(cwd / folder / "strategies", "cwd-project", cwd)
        for folder in PROJECT_FOLDERS:
            yield from self._project(cwd / folder, "cwd-root-project", cwd)
        yield from self._files(data_dir / "strategies", "data")
        yield from self._projects(data_dir / "strategies", "data-project")
        for scope in _folders(data_dir / "packages"):
            yield from self._projects(scope, "hub-package")
        yield from self._files(BUNDLED, "bundled")
        for shipped in _folders(BUNDLED):
            yield self._strategy(shipped / f"{shipped.name}.yaml", "bundled", None)

    def _files(
        self, folder: Path, origin: str, within: Path | None = None
    ) -> Iterator[Found | Warned]:
        for path in _listed(folder):
            known = path.suffix.lower() in FORMATS and path.name not in MANIFEST_NAMES
            if known and path.is_file():
                yield self._strategy(path, origin, within)

    def _projects(
        self, folder: Path, origin: str, within: Path | None = None
    ) -> Iterator[Found | Warned]:
        for project in _folders(folder):
            yield from self._project(project, origin, within)

    def _project(
        self, folder: Path, origin: str, within: Path | None = None
    ) -> Iterator[Found | Warned]:
        path = next((folder / name for name in MANIFEST_NAMES if (folder / name).is_file()), None)
        if path is None:
            return
        try:
            manifest = read_manifest(path, self._trusting, within)
        except StrategyFileError as error:
            yield Warned(path, f"Manifest invalid ({error})")
            return
        if manifest.provenance == "foreign":
            yield self._untrusted(path)
            return
        for artifact in manifest.strategies:
            if artifact.expose:
                item = self._strategy(artifact.path, origin, within)
                if isinstance(item, Found):
                    label = f"{manifest.name} > {item.name}"
                    item = item._replace(label=label, manifest=path)
                yield item

    def _strategy(self, path: Path, origin: str, within: Path | None) -> Found | Warned:
        try:
            source = read_source(path, files=self._trusting, within=within)
        except StrategyFileError as error:
            return Warned(path, f"Parse error: {error}")
        value, issues = source.value, STRATEGY.check(source.value)
        if issues:
            problem = f"{dotted(issues[0].path)}: {issues[0].problem}"
            return Warned(path, f"Schema invalid ({problem})")
        if source.provenance == "foreign":
            return self._untrusted(path)
        return Found(value["name"], value["name"], value.get("description"), path, origin)

    def _untrusted(self, path: Path) -> Warned:
        error = self._trusting.needs_trust(path)
        return Warned(path, f"Not trusted ({error})", error.path)


def _folders(folder: Path) -> list[Path]:
    return [each for each in _listed(folder) if each.is_dir()]


def _listed(folder: Path) -> list[Path]:
    """What is in a folder, sorted; of a folder that is fuller than any a person fills, a part."""
    return sorted(islice(folder.iterdir(), MAX_FILES)) if folder.is_dir() else []


def find_by_name(found: Sequence[Found], name: str) -> Found | None:
    """The strategy a person means by its name, its label or the name of its file.

    A workspace never replaces one of the owner's or one that ships with stringd.
    """
    called = [each for each in found if is_called(each, name)]
    return min(called, key=_from_workspace, default=None)


def _from_workspace(found: Found) -> bool:
    return found.origin.startswith("cwd")


def find(reference: str, cwd: Path, data_dir: Path, project: Path | None = None) -> Path:
    """The file a caller means: a path, or `@scope/package/strategies/<id>`.

    `project` is the manifest of the project that is worked in. Raises `StrategyFileError`.
    """
    if not reference.startswith("@"):
        return cwd / reference
    name, _, artifact_id = reference.partition("/strategies/")
    path = find_project(reference, data_dir, project)
    artifacts = read_manifest(path).strategies if path else ()
    match = next((each.path for each in artifacts if each.id == artifact_id), None)
    if match is None:
        known = ", ".join(f"{name}/strategies/{each.id}" for each in artifacts)
        hint = f". There are: {known}" if known else ""
        raise StrategyFileError(f"Strategy file not found: {reference}{hint}")
    return match


def find_project(reference: str, data_dir: Path, project: Path | None = None) -> Path | None:
    """The manifest of `@scope/package/…`: the project worked in, else an installed package.

    Raises `StrategyFileError`.
    """
    name, _, artifact_id = reference.partition("/strategies/")
    scope, _, package = name.partition("/")
    # A package is a plain name; an absolute one would take the place of the folder before it.
    if not scope.startswith("@") or not artifact_id:
        return None
    if not package or "/" in package or ".." in (scope, package):
        return None
    if project is not None and read_manifest(project).name == name:
        return project
    folder = data_dir / "packages" / scope / package
    return next((folder / each for each in MANIFEST_NAMES if (folder / each).is_file()), None)
