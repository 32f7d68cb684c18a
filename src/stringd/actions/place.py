"""Where an action is called from: all it may know of the topic, handed in by its caller."""

from collections.abc import Callable, Mapping, MutableMapping
from dataclasses import dataclass, field
from pathlib import Path

Value = str | tuple[str, ...]
"""What a field holds: text, or the tuple a value shortcut stands for."""


def text_of(value: Value, index: int | None = None) -> str:
    """A value as text; an index picks from a tuple, out of range is empty."""
    if isinstance(value, str):
        return value if index is None else (value if index == 0 else "")
    if index is None:
        return ",".join(value)
    return value[index] if index < len(value) else ""


@dataclass(frozen=True)
class ActionContext:
    """The topic as an action sees it. Callbacks that touch files raise `ActionError`."""

    label: str
    """How the caller names the action: `/act.find`, `/tool:notes.add`."""
    uri: str
    """Address of the document that declares the action."""
    directory: Path
    """Where its commands run."""
    variables: MutableMapping[str, str] = field(default_factory=dict)
    """The topic's session variables; templates add to them."""
    value_shortcuts: MutableMapping[str, Value] = field(default_factory=dict)
    """The topic's value shortcuts; templates replace them."""
    context: Mapping[str, str] = field(default_factory=dict)
    """Context variables such as `CWD`."""
    stored: Mapping[str, str] = field(default_factory=dict)
    """Persistent variables visible here."""
    declared: frozenset[str] = frozenset()
    """Persistent variables the document says it uses; its commands may read them."""
    in_app: bool = False
    shortcut: Callable[[str], Value | None] = lambda _name: None
    shortcut_names: Callable[[], list[str]] = list
    read_file: Callable[[str, int], bytes] = lambda _path, _limit: b""
    """The bytes of a file the caller named, at most so many."""
    write_file: Callable[[str, bytes], None] = lambda _path, _data: None

    def variable(self, name: str) -> str | None:
        """What `$NAME` stands for in an author's text; None leaves it literal."""
        known = self.context.get(name)
        return self.stored.get(name) if known is None else known


def set_hint(place: ActionContext, names: list[str]) -> str:
    """How to provide missing persistent variables."""
    if place.in_app:
        lines = [f"Set {'it' if len(names) == 1 else 'them'} from this app session:"]
        lines += [f'  /set ${name} = "..."' for name in names]
    else:
        lines = ["Persistent env vars are app-scoped. Open an app session first:"]
        lines += [f"  string app:<name> '/set ${name} = \"...\"'" for name in names]
    return "\n".join(lines)
