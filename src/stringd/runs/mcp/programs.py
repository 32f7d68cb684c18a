"""Which files of a workspace an MCP server would run, as far as its definition names them."""

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, Final

# What interpreters start of a folder or a module that they are given.
_ENTRIES: Final = (
    *("__main__.py", "__init__.py", "main.py", "server.py"),
    *("package.json", "index.js", "index.mjs", "index.cjs", "index.ts"),
)
_MODULE_FLAGS: Final = ("-m", "--module")


def programs_of(raw: Mapping[str, Any], file: Path, cwd: Path) -> list[Path]:
    """The files that the definition `raw`, written in `file`, names for a server in `cwd`.

    Also behind `--flag=`, in variables, as a module and as the start of a folder. What these files
    load in turn is not known here.
    """
    if raw.get("transport") != "stdio":
        return []
    place = raw.get("cwd")
    bases = [cwd, *([file.parent / place] if isinstance(place, str) else [])]
    inside = cwd.resolve()
    found = {
        path.resolve()
        for word in _words(raw)
        for base in bases
        if word and "\0" not in word
        for path in _started(base / word, inside)
    }
    return sorted(path for path in found if inside in path.parents)


def _words(raw: Mapping[str, Any]) -> Iterator[str]:
    words = [word for word in (raw.get("command"), *raw.get("args", ())) if isinstance(word, str)]
    for before, word in zip(["", *words], words, strict=False):
        yield from (word, word.partition("=")[2])
        if before in _MODULE_FLAGS:
            module = word.replace(".", "/")
            yield from (module, f"{module}.py")
    for value in raw.get("env", {}).values():
        if isinstance(value, str):
            # Options and search paths name what is loaded before the program itself.
            parts = value.replace(":", " ").replace("=", " ").split()
            yield from (value, *parts)


def _started(path: Path, workspace: Path) -> Iterator[Path]:
    try:
        if path.is_file():
            yield path
        elif path.is_dir() and path.resolve() != workspace:
            yield from (entry for name in _ENTRIES if (entry := path / name).is_file())
    except OSError:  # a word may be longer than any name
        return
