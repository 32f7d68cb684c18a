"""Files that a command opens by itself, and that others than root can change until then.

The gate holds the program of each stage, but an interpreter opens its script later, and root's
commands copy and load what they are given. So a person has to know that such a file can change.
"""

import os
import re
import stat
from collections.abc import Iterator, Sequence
from pathlib import PurePosixPath
from typing import Final, NamedTuple

from stringd.gate.program import ShownProgram
from stringd.gate.trust import Weakness, weaknesses

# A caller may send a hundred thousand words; looking at each on the disk would take seconds.
MAX_WORDS: Final = 2000
MAX_NAMED: Final = 5

_RUNS_FILES: Final = re.compile(
    r"(?:ba|da|z|k|mk|a|fi|tc|c)?sh|busybox|python[\d.]*|pypy[\d.]*|perl[\d.]*|ruby[\d.]*|node|nodejs"
    r"|deno|bun|php[\d.]*|lua(?:jit)?[\d.]*|tclsh[\d.]*|expect|Rscript|java|awk|gawk|mawk|sed|make"
    r"|gmake|ansible-playbook|env|nice|nohup|timeout|xargs|setsid|stdbuf|time|find|sudo|doas|su"
    r"|systemd-run|chroot|unshare|nsenter|flock|script|strace|gdb|dpkg|apt|apt-get|rpm|dnf|yum|psql"
    r"|mysql|sqlite3|crontab|at|batch|source|install|insmod|modprobe|docker|podman|kubectl"
)


class ChangeableFiles(NamedTuple):
    """The first few such files, each once, and whether there are or may be more."""

    named: tuple[Weakness, ...] = ()
    more: bool = False


def changeable_files(
    pipeline: Sequence[Sequence[str]], programs: Sequence[ShownProgram], *, as_root: bool = False
) -> ChangeableFiles:
    """Interpreters of the programs themselves, then arguments that may be run.

    For root every file counts: what others can change becomes root's by being copied, too.
    """
    found = {weak.path: weak for program in programs for weak in program.interpreters}
    words = 0
    for stage, program in zip(pipeline, programs, strict=True):
        names = {PurePosixPath(stage[0]).name, PurePosixPath(program.real or "").name}
        runs_any = as_root or any(_RUNS_FILES.fullmatch(name) for name in names)
        for word in stage[1:]:
            words += 1
            if words > MAX_WORDS or len(found) > MAX_NAMED:
                return ChangeableFiles(tuple(found.values())[:MAX_NAMED], more=True)
            for path in _paths(word):
                if path not in found and (weak := _weakness(path, runs_any)) is not None:
                    found[path] = weak
    return ChangeableFiles(tuple(found.values())[:MAX_NAMED], len(found) > MAX_NAMED)


def _paths(word: str) -> Iterator[str]:
    """The file a word may name; children run in `/`."""
    # Also behind `--file=`, `if=` and the sign with which some programs read a file.
    for text in (word, word.partition("=")[2], word.partition("@")[2]):
        if text and "\0" not in text:
            yield text if text.startswith("/") else f"/{text}"


def _weakness(path: str, runs_any: bool) -> Weakness | None:
    try:
        found = os.stat(path)  # noqa: PTH116  (a Path would rewrite what was sent)
        if not stat.S_ISREG(found.st_mode):
            return None
        if not (runs_any or found.st_mode & 0o111):
            return None
        weak = weaknesses(path)
    except (OSError, ValueError):
        return None
    return Weakness(path, weak[-1].who) if weak else None
