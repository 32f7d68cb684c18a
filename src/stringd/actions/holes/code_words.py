"""Which words of a command are code of the interpreter it starts."""

import re
from collections.abc import Iterator, Sequence
from itertools import pairwise
from typing import Final

from stringd.actions.holes.interpreters import Interpreter
from stringd.formats.shell.words import UNKNOWN, Word

_GIT_RUNS: Final = ("-x", "--exec", "--upload-pack", "--receive-pack", "--open-files-in-pager")
_ASSIGNMENT: Final = re.compile(r"[A-Za-z_]\w*=", re.ASCII)
# Options of a container engine's `exec` that take no value.
_EXEC_FLAGS: Final = re.compile(
    r"-[itd]+|--(?:interactive|tty|detach|privileged|no-TTY)|-T|--[\w-]+=.*"
)
_LOOPS: Final = re.compile(r"-\w*[np]")


def may_vanish(word: Word) -> bool:
    """Whether a word may turn out to be none: `$empty`, `"${none[@]}"`."""
    return not word.text.strip(UNKNOWN)


def _option_parts(words: Sequence[Word], known: Interpreter) -> Iterator[tuple[str, list[Word]]]:
    """Words in order: `code` of an option, and the `rest` that is not one."""
    left = list(words)
    while left:
        word = left.pop(0)
        text = word.text
        name, equals, _ = text.partition("=")
        if text == "--":
            yield from (("rest", [each]) for each in left)
            return
        if name in known.options:
            yield "code", [word] if equals else left[:1]
            left = left if equals else left[1:]
        elif name in known.pairs:
            left = left[2:]
        elif not text.startswith("-") or text == "-":
            yield "rest", [word]
        elif not text.startswith("--"):
            for at, letter in enumerate(text[1:], 2):
                last = at == len(text)
                if letter in known.letters:
                    yield "code", left[:1] if last else [word]
                    left = left[1:] if last else left
                    break
                if letter in known.valued:
                    left = left[1:] if last else left
                    break


def code_options(words: Sequence[Word], known: Interpreter) -> Iterator[Word]:
    for kind, found in _option_parts(words, known):
        if kind == "code":
            yield from found


def code_words(words: Sequence[Word], known: Interpreter) -> Iterator[Word]:
    """The words that are code, or name a file of code."""
    if known.every:
        yield from words
        return
    by_option, own = False, known.own
    for kind, found in _option_parts(words, known):
        if kind == "code":
            by_option = True
            yield from found
        elif kind == "rest" and known.first and not by_option:
            if own:
                own -= 1
                continue
            yield from found
            # SQL may go on in further words; of the others only one is code.
            if not known.own and not all(map(may_vanish, found)):
                return


def has_code(words: Sequence[Word], known: Interpreter) -> bool:
    return any(word.text not in ("-", "/dev/stdin") for word in code_words(words, known))


def special_code(name: str, words: Sequence[Word]) -> list[Word]:
    """Further words that are code to some programs."""
    if name == "git":
        return _git_code(words)
    if name.endswith("awk"):
        # Escapes in the value of such a word are read.
        return [word for word in words if _ASSIGNMENT.match(word.text)]
    if name.startswith(("perl", "ruby")) and _reads_named_files(words):
        return list(words)
    return []


def _reads_named_files(words: Sequence[Word]) -> bool:
    """Whether it opens what its words name; `touch x|` is a command to perl then."""
    return any(_LOOPS.match(word.text) or "<>" in word.text for word in words)


def _git_code(words: Sequence[Word]) -> list[Word]:
    """Settings and commands among the words of git's subcommands."""
    commands = ("config", "filter-branch", "bisect", "submodule", "difftool", "mergetool", "alias")
    if any(word.text in commands for word in words):
        return list(words)
    taken = {word for before, word in pairwise(words) if before.text in _GIT_RUNS}
    joined = ("-O", *(f"{option}=" for option in _GIT_RUNS))
    return [word for word in words if word in taken or word.text.startswith(joined)]


def inner_program(words: Sequence[Word]) -> list[Word]:
    """The program that `docker exec` and the like start in a container."""
    at = next((at for at, word in enumerate(words) if at and word.text == "exec"), None)
    if at is None:
        return []
    left = list(words[at + 1 :])
    while left and left[0].text.startswith("-"):
        left = left[1 if _EXEC_FLAGS.fullmatch(left[0].text) else 2 :]
    return left[1:2]


def remote_paths(words: Sequence[Word]) -> list[Word]:
    """Words of a copying program with a value in the path on the other machine."""
    return [word for word in words if UNKNOWN in word.text.partition(":")[2]]
