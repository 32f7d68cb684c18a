"""Rules a person writes: which commands run without a question, and which never do. Pure.

A rule is about one command of a pipeline. Its words are exact or slots with a type, and an allow
says everything: the program by its real path, every word, the whole environment. What an allow
does not say word for word is asked.
"""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Final, NamedTuple, Protocol

from stringd.gate.display import quote
from stringd.gate.program import Identity, ShownProgram
from stringd.gate.versatile import runs_its_input

DEFAULT_LIMIT: Final = 30
LIMIT_SECONDS: Final = 60.0
_PLAIN_NAME: Final = re.compile(r"[A-Za-z0-9_][A-Za-z0-9_.+@:-]{0,127}")
_NUMBER: Final = re.compile(r"[0-9]{1,18}")


class Effect(StrEnum):
    ALLOW = "allow"
    ASK = "ask"
    DENY = "deny"


class PathFact(NamedTuple):
    """Where a path leads, and who besides root could make it lead elsewhere; both may be none."""

    real: str | None
    weak: str | None


Paths = Mapping[str, PathFact]


class RuleWord(Protocol):
    """What a rule says about one word."""

    def problem(self, word: str, paths: Paths) -> str | None:
        """Why the word does not match; None if it does."""


@dataclass(frozen=True, slots=True)
class ExactWord:
    text: str

    def problem(self, word: str, paths: Paths) -> str | None:  # noqa: ARG002
        return None if word == self.text else f"is not {quote(self.text)}"


@dataclass(frozen=True, slots=True)
class AnyWord:
    """Only for rules that ask or deny."""

    def problem(self, word: str, paths: Paths) -> str | None:  # noqa: ARG002
        return None


@dataclass(frozen=True, slots=True)
class WordOf:
    """One of these words."""

    words: tuple[str, ...]

    def problem(self, word: str, paths: Paths) -> str | None:  # noqa: ARG002
        return _option(word) or (
            None if word in self.words else f"is not one of {' '.join(map(quote, self.words))}"
        )


@dataclass(frozen=True, slots=True)
class WholeNumber:
    low: int = 0
    high: int = 10**18 - 1

    def problem(self, word: str, paths: Paths) -> str | None:  # noqa: ARG002
        if not _NUMBER.fullmatch(word):
            return _option(word) or "is not a whole number"
        if not self.low <= int(word) <= self.high:
            return f"is not between {self.low} and {self.high}"
        return None


@dataclass(frozen=True, slots=True)
class NameWord:
    """A name of a package, a service, a branch: no path, no option, no blank."""

    def problem(self, word: str, paths: Paths) -> str | None:  # noqa: ARG002
        return _option(word) or (None if _PLAIN_NAME.fullmatch(word) else "is not a plain name")


@dataclass(frozen=True, slots=True)
class PathUnder:
    """A file below a directory, which nothing that asks could exchange for another one."""

    directory: str

    def problem(self, word: str, paths: Paths) -> str | None:
        inside = f"{self.directory.rstrip('/')}/"
        if not is_plain_path(word) or not word.startswith(inside):
            return _option(word) or f"is not a plain path under {self.directory}"
        fact = paths.get(word)
        if fact is None or fact.real is None:
            return "is a path that leads to nothing"
        if not fact.real.startswith(inside):
            return f"leads to {fact.real}, outside of {self.directory}"
        if fact.weak is not None:
            return f"can be exchanged for another file by {fact.weak}"
        return None


@dataclass(frozen=True, slots=True)
class Rule:
    """One rule with its place. `program` is a real path in an allow, else a path or a name."""

    effect: Effect
    program: str
    words: tuple[RuleWord, ...] = ()
    # Only for rules that ask or deny: any further words match as well.
    has_rest: bool = False
    root: bool = False
    env: Mapping[str, str] = field(default_factory=dict)
    limit: int = DEFAULT_LIMIT
    file: str = ""
    line: int = 0
    # The program as it was when the rules were read; another one is asked about.
    identity: Identity | None = None

    @property
    def name(self) -> str:
        return f"rule:{self.file}:{self.line}"

    @property
    def is_exact(self) -> bool:
        return all(isinstance(word, ExactWord) for word in self.words)


class Misfit(NamedTuple):
    """Why a rule does not match a command: at which word (0 is the program, -1 none), and why."""

    word: int
    why: str


class StageCommand(NamedTuple):
    """One command of a pipeline, and what is known of it."""

    words: tuple[str, ...]
    program: ShownProgram
    env: Mapping[str, str]
    as_root: bool
    # It reads what the command before it prints.
    reads_pipe: bool
    paths: Paths


def misfit(rule: Rule, command: StageCommand) -> Misfit | None:
    """The first thing about a command that is not what the rule says; None if it matches."""
    if rule.effect is not Effect.ALLOW:
        return _program_misfit(rule, command) or _words_misfit(rule, command)
    return (
        _exact_program_misfit(rule, command)
        or _words_misfit(rule, command)
        or _conditions_misfit(rule, command)
    )


def is_about(rule: Rule, command: StageCommand) -> bool:
    """Whether the rule names the program of the command, whatever else it says."""
    return _program_misfit(rule, command) is None


def _program_misfit(rule: Rule, command: StageCommand) -> Misfit | None:
    """Generous, because it is used to ask and to deny: any name the program goes by counts."""
    program = command.program
    paths = [path for path in (command.words[0], program.path, program.real) if path]
    known = paths if "/" in rule.program else [path.rpartition("/")[2] for path in paths]
    if rule.program in known:
        return None
    return Misfit(0, f"is not {quote(rule.program)}")


def _exact_program_misfit(rule: Rule, command: StageCommand) -> Misfit | None:
    word, program = command.words[0], command.program
    # Some programs do something else under another name.
    if word not in (rule.program, rule.program.rpartition("/")[2]) or program.path is None:
        return Misfit(0, f"is not {quote(rule.program)}")
    if program.real != rule.program:
        return Misfit(0, f"leads to {quote(program.real or program.path)}")
    if program.weaknesses:
        return Misfit(0, f"can be changed by {program.weaknesses[-1].who}")
    if not program.is_fixed:
        return Misfit(0, "is not in a directory of the system")
    if program.interpreters:
        weak = program.interpreters[-1]
        return Misfit(0, f"is run by {weak.path}, which {weak.who} can change")
    if rule.identity is None or rule.identity != program.identity:
        return Misfit(0, "is another file than when the rules were read; restart the gate")
    if command.reads_pipe and runs_its_input(rule.program):
        return Misfit(0, "may run what it reads from the pipe")
    return None


def _words_misfit(rule: Rule, command: StageCommand) -> Misfit | None:
    words = command.words[1:]
    for index, (said, word) in enumerate(zip(rule.words, words, strict=False), start=1):
        if (why := said.problem(word, command.paths)) is not None:
            return Misfit(index, why)
    if len(words) < len(rule.words):
        return Misfit(len(command.words), "is missing")
    if len(words) > len(rule.words) and not rule.has_rest:
        return Misfit(len(rule.words) + 1, "is one word too many")
    return None


def _conditions_misfit(rule: Rule, command: StageCommand) -> Misfit | None:
    if rule.root != command.as_root:
        return Misfit(-1, f"the rule is {'only' if rule.root else 'not'} for root")
    for name in sorted(rule.env.keys() | command.env.keys()):
        if rule.env.get(name) != command.env.get(name):
            said = f"{name}={quote(rule.env[name])}" if name in rule.env else f"no {name}"
            return Misfit(-1, f"the environment is another: the rule says {said}")
    return None


def is_plain_path(word: str) -> bool:
    """Whether a path is absolute and says each directory once, without `.` and `..`."""
    return word.startswith("/") and not {"", ".", ".."} & set(word[1:].split("/"))


def _option(word: str) -> str | None:
    return "begins with - and might be an option" if word.startswith("-") else None


def commands(
    pipeline: Sequence[Sequence[str]],
    programs: Sequence[ShownProgram],
    env: Mapping[str, str],
    paths: Paths,
    *,
    as_root: bool,
) -> list[StageCommand]:
    """The commands of a pipeline, one by one."""
    return [
        StageCommand(tuple(words), program, env, as_root, index > 0, paths)
        for index, (words, program) in enumerate(zip(pipeline, programs, strict=True))
    ]
