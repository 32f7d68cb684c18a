"""The commands no run executes: deleting everything, formatting, fork bombs, unseen downloads.

A guard rail against accidents, judged command by command: text that only mentions one of these is
no danger, and a program that does the same by other means is not recognised.
"""

import os
import re
from collections.abc import Iterator, Sequence
from fnmatch import fnmatchcase
from posixpath import normpath
from typing import Final, Literal, NamedTuple

from stringd.formats.shell.parse import Reading
from stringd.formats.shell.words import HOME, UNKNOWN, ShellStage, Word
from stringd.formats.shell.wrappers import SHELLS, shell_arguments, started

_DOWNLOADERS: Final = frozenset(("curl", "wget"))
_POWER: Final = frozenset(("shutdown", "reboot", "halt", "poweroff"))
_RUNLEVELS: Final = frozenset(("0", "6"))
_POWER_WORDS: Final = {"systemctl": _POWER, "init": _RUNLEVELS, "telinit": _RUNLEVELS}
_PRINTERS: Final = frozenset(("echo", "printf"))
_ONLY_PATTERN: Final = re.compile(r"[*?.\[\]!^]+")
# Words of `find` that leave nothing out.
_ALL: Final = ("-delete", "-depth", "-mindepth", "-maxdepth", "-xdev", "-mount", "-print", "-type")
_ALL_RUNS: Final = ("-exec", "-execdir", "-r", "-rf", "-f", "--")


class Danger(NamedTuple):
    """`deny` for what is dangerous, `ask` for what may be."""

    verdict: Literal["deny", "ask"]
    why: str


def home() -> str:
    """The folder that `HOME` stands for in a word."""
    return os.path.expanduser("~")  # noqa: PTH111  # Path raises where there is none


def dangers(reading: Reading) -> Iterator[Danger]:
    """Everything that speaks against running a line."""
    if reading.bomb:
        yield Danger("deny", "a function that starts itself without end")
    for stage in reading.stages:
        yield from _of(stage)
    for doubt in reading.doubts:
        yield Danger("ask", doubt)


def _of(stage: ShellStage) -> Iterator[Danger]:
    name = stage.name
    words = stage.words[1:]
    if name == "rm":
        yield from _removal(stage, words)
    elif name == "find":
        yield from _found_removal(stage, words)
    elif name == "mkfs" or name.startswith("mkfs."):
        yield Danger("deny", f"{stage.text} formats a disk")
    elif name == "dd":
        yield from _copy(stage, words)
    elif name in _POWER or _names(words) & _POWER_WORDS.get(name, frozenset()):
        yield Danger("deny", f"{stage.text} turns the machine off")
    elif name in SHELLS or name in ("eval", "source", "."):
        yield from _download(stage)
    elif name not in _PRINTERS:
        yield from _handed_on(stage)


def _handed_on(stage: ShellStage) -> Iterator[Danger]:
    """A program nobody knows here may start what it is given: strace rm -rf /"""
    for at, word in enumerate(stage.words[1:], 1):
        if word.text.rpartition("/")[2] == "rm":
            inner = stage.started(stage.words[at:])
            if any(each.verdict == "deny" for each in _removal(inner, inner.words[1:])):
                yield Danger("ask", f"{stage.text} may start {inner.text}")


def _names(words: Sequence[Word]) -> set[str]:
    return {word.text for word in words}


def _copy(stage: ShellStage, words: Sequence[Word]) -> Iterator[Danger]:
    if any(word.text.startswith("if=") for word in words):
        yield Danger("deny", f"{stage.text} copies a whole device")
    elif any(word.text.startswith(UNKNOWN) for word in words):
        yield Danger("ask", f"{stage.text} may copy a whole device")


def _download(stage: ShellStage) -> Iterator[Danger]:
    why = f"{stage.name} runs what {' or '.join(sorted(_DOWNLOADERS))} fetches, unseen"
    sources: list[Word] = [] if stage.given is None else [stage.given]
    if stage.name in SHELLS:
        script, operand = shell_arguments(stage.words[1:])
        sources += [word for word in (script, operand) if word is not None]
        reads_input = script is None and operand is None
        if reads_input and any(_downloads(each) for each in stage.piped):
            yield Danger("deny", why)
    else:
        sources += stage.words[1:]
    if any(_downloads(each) for word in sources for each in word.inside):
        yield Danger("deny", why)


def _downloads(stage: ShellStage) -> bool:
    return stage.name in _DOWNLOADERS or any(map(_downloads, started(stage).stages))


def _removal(stage: ShellStage, words: Sequence[Word]) -> Iterator[Danger]:
    recursive = [word for word in words if _is_recursive(word.text)]
    unclear = any(word.text.startswith(UNKNOWN) for word in words)
    if not recursive and not unclear:
        return
    reach = max((_reach(word, stage.folder) for word in _operands(words)), default=0)
    if reach == _EVERYTHING and recursive:
        yield Danger("deny", f"{stage.text} deletes everything")
    elif reach and (recursive or reach == _EVERYTHING):
        yield Danger("ask", f"{stage.text} may delete everything")


def _is_recursive(text: str) -> bool:
    if text.startswith("--"):
        return text[2:] != "" and "recursive".startswith(text[2:])
    return text.startswith("-") and bool(set("rR") & set(text))


def _operands(words: Sequence[Word]) -> list[Word]:
    return [word for word in words if not word.text.startswith("-")]


def _found_removal(stage: ShellStage, words: Sequence[Word]) -> Iterator[Danger]:
    starts = [word for word in words if not word.text.startswith(("-", "(", "!"))]
    deletes = "-delete" in _names(words) or any(
        inner.name == "rm" for inner in started(stage).stages
    )
    reach = max((_reach(word, stage.folder) for word in starts[:1]), default=0)
    if not deletes or reach != _EVERYTHING:
        return
    if any(name.startswith("-") and name not in (*_ALL, *_ALL_RUNS) for name in _names(words)):
        yield Danger("ask", f"{stage.text} may delete everything")
    else:
        yield Danger("deny", f"{stage.text} deletes everything")


_MAYBE: Final = 1
_EVERYTHING: Final = 2


def _reach(word: Word, folder: Word | None) -> int:
    """Whether a path takes in the root or the home folder: 0 for no."""
    text = word.text
    if not text.startswith(("/", UNKNOWN, HOME)) and folder is not None:
        text = f"{folder.text}/{text}"
    text = text.replace(HOME, home())
    if UNKNOWN in text:
        rest = text.replace(UNKNOWN, "").replace("/", "")
        return 0 if _ONLY_PATTERN.sub("", rest) else _MAYBE
    path = normpath(text)
    if not path.startswith("/"):
        climbs = path.startswith("..") and not _ONLY_PATTERN.sub("", path.replace("/", ""))
        return _MAYBE if climbs else 0
    parts = [part for part in path.split("/") if part]
    while parts and _ONLY_PATTERN.fullmatch(parts[-1]):
        parts.pop()
    homes = [part for part in normpath(home()).split("/") if part]
    above = len(parts) <= len(homes) and all(map(fnmatchcase, homes, parts))
    return _EVERYTHING if above else 0
