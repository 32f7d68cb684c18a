"""Which command lines are never run, and which the human is asked about.

A line is judged command by command, through pipes, lists, substitutions and whatever starts another
command. What cannot be read with certainty is asked about.
"""

import json
import re
from abc import abstractmethod
from dataclasses import dataclass
from functools import lru_cache
from typing import Final

from stringd.formats.shell.words import HOME
from stringd.formats.shell.wrappers import read_through
from stringd.runs.guard.policy import CommandPolicy, Subject, Verdict
from stringd.runs.guard.shell.dangers import Danger, dangers, home
from stringd.system.workers import WorkerError, WorkerTask, ask, await_answer


@dataclass(frozen=True)
class _Judged:
    """A line taken apart: each command as text, and what speaks against running it."""

    commands: tuple[str, ...]
    dangers: tuple[Danger, ...]

    def why(self, verdict: Verdict) -> list[str]:
        return [danger.why for danger in self.dangers if danger.verdict == verdict]


SHORT_LINE: Final = 1000
"""Characters; a longer line is read in a worker, as the grammar takes long over some."""
READING_SECONDS: Final = 5.0
_READING: Final = WorkerTask(__name__, "read_for_daemon", READING_SECONDS)
_LONG_LINES: Final = 64

_long_lines: dict[str, _Judged] = {}
"""The long lines that were read last."""


async def read_ahead(line: str) -> None:
    """Read a long line in a worker, so that it can be judged without waiting for it."""
    if len(line) <= SHORT_LINE or line in _long_lines:
        return
    try:
        judged = _from_worker(await await_answer(_READING, line))
    except WorkerError as error:
        judged = _unread(error)
    _keep(line, judged)


def read_for_daemon(line: str) -> str:
    """What a worker answers: the commands of a line and what speaks against them."""
    judged = _read(line)
    return json.dumps((judged.commands, judged.dangers))


def _judged(line: str) -> _Judged:
    if len(line) <= SHORT_LINE:
        return _short(line)
    if line not in _long_lines:
        # Only threads that may wait come here; the loop reads ahead.
        try:
            _keep(line, _from_worker(ask(_READING, line)))
        except WorkerError as error:
            _keep(line, _unread(error))
    return _long_lines[line]


@lru_cache(maxsize=64)
def _short(line: str) -> _Judged:
    return _at_home(_read(line))


def _read(line: str) -> _Judged:
    reading = read_through(line)
    commands = dict.fromkeys(stage.text for stage in reading.stages)
    return _Judged(tuple(commands), tuple(dict.fromkeys(dangers(reading))))


def _from_worker(answer: str) -> _Judged:
    commands, found = json.loads(answer)
    return _at_home(_Judged(tuple(commands), tuple(Danger(*each) for each in found)))


def _at_home(judged: _Judged) -> _Judged:
    """With the name of the home folder, which only this process knows."""
    folder = home()
    found = (Danger(each.verdict, each.why.replace(HOME, folder)) for each in judged.dangers)
    return _Judged(tuple(text.replace(HOME, folder) for text in judged.commands), tuple(found))


def _unread(error: WorkerError) -> _Judged:
    return _Judged((), (Danger("ask", f"it could not be read: {error}"),))


def _keep(line: str, judged: _Judged) -> None:
    while len(_long_lines) >= _LONG_LINES:
        del _long_lines[next(iter(_long_lines))]
    _long_lines[line] = judged


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
