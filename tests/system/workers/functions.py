"""What the workers of the tests are asked to do."""

import os
import signal
from pathlib import Path


def echo(*texts: str) -> str:
    return "|".join(texts)


def stuck(pipe: str = "") -> str:
    """Says who it is and never comes back; it holds the interpreter, as a parser in C does."""
    if pipe:
        Path(pipe).write_text(str(os.getpid()))
    # A sum of this size is one call, which lasts longer than any test.
    return str(sum(range(10**12)))


def killed() -> str:
    os.kill(os.getpid(), signal.SIGKILL)
    return ""


def greedy() -> str:
    return "x" * (1 << 40)


def recursive() -> str:
    return recursive()


def wrong() -> str:
    raise ValueError("not like this")


def pid() -> str:
    return str(os.getpid())


def names_of_environment() -> str:
    return " ".join(sorted(os.environ))


def open_descriptors() -> str:
    return "\n".join(str(each.resolve()) for each in Path("/proc/self/fd").iterdir())
