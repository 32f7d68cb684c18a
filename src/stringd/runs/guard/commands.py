"""Command lines no agent should run unasked."""

import re
from typing import Final

from stringd.runs.guard.policy import CommandPolicy

_WORDS: Final = r"(?:[^\s;&|]+[ \t]+)*"
_EVERYTHING: Final = r"(?:/|~|/\*|~/|~/\*|\$HOME|\$\{HOME\}|\$HOME/|/\.\*?)(?=\s|[;&|)]|$)"
_SHELL: Final = r"(?:\S*/)?(?:ba|z|da|k|fi)?sh\b"
_START: Final = (
    r"(?:^|[;&|(`\n]|\$\()\s*(?:\w+=\S*\s+)*(?:sudo\s+(?:-\S+\s+)*|env\s+|exec\s+|nohup\s+)*"
)

# A guard rail against accidents: a shell has a hundred ways to say each of these.
DANGEROUS: Final = CommandPolicy(
    "deny-commands",
    "deny",
    tuple(
        re.compile(pattern)
        for pattern in (
            # rm -rf /, rm -r -f ~, rm --recursive --no-preserve-root /*
            rf"\brm[ \t]+(?={_WORDS}(?:-[a-zA-Z]*[rR]|--recursive)){_WORDS}{_EVERYTHING}",
            r"\bmkfs(?:\.\w+)?\b",
            r"\bdd[ \t]+[^;&|\n]*\bif=",
            r":\s*\(\s*\)\s*\{[^}]*:\s*\|\s*:",
            rf"\b(?:curl|wget)\b[^;&]*\|\s*(?:sudo\s+(?:-\S+\s+)*|env\s+)*{_SHELL}",
            rf"{_SHELL}\s+(?:-c\s+)?(?:<\(|\$\(|`)\s*(?:curl|wget)\b",
            rf"{_START}(?:\S*/)?(?:shutdown|reboot|halt|poweroff)\b",
            r"\bsystemctl[ \t]+[^;&|\n]*\b(?:reboot|poweroff|halt)\b",
        )
    ),
)


def approval(patterns: tuple[str, ...]) -> CommandPolicy:
    """The owner's list of commands to ask about. Raises `re.error`."""
    return CommandPolicy("approve-commands", "ask", tuple(re.compile(each) for each in patterns))
