"""Which command lines are never run, and which the human is asked about.

A line is judged command by command, through pipes, lists, substitutions and whatever starts another
command. What cannot be read with certainty is asked about.
"""

import re
from abc import abstractmethod
from dataclasses import dataclass
from functools import lru_cache
from typing import Final

from stringd.formats.shell.words import HOME
from stringd.formats.shell.wrappers import read_through
from stringd.runs.guard.policy import CommandPolicy, Subject, Verdict
from stringd.runs.guard.shell.dangers import Danger, dangers, home


@dataclass(frozen=True)
class _Judged:
    """A line taken apart: each command as text, and what speaks against running it."""

    commands: tuple[str, ...]
    dangers: tuple[Danger, ...]

    def why(self, verdict: Verdict) -> list[str]:
        return [danger.why for danger in self.dangers if danger.verdict == verdict]


@lru_cache(maxsize=64)
def _judged(line: str) -> _Judged:
    reading = read_through(line)
    folder = home()
    commands = dict.fromkeys(stage.text.replace(HOME, folder) for stage in reading.stages)
    found = (Danger(each.verdict, each.why.replace(HOME, folder)) for each in dangers(reading))
    return _Judged(tuple(commands), tuple(dict.fromkeys(found)))


class _JudgesLines:
    """Has its verdict ready for every command line it has something against."""

    verdict: Verdict

    def judge(self, subject: Subject) -> Verdict | None:
        found = subject.direction == "exec" and self.reasons(subject.resource)
        return self.verdict if found else None

    @abstractmethod
    def reasons(self, line: str) -> list[str]: ...


@dataclass(frozen=True)
class DenyCommands(_JudgesLines):
    """Refuses what no agent should run."""

    name: str = "deny-commands"
    verdict: Verdict = "deny"

    def reasons(self, line: str) -> list[str]:
        return _judged(line).why("deny")


@dataclass(frozen=True)
class ApproveCommands(_JudgesLines):
    """Asks about commands that fit one of the owner's expressions, and about unreadable ones."""

    patterns: tuple[re.Pattern[str], ...] = ()
    name: str = "approve-commands"
    verdict: Verdict = "ask"

    def reasons(self, line: str) -> list[str]:
        judged = _judged(line)
        fitting = [
            f"{text} fits {pattern.pattern}"
            for pattern in self.patterns
            for text in _fitting(pattern, line, judged.commands)
        ]
        return fitting + judged.why("ask")


def _fitting(pattern: re.Pattern[str], line: str, commands: tuple[str, ...]) -> list[str]:
    """The commands an expression fits; the whole line when it fits only that."""
    found = [command for command in commands if pattern.search(command)]
    return found or ([line] if pattern.search(line) else [])


DANGEROUS: Final[CommandPolicy] = DenyCommands()


def approval(patterns: tuple[str, ...]) -> CommandPolicy:
    """The owner's list of commands to ask about. Raises `re.error`."""
    return ApproveCommands(tuple(re.compile(each) for each in patterns))
