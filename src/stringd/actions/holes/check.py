"""A composed command → what must be changed in it before any value may be put in."""

import json
from collections.abc import Iterable, Mapping
from functools import lru_cache
from itertools import pairwise
from typing import TYPE_CHECKING, Final, NamedTuple

from stringd.actions.holes import refusals
from stringd.actions.holes.code_words import code_words
from stringd.actions.holes.commands import CommandRules
from stringd.actions.holes.contexts import find_in_line, steers
from stringd.actions.holes.interpreters import interpreter
from stringd.actions.holes.refusals import Finding, HoleDanger, HoleRefusal
from stringd.actions.holes.sources import (
    NOTHING,
    Carried,
    Source,
    Sources,
    ValueOrigin,
    of_callers,
)
from stringd.actions.holes.variables import Variables, walk
from stringd.formats.shell import grammar
from stringd.formats.shell.parse import read
from stringd.formats.shell.words import ShellStage, Word, source, spelled
from stringd.formats.shell.wrappers import SHELLS, read_through, shell_arguments
from stringd.system.workers import WorkerError, WorkerTask, ask, await_answer

if TYPE_CHECKING:
    from tree_sitter import Node

_DEEPEST: Final = 8
# Hundreds of commands; reading them takes a fraction of a second.
_MOST_NODES: Final = 3000
SHORT_COMMAND: Final = 1000
"""Characters; a longer command is judged in a worker, as the grammar takes long over some."""
JUDGING_SECONDS: Final = 5.0
_JUDGING: Final = WorkerTask(__name__, "judge_for_daemon", JUDGING_SECONDS)
_LONG_COMMANDS: Final = 64
_NamedSources = tuple[tuple[str, Source], ...]
_START_FILES: Final = ("--rcfile", "--init-file")
_POSITIONAL: Final = "@*0123456789"


class Judgement(NamedTuple):
    """What is wrong with a command, and which holes a program could take for an option."""

    refusals: tuple[HoleRefusal, ...]
    exposed: frozenset[str]
    """As their author wrote them."""


_long_commands: dict[tuple[str, _NamedSources], Judgement] = {}
"""The long commands that were judged last."""


def judge(text: str, sources: Sources) -> Judgement:
    """Judge a composed command; `sources` are the variables that carry values into it."""
    named = _named(text, sources)
    if not named:
        return Judgement((), frozenset())
    if len(text) <= SHORT_COMMAND:
        return _judged(text, named)
    found = _long_commands.get((text, named))
    if found is None:
        # Only threads that may wait come here; the loop judges ahead.
        try:
            found = _from_worker(ask(_JUDGING, text, _as_text(named)))
        except WorkerError:
            found = _unread(named)
        _keep(text, named, found)
    return found


async def judge_ahead(text: str, sources: Sources) -> None:
    """Judge a long command in a worker, so that `judge` finds it judged."""
    named = _named(text, sources)
    if not named or len(text) <= SHORT_COMMAND or (text, named) in _long_commands:
        return
    try:
        found = _from_worker(await await_answer(_JUDGING, text, _as_text(named)))
    except WorkerError:
        found = _unread(named)
    _keep(text, named, found)


def judge_for_daemon(text: str, named: str) -> str:
    """What a worker answers."""
    sources = [
        (name, Source(written, ValueOrigin[origin], options, code))
        for name, (written, origin, options, code) in json.loads(named)
    ]
    found = _judged(text, tuple(sources))
    return json.dumps((found.refusals, sorted(found.exposed)))


def _named(text: str, sources: Sources) -> _NamedSources:
    return tuple(sorted((name, found) for name, found in sources.items() if name in text))


def _as_text(named: _NamedSources) -> str:
    listed = [(name, (each.written, each.origin.name, *each[2:])) for name, each in named]
    return json.dumps(listed)


def _from_worker(answer: str) -> Judgement:
    listed, exposed = json.loads(answer)
    refused = (HoleRefusal(tuple(names), HoleDanger(*danger)) for names, danger in listed)
    return Judgement(tuple(refused), frozenset(exposed))


def _unread(named: _NamedSources) -> Judgement:
    """What cannot be read in time is refused like what cannot be read."""
    callers = of_callers(dict(named), dict(named))
    written = tuple(dict.fromkeys(found.written for name, found in named if name in callers))
    refused = (HoleRefusal(written, refusals.UNREADABLE),) if written else ()
    return Judgement(refused, frozenset(found.written for _, found in named))


def _keep(text: str, named: _NamedSources, found: Judgement) -> None:
    while len(_long_commands) >= _LONG_COMMANDS:
        del _long_commands[next(iter(_long_commands))]
    _long_commands[text, named] = found


@lru_cache(maxsize=256)
def _judged(text: str, named: _NamedSources) -> Judgement:
    sources = dict(named)
    judge_ = _HoleJudge(sources)
    judge_.line(text, {name: frozenset((name,)) for name in sources}, 0)
    found: dict[tuple[tuple[str, ...], refusals.HoleDanger], None] = {}
    for carried, danger in judge_.findings:
        written = tuple(dict.fromkeys(sources[name].written for name in sorted(carried)))
        found[written, danger] = None
    exposed = frozenset(sources[name].written for name in judge_.exposed)
    return Judgement(tuple(HoleRefusal(*each) for each in found), exposed)


class _HoleJudge:
    def __init__(self, sources: Sources) -> None:
        self._sources = sources
        self._callers = of_callers(sources, sources)
        self.findings: list[Finding] = []
        self.exposed: Carried = NOTHING

    def line(self, line: str, known: Mapping[str, Carried], depth: int) -> None:
        """One line: the command itself, or the text of a shell it starts."""
        try:
            root = grammar.parse(line)
        except grammar.UnreadableError:
            self._unreadable()
            return
        if depth > _DEEPEST or root.descendant_count > _MOST_NODES or _is_unclear(root, line):
            self._unreadable()
            return
        reading = read(line, within=ShellStage(()))
        every = read_through(line, within=ShellStage(())).stages
        variables = Variables(root, line, every, known, self._callers)
        self.findings += find_in_line(root, line, variables, self._sources, self._callers)

        def nested(text: str, positional: Carried) -> None:
            inner = {**variables.holds, **dict.fromkeys(_POSITIONAL, positional)}
            self.line(text, inner, depth + 1)

        commands = CommandRules(variables, self._sources, self._callers, nested)
        for stage in reading.stages:
            commands.judge(stage)
        self.findings += commands.findings
        self.exposed |= commands.exposed
        if self._callers and _runs_what_it_writes(root, line, every):
            self.findings.append((self._callers, refusals.WRITTEN_SCRIPT))

    def _unreadable(self) -> None:
        if self._callers:
            self.findings.append((self._callers, refusals.UNREADABLE))


def _is_unclear(root: "Node", line: str) -> bool:
    """Whether the grammar and a shell may disagree about a line."""
    gaps = (*grammar.left_out(root), (root.end_byte, len(line)))
    return any(line[begin:end].strip() for begin, end in gaps) or any(
        grammar.is_odd(node) for node in walk(root)
    )


def _runs_what_it_writes(root: "Node", line: str, stages: Iterable[ShellStage]) -> bool:
    """Whether a shell runs a file that the same line writes."""
    # Closing a stream (>&-) names no file.
    written = {
        spelled(node.named_children[-1], line).text.removeprefix("./")
        for node in walk(root)
        if node.type == "file_redirect" and node.named_children and "<" not in source(node, line)
    }
    run: set[str] = set()
    for stage in stages:
        words = stage.words[1:]
        if stage.name == "tee":
            written |= {word.text.removeprefix("./") for word in words}
        run |= {word.text.removeprefix("./") for word in (stage.words[0], *_code_files(stage))}
    for node in walk(root):
        if node.type == "variable_assignment" and len(node.named_children) > 1:
            name, value = node.named_children[:2]
            if steers(source(name, line)):
                run.add(spelled(value, line).text.removeprefix("./"))
    return bool(written & run)


def _code_files(stage: ShellStage) -> tuple[Word, ...]:
    """The files a command reads its code from."""
    words = stage.words[1:]
    if stage.name in ("source", "."):
        return words[:1]
    if stage.name in SHELLS:
        operand = shell_arguments(words)[1]
        files = [word for before, word in pairwise(words) if before.text in _START_FILES]
        return (*files, operand) if operand else tuple(files)
    known = interpreter(stage.name)
    return tuple(code_words(words, known)) if known else ()
