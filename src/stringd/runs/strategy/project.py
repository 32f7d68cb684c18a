"""Project manifests: `stringd-project.json`, or the reference's `comma-project.json`."""

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from types import ModuleType
from typing import Any, Final, NamedTuple

from stringd.formats.shapes import (
    Anything,
    Either,
    Entries,
    Fields,
    Flag,
    Items,
    Matching,
    TextShape,
)
from stringd.runs.errors import StrategyFileError
from stringd.runs.strategy.files import Provenance, StrategyFiles
from stringd.runs.strategy.schema import AGENT
from stringd.runs.strategy.source import MAX_BYTES, read_source

MANIFEST_NAMES: Final = ("stringd-project.json", "comma-project.json")
_CODE: Final = ("tools", "flows")
_FILE_TOOLS: Final = frozenset(
    (
        "read_file",
        "list_directory",
        "search_files",
        "glob",
        "create_file",
        "write_file",
        "edit_file",
        "apply_patch",
        "delete_file",
        "restore_file",
        "move_file",
    )
)
_NEEDS: Final = {
    "filesystem": _FILE_TOOLS,
    "shell": frozenset({"run_command"}),
    "network": frozenset({"webfetch"}),
}


def _form(pattern: str, problem: str) -> Matching:
    compiled = re.compile(pattern)
    return Matching(lambda text: compiled.fullmatch(text) is not None, problem)


_KEBAB = r"[a-z0-9]+(?:-[a-z0-9]+)*"
_text = TextShape()
_artifacts = Entries(
    Fields({"path": TextShape(filled=True)}, {"expose": Flag(), "description": _text}),
    _form(_KEBAB, "Ids are lower-case words joined by -"),
)
_MANIFEST = Fields(
    {
        "name": _form(rf"@{_KEBAB}/{_KEBAB}", "Expected @scope/project in lower case"),
        "version": _form(
            r"\d+\.\d+\.\d+(?:-[0-9A-Za-z.-]+)?(?:\+[0-9A-Za-z.-]+)?",
            "Expected a version like 1.2.3",
        ),
    },
    {
        "description": _text,
        "license": _text,
        "keywords": Items(_text),
        "author": Anything(),
        "contributors": Items(Anything()),
        "links": Entries(_text),
        "strategies": _artifacts,
        "agents": _artifacts,
        "flows": _artifacts,
        "tools": _artifacts,
        "entry": TextShape(filled=True),
        "dependencies": Entries(_text),
        "environment": Entries(
            Fields(
                {},
                {
                    "description": _text,
                    "required": Flag(),
                    "default": Either((_text, Anything())),
                    "example": _text,
                },
            ),
            _form(r"[A-Z][A-Z0-9_]*", "Names are UPPER_SNAKE"),
        ),
        "permissions": Fields(
            {},
            {name: Flag() for name in ("network", "filesystem", "shell", "executesCode")},
        ),
    },
)


class Artifact(NamedTuple):
    id: str
    path: Path
    expose: bool
    description: str | None


@dataclass(frozen=True)
class ProjectManifest:
    """A checked manifest: every path exists and is inside the project."""

    path: Path
    name: str
    version: str
    strategies: tuple[Artifact, ...]
    agents: tuple[Artifact, ...]
    modules: tuple[Path, ...]
    permissions: Mapping[str, bool]
    dependencies: Mapping[str, str]
    provenance: Provenance = "foreign"


def read_manifest(
    path: Path, files: StrategyFiles | None = None, within: Path | None = None
) -> ProjectManifest:
    """Read and check a manifest. Raises `StrategyFileError`."""
    source = read_source(path, "Manifest", files, within)
    issues = _MANIFEST.check(source.value)
    if issues:
        lines = "\n".join(f"  - {source.describe(issue)}" for issue in issues)
        raise StrategyFileError(f"Manifest validation failed:\n{lines}")
    raw: Mapping[str, Any] = source.value
    manifest = ProjectManifest(
        path=path,
        name=raw["name"],
        version=raw["version"],
        strategies=tuple(_artifacts_of(raw, "strategies", path)),
        agents=tuple(_artifacts_of(raw, "agents", path)),
        modules=tuple(_modules(raw, path)),
        permissions=raw.get("permissions", {}),
        dependencies=raw.get("dependencies", {}),
        provenance=source.provenance,
    )
    if manifest.modules and not manifest.permissions.get("executesCode"):
        raise StrategyFileError(
            f"{manifest.name} has an entry, tools or flows, which are code: "
            f"set permissions.executesCode to true ({path})"
        )
    return manifest


def _artifacts_of(raw: Mapping[str, Any], kind: str, manifest: Path) -> Iterator[Artifact]:
    for id_, entry in raw.get(kind, {}).items():
        path = _inside(manifest, entry["path"])
        yield Artifact(id_, path, entry.get("expose", False), entry.get("description"))


def _modules(raw: Mapping[str, Any], manifest: Path) -> Iterator[Path]:
    if "entry" in raw:
        yield _module(manifest, raw["entry"])
    for kind in _CODE:
        for entry in raw.get(kind, {}).values():
            yield _module(manifest, entry["path"])


def _module(manifest: Path, relative: str) -> Path:
    path = _inside(manifest, relative)
    if path.suffix != ".py":
        raise StrategyFileError(
            f"{relative} is not a Python module; this daemon runs Python code only ({manifest})"
        )
    return path


def _inside(manifest: Path, relative: str) -> Path:
    """The one place where a manifest's path becomes a file."""
    root = manifest.parent.resolve()
    path = (root / relative).resolve()
    if Path(relative).is_absolute() or not path.is_relative_to(root):
        raise StrategyFileError(f"{relative} leaves the project ({manifest})")
    if not path.is_file():
        raise StrategyFileError(f"{relative} does not exist in the project ({manifest})")
    return path


def check_agent_files(manifest: ProjectManifest) -> None:
    """Agent files are data: check them, never run them."""
    for artifact in manifest.agents:
        source = read_source(artifact.path, "Agent")
        issues = AGENT.check(source.value)
        if issues:
            lines = "\n".join(f"  - {source.describe(issue)}" for issue in issues)
            raise StrategyFileError(f"Agent validation failed:\n{lines}")


def check_permissions(manifest: ProjectManifest) -> None:
    """Tools the strategies name must be covered by the permissions the manifest asks for."""
    used: set[str] = set()
    for artifact in manifest.strategies:
        raw = read_source(artifact.path).value
        agents = raw.get("agents", {}) if isinstance(raw, dict) else {}
        for agent in agents.values():
            used |= set(agent.get("tools", ()))
    for permission, tools in _NEEDS.items():
        if used & tools and not manifest.permissions.get(permission):
            named = ", ".join(sorted(used & tools))
            raise StrategyFileError(
                f"{manifest.name} uses {named}: set permissions.{permission} to true "
                f"({manifest.path})"
            )


def run_modules(manifest: ProjectManifest, registry: Any, files: StrategyFiles) -> None:
    """Execute the project's code; each module offers `register(registry)`.

    Only code the owner put there or trusted: what was read and judged is what is executed.
    Raises `StrategyFileError`.
    """
    if manifest.modules and manifest.provenance == "foreign":
        raise files.needs_trust(manifest.path)
    # All are judged before the first of them runs.
    sources = [(path, _code(path, files)) for path in manifest.modules]
    for number, (path, source) in enumerate(sources):
        name = f"stringd_project_{abs(hash(manifest.path))}_{number}"
        module = ModuleType(name)
        module.__file__ = str(path)
        try:
            exec(compile(source, str(path), "exec"), module.__dict__)  # noqa: S102
            if hasattr(module, "register"):
                module.register(registry)
        except Exception as error:  # a project's code may raise anything
            raise StrategyFileError(f"{path} failed to load: {error}") from error


def _code(path: Path, files: StrategyFiles) -> bytes:
    try:
        read = files.read(path, MAX_BYTES)
    except OSError as error:
        raise StrategyFileError(f"Cannot load {path}: {error}") from None
    if read.provenance == "foreign":
        raise files.needs_trust(path)
    return read.data
