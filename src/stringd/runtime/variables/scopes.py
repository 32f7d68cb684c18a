"""Persistent `$VARIABLES`: where each topic keeps them, and how they are shown.

`app:a:c` stores in `<home>/apps/a/c/env.json`, `app:a` in `<home>/apps/a/env.json`, every other
topic under `env` in `<home>/config.json`. Reading goes from the narrowest scope to the widest.
"""

from contextlib import suppress
from pathlib import Path
from typing import NamedTuple

from stringd.runtime.errors import CommandError
from stringd.runtime.settings import APPS
from stringd.runtime.variables import vault
from stringd.runtime.variables.json_file import changing, read_object
from stringd.wire.topic import Topic


class Scope(NamedTuple):
    """One place that holds variables. The global one shares its file with other settings."""

    name: str
    path: Path
    is_global: bool


def scopes(home: str, topic: Topic) -> list[Scope]:
    """The scopes visible in a topic, narrowest first; `/set` writes to the first."""
    root = Path(home)
    found = [Scope("global", root / "config.json", True)]
    if topic.type == "app":
        app, _, config = topic.name.partition(":")
        found.insert(0, Scope(app, root / APPS / app / "env.json", False))
        if config:
            path = root / APPS / app / config / "env.json"
            found.insert(0, Scope(topic.name, path, False))
    return found


def visible(home: str, topic: Topic) -> dict[str, str]:
    """Every variable a topic can read."""
    merged: dict[str, str] = {}
    for scope in reversed(scopes(home, topic)):
        merged.update(_variables(scope, read_object(scope.path)))
    return merged


def shared(home: str) -> dict[str, str]:
    """The variables every topic of a user can read."""
    scope = Scope("global", Path(home) / "config.json", True)
    return _variables(scope, read_object(scope.path))


def own(home: str, topic: Topic) -> dict[str, str]:
    """The variables an app topic keeps for itself, without those every topic shares."""
    merged: dict[str, str] = {}
    for scope in reversed(scopes(home, topic)):
        if not scope.is_global:
            merged.update(_variables(scope, read_object(scope.path)))
    return merged


def store(home: str, topic: Topic, values: dict[str, str], *, use_keyring: bool = False) -> Scope:
    """Keep values in the topic's own scope, all in one write. Raises `CommandError`."""
    scope = scopes(home, topic)[0]
    kept: dict[str, object] = dict(values)
    if use_keyring:
        for name, value in values.items():
            vault.keep(scope.path, name, value)
            kept[name] = vault.MARK
    with changing(scope.path) as content:
        if scope.is_global:
            content["env"] = {**_held(scope, content), **kept}
        else:
            content.update(kept)
    return scope


def holds_variables(home: str, path: str) -> bool:
    """Whether a file under this home is one of those that keep variables, values and all."""
    if path == f"{home}/config.json":
        # A home may have a file of that name for purposes of its own.
        with suppress(CommandError):
            return bool(read_object(Path(path)).get("env"))
    return path.startswith(f"{home}/{APPS}/") and path.endswith("/env.json")


def _variables(scope: Scope, content: dict[str, object]) -> dict[str, str]:
    found: dict[str, str] = {}
    for name, value in _held(scope, content).items():
        known = vault.recall(scope.path, name) if value == vault.MARK else value
        if isinstance(known, str):
            found[name] = known
    return found


def _held(scope: Scope, content: dict[str, object]) -> dict[str, object]:
    held = content.get("env") if scope.is_global else content
    return held if isinstance(held, dict) else {}
