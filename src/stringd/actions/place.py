"""Where an action is called from: all it may know of the topic, handed in by its caller."""

from collections.abc import Iterable, Mapping, MutableMapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Protocol, Self

import msgspec

from stringd.actions.provenance import HomeFile, Provenance, capabilities, name_refusal

Value = str | tuple[str, ...]
"""What a field holds: text, or the tuple a value shortcut stands for."""


class ListValue(tuple[str, ...]):  # noqa: SLOT001 - what has no fixed size has no slots
    """The items of a field of type `list` or `lines`."""

    separator: str
    """What is between them where they are one text."""
    json: str
    """They as JSON, as the caller wrote it where that was JSON."""

    def __new__(cls, items: Iterable[str], separator: str = ",", json: str | None = None) -> Self:
        made = super().__new__(cls, items)
        made.separator = separator
        made.json = json if json is not None else msgspec.json.encode(list(made)).decode()
        return made


def text_of(value: Value, index: int | None = None) -> str:
    """A value as text; an index picks from a tuple, out of range is empty."""
    if isinstance(value, str):
        return value if index is None else (value if index == 0 else "")
    if index is None:
        return (value.separator if isinstance(value, ListValue) else ",").join(value)
    return value[index] if index < len(value) else ""


@dataclass(frozen=True)
class Names:
    """What names stand for in an author's text."""

    session: MutableMapping[str, str] = field(default_factory=dict)
    """`{name}`: the topic's variables; templates add to them."""
    context: Mapping[str, str] = field(default_factory=dict)
    """`$NAME`s that tell where the caller is, such as `$CWD`."""
    stored: Mapping[str, str] = field(default_factory=dict)
    """`$NAME`s the user stored, as far as the document may use them."""
    declared: frozenset[str] = frozenset()
    """Stored names the document says it uses; its commands may read them."""
    withheld: Mapping[str, str] = field(default_factory=dict)
    """Shared `$NAME`s that an app does not get, as it does not declare them."""
    required: tuple[str, ...] = ()
    """Names without which its commands are not run."""

    def variable(self, name: str) -> str | None:
        """What `$NAME` stands for in an author's text; None leaves it literal."""
        known = self.context.get(name)
        return self.stored.get(name) if known is None else known


class ActionTopic(Protocol):
    """What an action may touch of its topic. Methods that touch files raise `ActionError`."""

    @property
    def in_app(self) -> bool:
        """Whether it is the topic of an app."""

    @property
    def value_shortcuts(self) -> MutableMapping[str, Value]:
        """What answers left under `@name`; templates replace it."""

    def shortcut(self, name: str) -> Value | None:
        """What `@name` stands for; None when it is unknown."""

    def shortcut_names(self) -> list[str]:
        """Every name `shortcut` knows."""

    def read_file(self, path: str, limit: int) -> bytes:
        """The bytes of a file the caller named, at most so many."""

    async def write_file(self, path: str, data: bytes) -> str:
        """Write a file a template named, whole or not at all; where it is now.

        What it raises beside `ActionError` ends the action: somebody said no.
        """


class NoTopic:
    """A topic that holds nothing, for what is checked without one."""

    in_app = False

    def __init__(self) -> None:
        self.value_shortcuts: MutableMapping[str, Value] = {}

    def shortcut(self, name: str) -> Value | None:
        return self.value_shortcuts.get(name)

    def shortcut_names(self) -> list[str]:
        return list(self.value_shortcuts)

    def read_file(self, path: str, limit: int) -> bytes:  # noqa: ARG002
        raise FileNotFoundError(path)

    async def write_file(self, path: str, data: bytes) -> str:  # noqa: ARG002
        raise PermissionError(path)


@dataclass(frozen=True)
class ActionContext:
    """The call of an action, as its composers see it."""

    label: str
    """How the caller names the action: `/act.find`, `/tool:notes.add`."""
    uri: str
    """Address of the document that declares the action."""
    directory: Path
    """Where its commands run."""
    provenance: Provenance = HomeFile()  # noqa: RUF009 - a frozen value
    names: Names = field(default_factory=Names)
    topic: ActionTopic = field(default_factory=NoTopic)
    caller: Path | None = None
    """The directory of the program that calls, where it is known."""


def set_hint(place: ActionContext, names: list[str]) -> str:
    """How to provide missing persistent variables."""
    if capabilities(place.provenance).names == "none":
        return name_refusal(place.provenance)
    lines: list[str] = []
    if undeclared := [name for name in names if name in place.names.withheld]:
        listed = ", ".join(undeclared)
        lines.append(
            f"You have stored ${listed.replace(', ', ', $')} for all, and an app gets of those "
            f"only what it declares: its author adds requires: [{listed}] to the frontmatter."
        )
    if place.topic.in_app:
        lines += [f"Set {'it' if len(names) == 1 else 'them'} from this app session:"]
        lines += [f'  /set ${name} = "..."' for name in names]
    else:
        lines += ["Persistent env vars are app-scoped. Open an app session first:"]
        lines += [f"  string app:<name> '/set ${name} = \"...\"'" for name in names]
    return "\n".join(lines)
