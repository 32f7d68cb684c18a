"""The setting by which an agent asks at the gate: put in, and taken out again. Pure but for files.

What the file was before is kept, byte for byte; taking the setting out puts that back if nobody
changed the file since, and else takes out our entry alone.
"""

import base64
import json
import os
from collections.abc import Mapping
from dataclasses import dataclass
from hashlib import sha256
from pathlib import Path
from typing import Any, Final

from stringd.gate.errors import RefusalError, os_text
from stringd.gate.hook import EVENT
from stringd.system.files import make_private_directory, write_atomically

# The gate waits a minute for a key, and other questions may come before.
TIMEOUT_SECONDS: Final = 600
AGENTS: Final = ("claude", "codex")


class HookError(RefusalError):
    """The setting cannot be changed; the text says what to do."""


@dataclass(frozen=True, slots=True)
class Change:
    """A file before and after; None where there is no file."""

    path: Path
    before: bytes | None
    after: bytes | None


def settings_file(agent: str, env: Mapping[str, str]) -> Path:
    """Where an agent reads its hooks."""
    home = Path(env.get("HOME") or os.path.expanduser("~"))  # noqa: PTH111
    if agent == "claude":
        return Path(env.get("CLAUDE_CONFIG_DIR") or home / ".claude", "settings.json")
    return Path(env.get("CODEX_HOME") or home / ".codex", "hooks.json")


def install(path: Path, command: str) -> Change:
    """The file with our entry in it, once. Raises `HookError`."""
    before = _read(path)
    settings = _parsed(path, before)
    groups = _groups(path, _without(path, settings, command))
    handler = {"type": "command", "command": command, "timeout": TIMEOUT_SECONDS}
    groups.append({"matcher": "*", "hooks": [handler]})
    return Change(path, before, _text(_with(settings, groups)))


def remove(path: Path, command: str, kept: bytes | None) -> Change:
    """The file without our entry: as it was before, if nothing else changed since.

    `kept` is what `record` made of the change that put it in.
    """
    now = _read(path)
    earlier = _recorded(kept)
    if earlier is not None and now is not None and sha256(now).hexdigest() == earlier[1]:
        return Change(path, now, earlier[0])
    if now is None:
        return Change(path, None, None)
    settings = _parsed(path, now)
    cleared = _without(path, settings, command)
    return Change(path, now, now if cleared == settings else _text(cleared))


def record(change: Change) -> bytes:
    """What must be kept to undo a change exactly."""
    before = None if change.before is None else base64.b64encode(change.before).decode("ascii")
    after = sha256(change.after or b"").hexdigest()
    return json.dumps({"before": before, "after": after}).encode("ascii")


def write(change: Change) -> None:
    """Put the file as the change says. Raises `HookError`."""
    try:
        if change.after is None:
            change.path.unlink(missing_ok=True)
            return
        make_private_directory(change.path.parent)
        mode = change.path.stat().st_mode & 0o777 if change.path.exists() else 0o600
        write_atomically(change.path, change.after, mode)
    except OSError as error:
        raise HookError(f"{change.path} cannot be written: {os_text(error)}") from None


def _read(path: Path) -> bytes | None:
    try:
        return path.read_bytes()
    except FileNotFoundError:
        return None
    except OSError as error:
        raise HookError(f"{path} cannot be read: {os_text(error)}") from None


def _parsed(path: Path, data: bytes | None) -> dict[str, Any]:
    try:
        settings = json.loads(data) if data and data.strip() else {}
    except (ValueError, RecursionError):
        raise HookError(f"{path} is not JSON: correct it first, nothing was changed") from None
    if not isinstance(settings, dict):
        raise HookError(f"{path} is not a JSON object: correct it first, nothing was changed")
    return settings


def _groups(path: Path, settings: Mapping[str, Any]) -> list[Any]:
    hooks = settings.get("hooks", {})
    groups = hooks.get(EVENT, []) if isinstance(hooks, dict) else None
    if not isinstance(groups, list):
        raise HookError(f"the hooks in {path} have another shape than expected")
    return list(groups)


def _with(settings: Mapping[str, Any], groups: list[Any]) -> dict[str, Any]:
    hooks = {name: value for name, value in settings.get("hooks", {}).items() if name != EVENT}
    hooks |= {EVENT: groups} if groups else {}
    rest = {name: value for name, value in settings.items() if name != "hooks"}
    return rest | ({"hooks": hooks} if hooks else {})


def _without(path: Path, settings: dict[str, Any], command: str) -> dict[str, Any]:
    """The settings without entries of ours, whatever place `stringd` was installed in."""
    groups = _groups(path, settings)
    others = [group for group in groups if not _is_ours(group, command)]
    return settings if others == groups else _with(settings, others)


def _is_ours(group: object, command: str) -> bool:
    if not isinstance(group, dict) or not isinstance(group.get("hooks"), list):
        return False
    ending = " ".join(command.split(" ")[-4:])
    return len(group["hooks"]) == 1 and all(
        isinstance(handler, dict) and str(handler.get("command", "")).endswith(f" {ending}")
        for handler in group["hooks"]
    )


def _text(settings: Mapping[str, Any]) -> bytes:
    return (json.dumps(settings, indent=2, ensure_ascii=False) + "\n").encode()


def _recorded(kept: bytes | None) -> tuple[bytes | None, str] | None:
    if kept is None:
        return None
    try:
        found = json.loads(kept)
        before = found["before"]
        return (None if before is None else base64.b64decode(before)), str(found["after"])
    except (ValueError, KeyError, TypeError):
        return None
