"""Standard streams a command can rely on."""

import os
import sys

_TURNING = frozenset("\u061c\u200e\u200f\u202a\u202b\u202c\u202d\u202e\u2066\u2067\u2068\u2069")
"""Characters by which text is shown in another order than it has."""


def secure_streams() -> None:
    """Make closed streams lead nowhere, and spell out text a stream's encoding does not have."""
    if sys.stdin is None:
        sys.stdin = open(os.devnull, encoding="utf-8")  # noqa: SIM115
    if sys.stdout is None:
        sys.stdout = open(os.devnull, "w", encoding="utf-8")  # noqa: SIM115
    if sys.stderr is None:
        sys.stderr = open(os.devnull, "w", encoding="utf-8")  # noqa: SIM115
    for stream in (sys.stdout, sys.stderr):
        # Embedders and tests may have put something simpler in their place.
        if hasattr(stream, "reconfigure"):
            stream.reconfigure(errors="backslashreplace")


def forget_typed() -> None:
    """Drop what was typed before a question whose answer must be meant for it."""
    if sys.stdin.isatty():
        import termios

        termios.tcflush(sys.stdin, termios.TCIFLUSH)


def visible(text: str) -> str:
    """Control characters spelled out, so that no reply can drive the terminal it is shown on.

    Those that turn the direction of the text around them count too.
    """
    return "".join(
        c if c in "\n\t" or c.isprintable() or not _drives(c) else _spelled(c) for c in text
    )


def unmistakable(text: str) -> str:
    """Text that somebody decides about: on one line, with everything unseen spelled out."""
    return "".join(c if c.isprintable() else _spelled(c) for c in text)


def _drives(character: str) -> bool:
    return character < " " or "\x7f" <= character < "\xa0" or character in _TURNING


def _spelled(character: str) -> str:
    code = ord(character)
    if character == "\n":
        return "\\n"
    return f"\\x{code:02x}" if code <= 0xFF else f"\\u{{{code:04x}}}"
