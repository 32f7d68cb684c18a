"""The actions of a mounted server in a line each: what one needs and what it is for.

Servers describe every argument at length; a reader who chooses needs the required ones.
"""

import re
from typing import Final

from stringd.documents import Action, Document, Field

_LISTED: Final = re.compile(
    r"^- `/act\.(?P<id>[A-Za-z0-9_-]+)`(?: — (?P<about>.*))?$", re.MULTILINE
)
_SECTION: Final = re.compile(r"## Tools\n\n(?:- `/act\.[^\n]*(?:\n|\Z))+\n*")
_ABOUT: Final = 72
_CHOICES: Final = 6


def is_mounted(document: Document) -> bool:
    """Whether a page is the one that `document_of` writes for a server."""
    actions = document.actions.values()
    return bool(actions) and all(action.method == "MCP" for action in actions)


def described(document: Document) -> dict[str, str]:
    """Action id → what the page's list of tools says about it."""
    return {found["id"]: found["about"] or "" for found in _LISTED.finditer(document.source)}


def mounted_lines(document: Document, prefix: str) -> list[str]:
    """Every action of a mounted server with its required arguments and what it does."""
    about = described(document)
    return [
        mounted_line(action, prefix, about.get(action.id, ""))
        for action in document.actions.values()
    ]


def mounted_line(action: Action, prefix: str, about: str) -> str:
    """One action; `[…]` stands for arguments that may be left out."""
    needed = [_slot(field) for field in action.fields if field.required]
    optional = ["[…]"] if len(needed) < len(action.fields) else []
    line = " ".join([f"{prefix}{action.id}", *needed, *optional])
    return f"{line}  {first_words(about, _ABOUT)}" if about else line


def left_out(document: Document, name: str) -> str:
    """What the lines leave out and how to see it; empty when they are complete."""
    hidden = any(not field.required for each in document.actions.values() for field in each.fields)
    return f"[…] are optional arguments: app:{name}#ACTION shows one action whole" if hidden else ""


def without_list(text: str) -> str:
    """A rendered page of a server without its list of tools, which the lines repeat."""
    return _SECTION.sub("", text, count=1)


def first_words(text: str, limit: int) -> str:
    """The first sentence of a text, cut after a word where it is longer than `limit`."""
    sentence = re.split(r"(?<=[.!?])\s", " ".join(text.split()), maxsplit=1)[0]
    if len(sentence) <= limit:
        return sentence.rstrip(".")
    return f"{sentence[:limit].rsplit(' ', 1)[0]}…"


def _slot(field: Field) -> str:
    if 0 < len(field.choices) <= _CHOICES:
        return f"<{field.name} {'|'.join(field.choices)}>"
    known = field.type in ("string", "text", "any")
    return f"<{field.name}>" if known else f"<{field.name} {field.type}>"
