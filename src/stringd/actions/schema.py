"""What an action takes, as callers read it. Method, address and template are never shown."""

from collections.abc import Iterable

from stringd.documents import Action, Field

NO_FLAGS = "   (no flags)"


def listing(actions: Iterable[Action], prefix: str = "/act.") -> str:
    """Every action of a page with its flags."""
    return "\n\n".join(f"{prefix}{action.id}\n{schema(action)}" for action in actions)


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
