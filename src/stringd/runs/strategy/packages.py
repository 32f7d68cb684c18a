"""Installed packages of strategies: put into place whole or not at all, listed, removed.

A package is a project with a manifest in `<data dir>/packages/@scope/name`. What was installed from
where is kept in `<data dir>/hub/installed-packages.json`.
"""

import hashlib
import secrets
import shutil
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Final, NamedTuple

import msgspec

from stringd.runs.errors import PackageError, StrategyFileError
from stringd.runs.strategy.project import (
    MANIFEST_NAMES,
    ProjectManifest,
    check_agent_files,
    check_permissions,
    read_manifest,
)
from stringd.runs.strategy.schema import STRATEGY
from stringd.runs.strategy.source import read_source
from stringd.system.files import held, make_private_directory, write_atomically
from stringd.wire.runs.catalog import InstalledHubPackage

_STAGING: Final = "staging"


class PackageContent(NamedTuple):
    """What a source holds. `commit` names exactly this content, `source` gets it again."""

    files: Mapping[str, bytes]
    source: str
    commit: str

    @classmethod
    def of(cls, files: Mapping[str, bytes], source: str) -> "PackageContent":
        """Content without a commit of its own, named by what it is."""
        digest = hashlib.sha256()
        for name in sorted(files):
            digest.update(f"{len(name.encode())} {len(files[name])} {name}\n".encode())
            digest.update(files[name])
        return cls(files, source, f"sha256:{digest.hexdigest()}")


class _State(msgspec.Struct):
    packages: list[InstalledHubPackage] = msgspec.field(default_factory=list)


class StrategyPackages:
    """The packages of one data directory. Touches files, not the loop. Raises `PackageError`."""

    def __init__(self, data_dir: Path) -> None:
        self._packages = data_dir / "packages"
        self._hub = data_dir / "hub"
        self._state = self._hub / "installed-packages.json"

    def installed(self) -> list[InstalledHubPackage]:
        """What was installed and is still there, by name."""
        return [each for each in self._read() if Path(each.path).is_dir()]

    def find(self, name: str) -> InstalledHubPackage:
        """An installed package."""
        found = next((each for each in self.installed() if each.name == name), None)
        if found is None:
            raise PackageError(f"Package {name} is not installed")
        return found

    def install(
        self, content: PackageContent, *, allow_code: bool, update: str | None = None
    ) -> InstalledHubPackage:
        """Check content and put it into place; `update` names the package it is to replace."""
        with self._alone() as staging:
            _write(content.files, staging)
            manifest = _checked(staging)
            name = manifest.name
            taken = (self._packages / name).exists()
            if update is None and taken:
                raise PackageError(
                    f"Package {name} is already installed. For a newer one: "
                    f"stringd strategies update {name}"
                )
            if update not in (None, name):
                raise PackageError(f"{content.source} is now {name}, not {update}; remove that one")
            if manifest.modules and not allow_code:
                raise PackageError(
                    f"Package {name} contains executable code; pass allowCode: true to install it "
                    "(--allow-code). It would run with everything you may do: "
                    + ", ".join(sorted(str(p.relative_to(staging)) for p in manifest.modules))
                )
            package = InstalledHubPackage(
                name=name,
                version=manifest.version,
                commit=content.commit,
                path=str(self._packages / name),
                executable_code_approved=bool(manifest.modules),
                source=content.source,
            )
            self._put_into_place(staging, package)
            return package

    def remove(self, name: str) -> bool:
        """Delete a package; False when it was not installed."""
        known = {each.name: each for each in self._read()}
        if name not in known:
            return False
        with self._alone() as staging:
            place = self._place(name)
            if place.exists():
                place.rename(staging / "removed")
            self._write([each for each in self._read() if each.name != name])
        return True

    def check_approved(self, manifest: ProjectManifest) -> None:
        """Code of an installed package needs the owner's word. Raises `StrategyFileError`."""
        if not manifest.modules or not manifest.path.is_relative_to(self._packages):
            return
        try:
            installed = self._read()
        except PackageError as error:
            raise StrategyFileError(str(error)) from error
        found = next((each for each in installed if each.name == manifest.name), None)
        if found is not None and not found.executable_code_approved:
            raise StrategyFileError(
                f"Executable code is not approved for installed Hub package {manifest.name}"
            )

    def _place(self, name: str) -> Path:
        place = self._packages / name
        if place.parent.parent != self._packages or ".." in place.parts:
            raise PackageError(f"Hub package not found: {name}")
        return place

    @contextmanager
    def _alone(self) -> Iterator[Path]:
        """Changes come one after another; an empty folder to work in, gone afterwards."""
        try:
            make_private_directory(self._hub)
            with held(self._hub):
                # A daemon that was killed left what it worked on.
                shutil.rmtree(self._hub / _STAGING, ignore_errors=True)
                staging = self._hub / _STAGING / secrets.token_hex(8)
                make_private_directory(staging)
                try:
                    yield staging
                finally:
                    shutil.rmtree(self._hub / _STAGING, ignore_errors=True)
        except OSError as error:
            raise PackageError(f"Packages cannot be changed: {error}") from error

    def _put_into_place(self, staging: Path, package: InstalledHubPackage) -> None:
        place, before = Path(package.path), staging.with_name("before")
        make_private_directory(place.parent)
        if place.exists():
            place.rename(before)
        try:
            staging.rename(place)
            others = [each for each in self._read() if each.name != package.name]
            self._write([*others, package])
        except BaseException:
            shutil.rmtree(place, ignore_errors=True)
            if before.exists():
                before.rename(place)
            raise

    def _read(self) -> list[InstalledHubPackage]:
        try:
            return msgspec.json.decode(self._state.read_bytes(), type=_State).packages
        except FileNotFoundError:
            return []
        except (OSError, msgspec.MsgspecError, UnicodeDecodeError) as error:
            raise PackageError(f"{self._state} cannot be read: {error}") from error

    def _write(self, packages: list[InstalledHubPackage]) -> None:
        state = _State(sorted(packages, key=lambda each: each.name))
        write_atomically(self._state, msgspec.json.format(msgspec.json.encode(state)), 0o600)


def _write(files: Mapping[str, bytes], folder: Path) -> None:
    for name, data in files.items():
        target = folder / name
        target.parent.mkdir(parents=True, exist_ok=True)
        target.write_bytes(data)
        target.chmod(0o755 if data.startswith(b"#!") else 0o644)


def _checked(folder: Path) -> ProjectManifest:
    """The manifest of a package, everything it names checked. Raises `PackageError`."""
    path = next((folder / name for name in MANIFEST_NAMES if (folder / name).is_file()), None)
    if path is None:
        raise PackageError(_no_manifest(folder))
    try:
        manifest = read_manifest(path)
        if manifest.dependencies:
            raise StrategyFileError(
                f"{manifest.name} has dependencies; packages bring everything they need"
            )
        check_agent_files(manifest)
        check_permissions(manifest)
        for artifact in manifest.strategies:
            source = read_source(artifact.path)
            issues = STRATEGY.check(source.value)
            if issues:
                lines = "\n".join(f"  - {source.describe(issue)}" for issue in issues)
                raise StrategyFileError(f"Strategy validation failed:\n{lines}")
    except StrategyFileError as error:
        # Its author knows the files by their names in the package.
        plain = str(error).replace(f"{folder.resolve()}/", "").replace(f"{folder}/", "")
        raise PackageError(f"Not installed: {plain}") from error
    return manifest


def _no_manifest(folder: Path) -> str:
    told = f"Not a package of strategies: there is no {MANIFEST_NAMES[0]} in it"
    below = sorted(
        str(path.parent.relative_to(folder))
        for name in MANIFEST_NAMES
        for path in folder.glob(f"**/{name}")
    )
    return f"{told}. There is one in: {', '.join(below[:9])}" if below else told
