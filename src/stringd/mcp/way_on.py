"""One line below a failure that says what a model can do next.

The protocols fix the failures themselves, so that line is for models alone.
"""

import re
from difflib import get_close_matches
from typing import Final

import msgspec

from stringd.mcp.catalog import NAMES
from stringd.wire.result import Result

_TOPICS: Final = (
    "A topic is file:NAME (documents), app:NAME (an installed app), web:NAME (web pages) or "
    "bash:NAME (a shell)."
)
_FILES: Final = (
    "/ls lists the files where this topic is, /ls ~ the String home; /find <text> --in <folder> "
    "searches."
)
_SHELL_LINE: Final = "A shell line goes to a bash topic: cmd 'bash:dev make test'."
_KNOWN: Final = (
    "act", "append", "apps", "back", "close", "edit", "events", "exec", "find", "help", "info",
    "install", "ls", "nav", "open", "outline", "refresh", "replace", "session", "set", "source",
    "topics", "undo", "uninstall", "update", "verify", "write",
)  # fmt: skip
_MEANT: Final = {
    **dict.fromkeys(("cat", "get", "goto", "load", "read", "show", "view"), "open"),
    **dict.fromkeys(("grep", "locate", "lookup", "query", "search"), "find"),
    **dict.fromkeys(("dir", "files", "list"), "ls"),
    **dict.fromkeys(("create", "new", "put", "save", "touch"), "write"),
    **dict.fromkeys(("change", "modify", "patch", "sed"), "edit"),
    **dict.fromkeys(("action", "actions", "call", "tools"), "act"),
    **dict.fromkeys(("env", "export", "vars"), "set"),
    **dict.fromkeys(("headings", "toc"), "outline"),
}
_RUNS: Final = frozenset(("bash", "cmd", "run", "sh", "shell", "terminal"))
_UNKNOWN: Final = "Unknown command: /"


_AFTER: Final = {
    "Invalid topic": _TOPICS,
    "File not found": _FILES,
    "Old text not found": "/edit <path> shows the text as it is, with line numbers.",
    "No document open": "/open <path> opens one; /edit <path> shows the source of a file.",
    "Shortcut not found": "/nav page lists the shortcuts of this page, /nav its menus.",
}
"""By how the failure begins."""
_SHELL: Final = (
    "What is sent to a bash topic is typed into its shell. Commands about the shell begin with "
    "//, and /commands are for topics of other kinds, such as file:main."
)
_COMMAND: Final = re.compile(r"/(?:help|open|info|ls|act|exec|find|outline|edit|write|set)\b")


def after_command(topic: str, command: str, result: Result) -> str:
    """What follows the reply of a command; empty where its own words are enough."""
    if topic.startswith("bash:"):
        text = f"{result.message}\n{result.content}"
        lost = _COMMAND.match(command) and "No such file or directory" in text
        return _SHELL if lost else ""
    if result.ok:
        return ""
    known = next((way for begin, way in _AFTER.items() if result.message.startswith(begin)), "")
    if not known and result.code == "COMMAND_UNSUPPORTED":
        return _after_unsupported(result.message)
    return known


def _after_unsupported(message: str) -> str:
    every = "/help lists every command."
    if not message.startswith(_UNKNOWN):
        return f"{every} {_SHELL_LINE}" if message.startswith("Commands must") else every
    name = message.removeprefix(_UNKNOWN).partition("\n")[0].lower()[:40]
    if name in _RUNS:
        return f"{every} {_SHELL_LINE}"
    near = get_close_matches(name, (*_KNOWN, *_MEANT), 1, 0.7)
    if not near:
        return every
    return f"Did you mean /{_MEANT.get(near[0], near[0])}? {every}"


def after_run_failure(message: str) -> str:
    """A refusal about a run, with the way to find the one that was meant."""
    if "Run not found: " in message or message.endswith(": not running"):
        return f"{message}\nrun_status without run_id lists the runs."
    return message


def wrong_arguments(tool: str, problem: str, kind: type[msgspec.Struct] | None) -> str:
    """What was wrong with a call, and all that the tool takes."""
    if kind is None:
        return f"Unknown tool: {tool}. There are {', '.join(NAMES)}."
    fields = msgspec.structs.fields(kind)
    takes = ", ".join(f"{each.encode_name}{'' if each.required else '?'}" for each in fields)
    return f"Invalid arguments: {problem}\n{tool} takes {takes} (? is optional)."
