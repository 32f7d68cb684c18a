"""What an action takes, as callers read it. Method, address and template are never shown."""

from collections.abc import Iterable

from stringd.documents import Action, Field

_FILLERS = frozenset(("a", "an", "the", "name", "of"))
NO_FLAGS = "   (no flags)"


def listing(actions: Iterable[Action], prefix: str = "/act.") -> str:
    """Every action of a page with its flags."""
    return "\n\n".join(f"{prefix}{action.id}\n{schema(action)}" for action in actions)


def signatures(actions: Iterable[Action], prefix: str = "/act.") -> list[str]:
    """Every action in a line: `<required>` and `[optional=default]` in the order of their words.

    What a field means follows its name, the first time the name is there.
    """
    told: set[tuple[str, str]] = set()
    return [signature(action, prefix, told) for action in actions]


def signature(
    action: Action, prefix: str = "/act.", told: set[tuple[str, str]] | None = None
) -> str:
    """One action in a line; `told` are meanings that need not be repeated."""
    known = set() if told is None else told
    return " ".join([f"{prefix}{action.id}", *(_slot(field, known) for field in action.fields)])


def _slot(field: Field, told: set[tuple[str, str]]) -> str:
    meaning = "|".join(field.choices) or field.description.strip()
    if not meaning and field.type not in ("string", "text"):
        meaning = field.type
    known = (field.name, meaning)
    trivial = {*meaning.casefold().split()} - _FILLERS <= {field.name.casefold()}
    about = "" if trivial or known in told else f" {meaning}"
    told.add(known)
    if field.required and field.default is None:
        return f"<{field.name}{about}>"
    default = f"={field.default}{about and ';'}" if field.default else ""
    return f"[{field.name}{default}{about}]"


def schema(action: Action) -> str:
    """The flags of one action, one a line."""
    return "\n".join(_flag(field) for field in action.fields) or NO_FLAGS


def usage(action: Action) -> str:
    """The flags below `Usage:` of a refusal."""
    lines = [
        f"  --{field.name} <{field.type}>{' (required)' if field.required else ''}"
        for field in action.fields
    ]
    return "\n".join(["Usage:", *lines])


def _flag(field: Field) -> str:
    alias = f"-{field.alias}, " if field.alias else ""
    need = "required" if field.required else "optional"
    about = f" — {field.description}" if field.description else ""
    return f"   {alias}--{field.name} <{field.type}> ({need}){about}{_limits(field)}"


def _limits(field: Field) -> str:
    found = []
    if field.choices:
        found.append("|".join(field.choices))
    if field.minimum is not None:
        found.append(f"min:{field.minimum:g}")
    if field.maximum is not None:
        found.append(f"max:{field.maximum:g}")
    return f" [{', '.join(found)}]" if found else ""
