"""What a line at the prompt can continue with. No I/O: files come from whoever asks."""

import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any, Final, NamedTuple

from stringd.cli.quoting import quote

_LAST_WORD: Final = re.compile(r"""(?:"[^"]*|'[^']*|\S*)$""")
_COMMAND: Final = re.compile(r"(//?[^\s<\[]*)")
_TAKES_PATH: Final = (
    *("/open", "/info", "/edit", "/verify", "/source", "/replace", "/write", "/append"),
    *("/ls", "/outline", "/find", "/install"),
)


class Suggestion(NamedTuple):
    """`text` takes the place of the last `replaces` characters before the cursor."""

    text: str
    replaces: int
    about: str = ""


class FieldWords(NamedTuple):
    """An input of an action."""

    name: str
    about: str
    choices: tuple[str, ...]


class TopicWords(NamedTuple):
    """What can be named in a topic."""

    is_bash: bool = False
    directory: str = ""
    """Of a bash topic's shell, once it has one."""
    home: str = ""
    commands: tuple[tuple[str, str], ...] = ()
    actions: Mapping[str, tuple[FieldWords, ...]] = {}
    blocks: tuple[tuple[str, str], ...] = ()
    """Of the open document: ids and titles."""
    document: str = ""
    places: tuple[str, ...] = ()
    """Shortcuts with their `@`, and where the topic has been."""


Files = Callable[[str], Iterable[str]]
"""Paths that begin with what was typed; directories end with a slash."""


def topic_words(view: Mapping[str, Any]) -> TopicWords:
    """The words of a topic as `GET /topics/<user>/<topic>` shows it."""
    document = view.get("document") or {}
    shell = view.get("shell") or {}
    shown = str(document.get("shown", ""))
    shortcuts = [f"@{name}" for name in document.get("shortcuts", ())]
    before = [place["shown"] for place in view.get("history", ())]
    forms = ((_COMMAND.match(each["form"]), each["what"]) for each in view.get("commands", ()))
    named = {found[1]: what for found, what in reversed(list(forms)) if found}
    return TopicWords(
        is_bash=view.get("type") == "bash",
        directory=str(shell.get("directory", "")) if shell.get("alive") else "",
        home=str(view.get("home", "")),
        commands=tuple(
            (name, what) for name, what in sorted(named.items()) if name[-1] not in ".:"
        ),
        actions={each["id"]: _fields(each) for each in document.get("actions", ())},
        blocks=tuple((each["id"], each["title"]) for each in document.get("outline", ())),
        document=shown,
        places=tuple(dict.fromkeys([*shortcuts, *filter(None, [shown, *before])])),
    )


def _fields(action: Mapping[str, Any]) -> tuple[FieldWords, ...]:
    return tuple(
        FieldWords(field["name"], field.get("description", ""), tuple(field.get("choices", ())))
        for field in action.get("fields", ())
    )


def suggestions(line: str, words: TopicWords, files: Files) -> Iterator[Suggestion]:
    """What the line up to the cursor can continue with."""
    found = _LAST_WORD.search(line)
    typed = found[0] if found else ""
    before = line[: len(line) - len(typed)].strip()
    if not before and line.startswith("/"):
        yield from _commands(typed, words)
    elif words.is_bash:
        if not line.startswith("//"):
            yield from _paths(typed, files)
    else:
        yield from _arguments(before.split()[0] if before else "", before, typed, words, files)


def _commands(typed: str, words: TopicWords) -> Iterator[Suggestion]:
    own = [(f"/act.{name}", "action of this page") for name in words.actions]
    for name, about in [*words.commands, *own]:
        if name.startswith(typed) and name != typed:
            yield Suggestion(name, len(typed), about)


def _arguments(
    verb: str, before: str, typed: str, words: TopicWords, files: Files
) -> Iterator[Suggestion]:
    action = words.actions.get(verb.removeprefix("/act.").removeprefix("/"))
    if action is not None and verb not in _TAKES_PATH:
        yield from _flags(before.split()[-1], typed, action)
        return
    if verb not in _TAKES_PATH or typed.startswith("-"):
        return
    address, hash_sign, block = typed.partition("#")
    if hash_sign:
        if address in ("", words.document):
            for name, title in words.blocks:
                if name.startswith(block) and name != block:
                    yield Suggestion(name, len(block), title)
        return
    for place in words.places:
        if place.startswith(typed) and place != typed:
            yield Suggestion(place, len(typed))
    yield from _paths(typed, files)


def _flags(last: str, typed: str, fields: tuple[FieldWords, ...]) -> Iterator[Suggestion]:
    chosen = next((field for field in fields if last == f"--{field.name}"), None)
    if chosen is not None:
        for choice in chosen.choices:
            if choice.startswith(typed) and choice != typed:
                yield Suggestion(quote(choice), len(typed))
        return
    for field in fields:
        flag = f"--{field.name}"
        if flag.startswith(typed or "--") and flag != typed:
            yield Suggestion(flag, len(typed), field.about)


def _paths(typed: str, files: Files) -> Iterator[Suggestion]:
    for path in files(typed.lstrip("\"'")):
        yield Suggestion(quote(path), len(typed))
