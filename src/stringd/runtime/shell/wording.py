"""What a reply tells its reader beside the output: pure functions, values in, text out."""

from signal import Signals
from typing import Final

CONTINUE: Final = "//input <text>, //key ctrl-c, //wait [seconds], //kill"
_TITLE_LENGTH: Final = 60


def title(text: str) -> str:
    """A command's first line, short enough to name it in a sentence."""
    lines = text.strip().splitlines() or [""]
    first = lines[0].strip()
    cut = len(lines) > 1 or len(first) > _TITLE_LENGTH
    return f"{first[:_TITLE_LENGTH]}…" if cut else first


def silent(command: str, quiet: float, left: float) -> str:
    return (
        f"still running: `{command}` printed nothing for {seconds(quiet)}. "
        f"Continue it with {CONTINUE}. {remaining(left)}"
    )


def running(command: str, left: float) -> str:
    return f"still running: `{command}`. Continue it with {CONTINUE}. {remaining(left)}"


def remaining(left: float) -> str:
    """How long a command may run that nobody attends to, and how to change that."""
    return (
        f"It is ended in {seconds(round(left))} unless one of these renews its time; "
        f"//timeout 20m allows more."
    )


def waiting(command: str) -> str:
    return (
        f"still running: `{command}` waits for input. Send //input <text> (adds Enter), "
        f"//key ctrl-d (end of input), //key ctrl-c (interrupt), //wait [seconds] or //kill."
    )


def timed_out(limit: float, *, killed: bool) -> str:
    how = "killed" if killed else "interrupted"
    return (
        f"timed out after {seconds(limit)} and was {how}; the output above may be partial. "
        f"Give it more time with //timeout 20m <command> in a bash topic"
    )


def replaced(program: str) -> str:
    return (
        f"the shell was replaced by `{program}` (exec); when it ends, the next input starts "
        f"a fresh shell"
    )


def shell_ended(code: int, by: Signals | None, *, closed: bool) -> str:
    how = f"was killed by {by.name}" if by is not None else f"exited with status {code}"
    if closed:
        how = "was closed"
    return (
        f"the shell {how}: its variables, functions and jobs are gone; "
        f"the next input starts a fresh shell"
    )


def seconds(value: float) -> str:
    return f"{value:g} s"


def elsewhere(command: str) -> str:
    return f"another request waits for `{command}`: that reply has its output"


def hidden() -> str:
    return (
        "the exit status is not certain: the shell's report was lost; "
        "a function named `builtin`, if there was one, is removed"
    )


def started_anew() -> str:
    return "the earlier shell of this topic had ended; this is a fresh one"


def restarted() -> str:
    return (
        "stringd was restarted: this is a new shell; the directory, variables and jobs of the one "
        "before are gone"
    )


def killed_by(number: Signals) -> str:
    return f"killed by {number.name}"
