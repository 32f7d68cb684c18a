"""Installed apps and tools: `apps` and `tools` in the user's `config.json`."""

from pathlib import Path
from typing import Final, Literal

import msgspec

from stringd.runtime.errors import CommandError
from stringd.runtime.variables.json_file import changing, read_object

Kind = Literal["app", "tool"]
KINDS: Final[tuple[Kind, ...]] = ("app", "tool")
MAIN_FILE: Final = "string.md"
"""The document a package is opened with."""
ORIGIN_FILE: Final = ".origin.json"
"""In a package: where it came from."""


def installed(home: str, kind: Kind) -> dict[str, str]:
    """Name → address of every installed app or tool."""
    try:
        config = msgspec.json.decode(_path(home).read_bytes())
    except (OSError, msgspec.DecodeError, UnicodeDecodeError):
        return {}
    found = config.get(f"{kind}s") if isinstance(config, dict) else None
    if not isinstance(found, dict):
        return {}
    return {name: uri for name, uri in found.items() if isinstance(uri, str)}


def register(home: str, kind: Kind, name: str, uri: str) -> None:
    """Enter a package; one name means one package, whatever its kind. Raises `CommandError`."""
    with changing(_path(home)) as config:
        for each in ("app", "tool"):
            section = _section(config, each)
            section.pop(name, None)
            if each == kind:
                section[name] = uri
            if section or each == kind:
                config[f"{each}s"] = section


def unregister(home: str, name: str) -> tuple[Kind, str] | None:
    """Remove a package's entry; its kind and address, or None when there was none."""
    kinds: tuple[Kind, Kind] = ("app", "tool")
    with changing(_path(home)) as config:
        for kind in kinds:
            section = _section(config, kind)
            if name in section:
                uri = section.pop(name)
                config[f"{kind}s"] = section
                return kind, uri
    return None


def _section(config: dict[str, object], kind: str) -> dict[str, str]:
    held = config.get(f"{kind}s")
    if not isinstance(held, dict):
        return {}
    return {name: uri for name, uri in held.items() if isinstance(uri, str)}


def _path(home: str) -> Path:
    """What others keep in this file stays."""
    return Path(home) / "config.json"


def not_installed(home: str, kind: Kind, name: str) -> CommandError:
    """The refusal for a package nobody installed, with what there is; or what hides them all.

    Raises `CommandError` when the file that lists them is damaged.
    """
    read_object(_path(home))
    noun = kind.capitalize()
    known = ", ".join(sorted(installed(home, kind)))
    listing = (
        f"Installed {kind}s: {known}"
        if known
        else f"No {kind}s installed yet. Use /install <source> to add one."
    )
    return CommandError(
        "NOT_FOUND",
        f"{noun} '{name}' is not installed. Run /install <source> to install it.\n{listing}",
    )
