"""`python scripts/commit_message.py FILE`: whether a commit message says what changes and why.

The subject is `room: effect` in at most 90 characters; a body gives the reason.
"""

import re
import sys
from pathlib import Path
from typing import Final

_SUBJECT: Final = re.compile(r"[a-z][a-z0-9-]*: \S.*[^.\s]")
_MADE_BY_GIT: Final = ("Merge ", "Revert ", "fixup! ", "squash! ")
LONGEST: Final = 90


def problem(message: str) -> str | None:
    """What is wrong with a message, in one sentence."""
    lines = [line.rstrip() for line in message.splitlines() if not line.startswith("#")]
    subject, *rest = lines or [""]
    if subject.startswith(_MADE_BY_GIT):
        return None
    if not _SUBJECT.fullmatch(subject):
        return f"the subject must read `room: what changes for whom`, without a period: {subject!r}"
    if len(subject) > LONGEST:
        return f"the subject has {len(subject)} characters; {LONGEST} is the most"
    if rest and rest[0]:
        return "the line after the subject must be empty"
    if not any(rest):
        return "a body must give the reason for the change"
    return None


def main() -> int:
    found = problem(Path(sys.argv[1]).read_text("utf-8"))
    if found is not None:
        print(f"commit message: {found}", file=sys.stderr)
    return 0 if found is None else 1


if __name__ == "__main__":
    sys.exit(main())
