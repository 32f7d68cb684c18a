"""Why a place is not one for a value, and what to write instead."""

from typing import Final, NamedTuple

from stringd.actions.holes.sources import Carried


class HoleDanger(NamedTuple):
    """One kind of place: what happens to a value there, and the safe spelling."""

    why: str
    instead: str


Finding = tuple[Carried, HoleDanger]
"""Sources that are in a place they may not be in."""


class HoleRefusal(NamedTuple):
    """The holes, as the author wrote them, that a command may not have where they are."""

    written: tuple[str, ...]
    danger: HoleDanger

    def __str__(self) -> str:
        names = ", ".join(self.written)
        instead = self.danger.instead.replace("{x}", self.written[0])
        return f"{names}: {self.danger.why}. Safe spelling: {instead}"


EXPRESSION: Final = HoleDanger(
    "bash evaluates this as an expression, which can run commands",
    "declare the field as a number (`x: number`), or compare text with [ {x} = … ]",
)
VARIABLE_NAME: Final = HoleDanger(
    "bash takes this for the name of a variable, and evaluates what is in its brackets",
    "write the name yourself and assign the value: name={x}",
)
INDIRECT: Final = HoleDanger(
    "${!name}, ${name@P} and namerefs expand a value again",
    'expand the variable itself: "$name"',
)
EVALUATED: Final = HoleDanger(
    "this builtin runs or evaluates its words",
    "write the command itself, with {x} as one of its words",
)
DECLARED: Final = HoleDanger(
    "declare may evaluate what it is given",
    "assign it plainly: name={x}, or export NAME={x}",
)
UNQUOTED: Final = HoleDanger(
    "the shell splits this into words and expands patterns in them",
    'double quotes around it: "$name", "$(…)"; {x} by itself needs none',
)
PATTERN: Final = HoleDanger(
    "the shell takes this for a pattern", 'double quotes around it: == "$name"'
)
SPLIT_AGAIN: Final = HoleDanger(
    "xargs splits what it reads into words, and some of them may be options",
    "the program with {x} as its word; or lines that are kept whole: xargs -d '\\n' program --",
)
COMMAND_NAME: Final = HoleDanger(
    "the value would choose which program runs",
    "a field with a list of values (`tool: one|two`), or the program's name itself",
)
DESCRIPTOR: Final = HoleDanger(
    "after >& or <& a value can be a file descriptor", "a file: > {x}, or > {x} 2>&1"
)
STEERING: Final = HoleDanger(
    "this variable decides what code programs run, or how the shell reads",
    "a variable with another name",
)
SHELL_INPUT: Final = HoleDanger(
    "a shell reads its commands from its input here, and the input can hold the value",
    "bash -c '… \"$1\" …' _ {x}, or a script of the package: ./script {x}",
)
WRITTEN_SCRIPT: Final = HoleDanger(
    "the command writes this file and then runs it",
    "a script of the package that takes the value as a word: ./script {x}",
)
REMOTE_PATH: Final = HoleDanger(
    "older versions of the program let the shell of the other machine read this path",
    "a fixed path over there, and {x} as a file of this machine",
)
UNREADABLE: Final = HoleDanger(
    "this command cannot be read with certainty",
    "put it into a script of the package and pass the value as a word: ./script {x}",
)


def nested(program: str) -> HoleDanger:
    """A value inside the text of another command line."""
    return HoleDanger(
        f"it becomes part of a command line that {program} runs",
        "bash -c '… \"$1\" …' _ {x}; for a program that takes only text, a script: ./script {x}",
    )


def starts(program: str) -> HoleDanger:
    """A value among the words of a program nobody knows the options of here."""
    return HoleDanger(
        f"what {program} would start is not clear",
        "options of its own first, then the program's name, then {x}",
    )


def code(program: str, instead: str) -> HoleDanger:
    """A value inside code of an interpreter that is not a shell."""
    return HoleDanger(
        f"it becomes code that {program} runs",
        f"{instead}; or, if the value is meant to be code, `code: true` on the field",
    )


def option(program: str) -> HoleDanger:
    """A value that may begin with `-`, before a program that runs what an option says."""
    return HoleDanger(
        f"it may be an option, and {program} has options that run commands",
        f"{program} … -- and the value behind it, or a field without `dash: true`",
    )
