"""Installed apps and tools: `apps` and `tools` in the user's `config.json`."""

from pathlib import Path
from typing import Literal

import msgspec

from stringd.runtime.errors import CommandError

Kind = Literal["app", "tool"]


def installed(home: str, kind: Kind) -> dict[str, str]:
    """Name → address of every installed app or tool."""
    try:
        config = msgspec.json.decode((Path(home) / "config.json").read_bytes())
    except (OSError, msgspec.DecodeError, UnicodeDecodeError):
        return {}
    found = config.get(f"{kind}s") if isinstance(config, dict) else None
    if not isinstance(found, dict):
        return {}
    return {name: uri for name, uri in found.items() if isinstance(uri, str)}


def not_installed(home: str, kind: Kind, name: str) -> CommandError:
    """The refusal for a package nobody installed, with what there is."""
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
