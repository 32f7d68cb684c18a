"""Commands of a line whose words or input would not be data: shells, builtins, interpreters."""

import re
from collections.abc import Callable, Sequence
from itertools import pairwise
from typing import Final

from stringd.actions.holes import refusals
from stringd.actions.holes.code_words import (
    code_options,
    code_words,
    has_code,
    inner_program,
    may_vanish,
    remote_paths,
    special_code,
)
from stringd.actions.holes.contexts import holds_text, steers
from stringd.actions.holes.evaluators import evaluates
from stringd.actions.holes.interpreters import (
    CODE_OPTIONS,
    REMOTE_SHELLS,
    REMOTE_VALUED,
    RUN_BY_OPTION,
    RUNNING_SUBCOMMANDS,
    TEXT_OPTIONS,
    Interpreter,
    interpreter,
)
from stringd.actions.holes.refusals import Finding, HoleDanger
from stringd.actions.holes.sources import NOTHING, Carried, Sources, of_callers
from stringd.actions.holes.variables import IDENTIFIER, Variables
from stringd.formats.shell.words import UNKNOWN, ShellStage, Word
from stringd.formats.shell.wrappers import SHELLS, shell_arguments, started

Nested = Callable[[str, Carried], None]
"""Judges the text of a command line inside this one; the second are its positional parameters."""

_DEEPEST: Final = 12
# Builtins for which every word is data, `test` and `printf` with exceptions of their own.
_DATA_BUILTINS: Final = frozenset(
    "echo printf cd pushd popd test [ true false : return exit shift pwd type kill "  # noqa: SIM905
    "umask times dirs disown bg fg help set".split()
)
_BUILTINS: Final = _DATA_BUILTINS | frozenset(
    "alias hash wait bind break caller compgen complete compopt continue declare enable eval fc "  # noqa: SIM905
    "export getopts history jobs let local logout mapfile read readarray readonly shopt source . "
    "suspend trap typeset ulimit unalias unset coproc".split()
)
_NAMED: Final = frozenset(("read", "mapfile", "readarray", "getopts"))
_ASKS: Final = frozenset(("--version", "--help"))
_PRINTERS: Final = frozenset(("echo", "printf", "grep", "egrep", "fgrep", "rg"))
# Tests of `find` that take one word.
_FIND_TESTS: Final = frozenset(
    "-name -iname -path -ipath -wholename -regex -iregex -lname -ilname -newer -anewer -cnewer "  # noqa: SIM905
    "-user -group -samefile -size -mtime -mmin -atime -amin -ctime -cmin -perm -type "
    "-maxdepth -mindepth".split()
)
# Their language is not the one that is read here.
_OTHER_SHELLS: Final = SHELLS - {"sh", "bash", "dash", "ash", "rbash"}
_CLUSTER: Final = re.compile(r"-[A-Za-z]*c")
_CONTAINERS: Final = frozenset(("kubectl", "oc", "docker", "podman", "nerdctl", "lxc"))
# With these `xargs` takes what it reads as it is.
_WHOLE_ITEMS: Final = ("-0", "--null", "-d", "--delimiter", "-I")
_PATTERN_OPTIONS: Final = frozenset(("-e", "--regexp"))


class CommandRules:
    """Judges simple commands. `exposed` are values that a program could take for an option."""

    def __init__(
        self, variables: Variables, sources: Sources, callers: Carried, nested: Nested
    ) -> None:
        self._variables = variables
        self._sources = sources
        self._callers = callers
        self._nested = nested
        self.findings: list[Finding] = []
        self.exposed: Carried = NOTHING

    def judge(self, stage: ShellStage, depth: int = 0) -> None:
        """One command, and whatever it starts."""
        self._refuse(self._of_callers(stage.words[:1]), refusals.COMMAND_NAME)
        name = stage.name
        if len(stage.words) > 1 and may_vanish(stage.words[0]):
            self.judge(stage.started(stage.words[1:]), depth + 1)
        if name in self._variables.functions:
            return
        if name in SHELLS:
            self._shell(stage)
        elif name in _BUILTINS:
            self._builtin(stage)
        elif name in TEXT_OPTIONS and self._by_text(stage, TEXT_OPTIONS[name]):
            return
        elif name in REMOTE_SHELLS:
            self._remote(stage)
        elif (known := interpreter(name)) is not None:
            self._interpreter(stage, known)
        elif depth > _DEEPEST:
            self._refuse(self._callers, refusals.UNREADABLE)
        elif not self._starts(stage, depth):
            self._any(stage)

    def _refuse(self, carried: Carried, danger: HoleDanger) -> None:
        if carried:
            self.findings.append((carried, danger))

    def _in(self, words: Sequence[Word]) -> Carried:
        return NOTHING.union(*(self._variables.in_word(word) for word in words))

    def _of_callers(self, words: Sequence[Word]) -> Carried:
        return of_callers(self._in(words), self._sources)

    def _expose(self, words: Sequence[Word], name: str) -> None:
        """Note which of a program's words could be options, up to `--`."""
        before = ""
        for word in words:
            if word.text == "--" and name != "find":
                return
            leading = len(word.text) - len(word.text.lstrip(UNKNOWN))
            first = word.variables[: None if word.inside else leading] if leading else ()
            held = NOTHING.union(*(self._variables.held(each) for each in first))
            taken = (name == "find" and before in _FIND_TESTS) or (
                name in ("grep", "egrep", "fgrep") and before in _PATTERN_OPTIONS
            )
            if not taken:
                self._exposed(of_callers(held, self._sources), name)
            before = word.text

    def _exposed(self, carried: Carried, name: str) -> None:
        self.exposed |= carried
        if name in RUN_BY_OPTION:
            loose = frozenset(each for each in carried if self._sources[each].options)
            self._refuse(loose, refusals.option(name))

    def _starts(self, stage: ShellStage, depth: int) -> bool:
        """Judge what a command such as `env` or `xargs` starts; False if it starts nothing."""
        inner = started(stage)
        for word in stage.words[1:]:
            name, equals, _ = word.text.partition("=")
            if equals and steers(name):
                self._refuse(self._of_callers([word]), refusals.STEERING)
        if stage.name == "xargs" and not any(_has(stage.words, each) for each in _WHOLE_ITEMS):
            self._refuse(of_callers(self._fed(stage), self._sources), refusals.SPLIT_AGAIN)
        if inner.stages:
            for each in inner.stages:
                self.judge(each, depth + 1)
            if stage.name == "find":
                self._expose(stage.words[1:], "find")
            else:
                own = len(stage.words) - len(inner.stages[0].words)
                self._expose(stage.words[1 : max(1, own)], stage.name)
            return True
        if inner.doubts:
            self._refuse(self._in(stage.words), refusals.starts(stage.name))
        return bool(inner.doubts)

    def _any(self, stage: ShellStage) -> None:
        """A program nobody knows here: its words are data, unless it starts a shell with them."""
        self._expose(stage.words[1:], stage.name)
        if stage.name not in _PRINTERS:
            self._handed_on(stage)
            self._said_to_run(stage)
        if stage.name in _CONTAINERS:
            after = [word for before, word in pairwise(stage.words) if before.text == "--"]
            self._refuse(self._of_callers(after), refusals.COMMAND_NAME)
            self._refuse(self._of_callers(inner_program(stage.words)), refusals.COMMAND_NAME)

    def _handed_on(self, stage: ShellStage) -> None:
        """Any program may start a shell or an interpreter that is named among its words."""
        for at, word in enumerate(stage.words[1:], 1):
            name = word.text.rpartition("/")[2]
            rest = stage.words[at + 1 :]
            if name in SHELLS:
                script, _ = shell_arguments(rest)
                if script is not None:
                    self._refuse(self._in([script]), refusals.nested(name))
            elif name in REMOTE_SHELLS and len(rest) > 1:
                self._remote(stage.started(stage.words[at:]))
            elif known := interpreter(name):
                self._code(name, known, list(code_options(rest, known)))

    def _said_to_run(self, stage: ShellStage) -> None:
        """Words that by the name of an option or a subcommand are code, or name a program. What a
        package brings itself, named by its path, may call its options as it likes.
        """
        words = stage.words
        code: list[Word] = []
        if "/" not in words[0].text:
            code += [after for word, after in pairwise(words) if word.text in CODE_OPTIONS]
            code += [each for each in words if each.text.partition("=")[0] in CODE_OPTIONS]
        running = RUNNING_SUBCOMMANDS.get(stage.name, ())
        for at, (before, word) in enumerate(pairwise(words), 2):
            if word.text in running:
                code += [each for each in words[at:] if not each.text.startswith("-")][:1]
            if not word.text.startswith("-") and not (at > 2 and before.text.startswith("-")):
                break
        if stage.name == "adb":
            self._refuse(self._in(words[2:]) if code else NOTHING, refusals.nested("adb"))
        self._code(stage.name, Interpreter(), code)

    def _shell(self, stage: ShellStage) -> None:
        words = stage.words[1:]
        script, operand = shell_arguments(words)
        if script is not None:
            rest = words[words.index(script) + 1 :]
            self._script(stage.name, script, self._in(rest))
        elif operand is not None:
            self._refuse(self._of_callers([operand]), refusals.nested(stage.name))
            if operand.inside or may_vanish(operand):
                self._refuse(self._callers, refusals.SHELL_INPUT)
            self._expose(words[words.index(operand) + 1 :], stage.name)
        elif not any(word.text in _ASKS for word in words):
            self._refuse(self._callers, refusals.SHELL_INPUT)

    def _script(self, name: str, script: Word, positional: Carried) -> None:
        """A command line handed over as one word."""
        carried = self._in([script])
        self._refuse(carried, refusals.nested(name))
        if script.known and not script.inside and name not in _OTHER_SHELLS:
            self._nested(script.text, positional)
        elif not carried:
            self._refuse(self._callers, refusals.UNREADABLE)

    def _by_text(self, stage: ShellStage, options: tuple[str, ...]) -> bool:
        words = stage.words
        for at, word in enumerate(words):
            option, equals, _ = word.text.partition("=")
            if option in options and equals:
                self._script(stage.name, word._replace(text=word.text[len(option) + 1 :]), NOTHING)
                return True
            if (option in options or _CLUSTER.fullmatch(option)) and at + 1 < len(words):
                self._script(stage.name, words[at + 1], self._in(words[at + 2 :]))
                return True
        return False

    def _remote(self, stage: ShellStage) -> None:
        """Everything after the host is one command line for the shell over there."""
        rest = list(stage.words[1:])
        while rest and rest[0].text.startswith("-") and rest[0].text != "--":
            option = rest.pop(0)
            if option.text[-1:] in REMOTE_VALUED and len(option.text) == 2 and rest:
                option = rest.pop(0)
            self._refuse(self._of_callers([option]), refusals.nested(stage.name))
        self._expose(rest, stage.name)
        rest = [word for word in rest if word.text != "--"]
        self._refuse(self._in(rest[1:]), refusals.nested(stage.name))
        if len(rest) < 2:
            self._refuse(self._fed(stage), refusals.SHELL_INPUT)

    def _fed(self, stage: ShellStage) -> Carried:
        """What its input may hold."""
        found = self._in([stage.given]) if stage.given else NOTHING
        return found.union(*(self._variables.in_stage(each) for each in stage.piped))

    def _interpreter(self, stage: ShellStage, known: Interpreter) -> None:
        words = stage.words[1:]
        code = (*code_words(words, known), *special_code(stage.name, words))
        self._code(stage.name, known, code)
        if stage.name in ("scp", "rsync"):
            self._refuse(self._of_callers(remote_paths(words)), refusals.REMOTE_PATH)
        if known.every or (known.reads and not has_code(words, known)):
            self._marked(stage.name, known, self._fed(stage))
        self._expose(words, stage.name)
        self._handed_on(stage)
        self._said_to_run(stage)
        given = () if has_code(words, known) or stage.given is None else (stage.given,)
        own = code if stage.name.endswith(("awk", "sed")) else ()
        if evaluates(stage.name, (*code_options(words, known), *own, *given)):
            self._marked(stage.name, known, self._callers)

    def _code(self, name: str, known: Interpreter, words: Sequence[Word]) -> None:
        self._marked(name, known, self._in(words))

    def _marked(self, name: str, known: Interpreter, carried: Carried) -> None:
        if known.for_shell:
            self._refuse(carried, refusals.nested(name))
            return
        plain = of_callers(carried, self._sources)
        unmarked = frozenset(each for each in plain if not self._sources[each].code)
        self._refuse(unmarked, refusals.code(name, known.instead))

    def _builtin(self, stage: ShellStage) -> None:
        name, words = stage.name, stage.words[1:]
        if name == "trap":
            handler = [word for word in words if not word.text.startswith("-")][:1]
            for word in handler:
                self._script(name, word, NOTHING)
            self._refuse(self._in(words), refusals.EVALUATED)
        elif name in ("source", "."):
            self._refuse(self._of_callers(words), refusals.EVALUATED)
            if any(word.inside or "/dev/" in word.text for word in words):
                self._refuse(self._callers, refusals.SHELL_INPUT)
        elif name in ("eval", "coproc") or (name in ("mapfile", "readarray") and _has(words, "-C")):
            self._refuse(self._callers or self._in(words), refusals.EVALUATED)
        elif name == "let":
            self._let(words)
        elif name in _NAMED:
            self._reader(words)
        elif name not in _DATA_BUILTINS:
            self._refuse(self._in(words), refusals.EVALUATED)
        else:
            self._data_builtin(name, words)

    def _data_builtin(self, name: str, words: Sequence[Word]) -> None:
        if name in ("test", "["):
            self._test(words)
        elif name == "printf" and words and words[0].text.startswith("-v"):
            self._names(words[:2] if words[0].text == "-v" else words[:1])
        elif name == "set" and words[:1] and words[0].text != "--":
            self._refuse(self._in(words), refusals.EVALUATED)
        else:
            self._expose(words, name)

    def _let(self, words: Sequence[Word]) -> None:
        self._refuse(self._in(words), refusals.EXPRESSION)
        numbers = self._variables.numbers
        for word in words:
            names = IDENTIFIER.findall(word.text)
            if not word.known or not all(name in numbers for name in names[1:]):
                self._refuse(self._callers, refusals.EXPRESSION)

    def _reader(self, words: Sequence[Word]) -> None:
        self._refuse(self._in(words), refusals.VARIABLE_NAME)
        if any("[" in word.text or not holds_text(word.text) for word in words):
            self._refuse(self._callers, refusals.VARIABLE_NAME)

    def _names(self, words: Sequence[Word]) -> None:
        self._refuse(self._in(words), refusals.VARIABLE_NAME)
        names = [name for word in words if (name := word.text.removeprefix("-v"))]
        if not all(IDENTIFIER.fullmatch(name) and holds_text(name) for name in names):
            self._refuse(self._callers, refusals.VARIABLE_NAME)

    def _test(self, words: Sequence[Word]) -> None:
        if any(word.text in ("-v", "-R") for word in words):
            plain = all(IDENTIFIER.fullmatch(word.text) for word in words if word.text[:1] != "-")
            if not plain:
                self._refuse(self._callers | self._in(words), refusals.VARIABLE_NAME)
        carrying = [bool(self._in([word])) for word in words]
        for at, pair in enumerate(pairwise(carrying)):
            if all(pair):
                self._refuse(self._in(words[at : at + 2]), refusals.UNREADABLE)


def _has(words: Sequence[Word], option: str) -> bool:
    return any(word.text.startswith(option) for word in words)
