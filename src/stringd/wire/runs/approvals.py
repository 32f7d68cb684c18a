"""How a human step of a flow asks, and how its answer is read. Both go as an ordinary question."""

import re
from typing import Final, Literal, NamedTuple

TOOL_NAME: Final = "approve"
"""What `toolName` of the question says."""
_HOW: Final = 'Answer "yes", "no" and why, or "edit:" and the text to use instead.'
_AGAIN: Final = "That was neither a yes, a no nor an edit."
_YES: Final = frozenset(("y", "yes", "ok", "okay", "approve", "approved"))
_NO: Final = frozenset(("n", "no", "reject", "rejected", "deny"))
_EDIT: Final = re.compile(r"\s*edit\s*[:\n] ?(.*\S.*)", re.DOTALL | re.IGNORECASE)


class StepApproval(NamedTuple):
    """What was decided. `text` is why not, or what is to be used instead."""

    verdict: Literal["yes", "no", "edit"]
    text: str = ""


def approval_question(text: str, message: str, *, again: bool = False) -> str:
    """What the human reads: the step's text, what it is about, and how to answer."""
    parts = [_AGAIN if again else "", text, message, _HOW]
    return "\n\n".join(part.strip() for part in parts if part.strip())


def read_approval(answer: str) -> StepApproval | None:
    """What an answer decides; None when it is not clear, so that it is asked again."""
    edited = _EDIT.fullmatch(answer)
    if edited is not None:
        return StepApproval("edit", edited[1])
    word, rest = [*answer.split(None, 1), "", ""][:2]
    word, rest = word.lower().rstrip(",:;.!"), rest.strip()
    if word in _YES and not rest:
        return StepApproval("yes")
    return StepApproval("no", rest) if word in _NO else None
