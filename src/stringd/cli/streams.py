"""Standard streams a command can rely on."""

import os
import sys


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


def visible(text: str) -> str:
    """Control characters spelled out, so that no reply can drive the terminal it is shown on."""
    return "".join(
        c
        if c in "\n\t" or c.isprintable() or not (c < " " or "\x7f" <= c < "\xa0")
        else f"\\x{ord(c):02x}"
        for c in text
    )
