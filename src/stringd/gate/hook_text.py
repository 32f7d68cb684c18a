"""What an agent's own permission prompt would show, as text for a question at the gate. Pure."""

import json
from collections.abc import Callable, Iterator, Mapping
from difflib import unified_diff
from typing import Final

from stringd.gate.characters import is_clean
from stringd.gate.display import render

_Input = Mapping[str, object]

# Their prompts are not about a permission: they ask the person something only they can show.
OWN_PROMPTS: Final = frozenset({"AskUserQuestion", "ExitPlanMode", "EnterPlanMode"})


def tool_text(tool: str, given: _Input) -> str:
    """Every word of what a tool is asked to do; what is not known by name is shown as JSON."""
    write = _TEXTS.get(tool)
    lines = list(write(given)) if write is not None and _fits(tool, given) else [_json(given)]
    return visible("\n".join(lines))


def visible(text: str) -> str:
    """Text the gate takes: characters that cannot be seen are written by their number."""
    text = text.replace("\r\n", "\n")
    return "".join(each if each == "\n" or is_clean(each) else render(each) for each in text)


def _fits(tool: str, given: _Input) -> bool:
    """Whether the input has nothing beyond what the text of this tool shows, each in its place."""
    one_line = (given.get(name) for name in ("file_path", "url"))
    return (
        set(given) <= _SHOWN[tool]
        and all(isinstance(given.get(name), str) for name in _NEEDED[tool])
        # The rest of a name would look like the lines below it.
        and not any("\n" in str(each) for each in one_line)
    )


def _command(given: _Input) -> Iterator[str]:
    yield str(given["command"])
    if given.get("run_in_background"):
        yield "(in the background)"
    if given.get("dangerouslyDisableSandbox"):
        yield "(WITHOUT THE AGENT'S SANDBOX)"
    if (timeout := given.get("timeout")) is not None:
        yield f"(for up to {timeout} ms)"
    if description := given.get("description"):
        yield f"# {description}"


def _edit(given: _Input) -> Iterator[str]:
    yield str(given["file_path"])
    if given.get("replace_all"):
        yield "(everywhere in the file)"
    old, new = str(given["old_string"]).split("\n"), str(given["new_string"]).split("\n")
    yield from list(unified_diff(old, new, lineterm="", n=3))[2:]


def _write(given: _Input) -> Iterator[str]:
    yield str(given["file_path"])
    yield from (f"+{line}" for line in str(given["content"]).split("\n"))


def _fetch(given: _Input) -> Iterator[str]:
    yield str(given["url"])
    if prompt := given.get("prompt"):
        yield f"# {prompt}"


def _json(given: _Input) -> str:
    return json.dumps(given, indent=2, ensure_ascii=False)


_TEXTS: Final[Mapping[str, Callable[[_Input], Iterator[str]]]] = {
    "Bash": _command,
    "Edit": _edit,
    "Write": _write,
    "WebFetch": _fetch,
}
_NEEDED: Final[Mapping[str, frozenset[str]]] = {
    "Bash": frozenset({"command"}),
    "Edit": frozenset({"file_path", "old_string", "new_string"}),
    "Write": frozenset({"file_path", "content"}),
    "WebFetch": frozenset({"url"}),
}
_SHOWN: Final[Mapping[str, frozenset[str]]] = {
    "Bash": frozenset(
        {"command", "description", "timeout", "run_in_background", "dangerouslyDisableSandbox"}
    ),
    "Edit": _NEEDED["Edit"] | {"replace_all"},
    "Write": _NEEDED["Write"],
    "WebFetch": frozenset({"url", "prompt"}),
}
