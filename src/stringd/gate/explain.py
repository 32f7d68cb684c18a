"""What would be decided about a command, in words and for programs. Decides nothing itself."""

from contextlib import ExitStack
from typing import Final

from stringd.gate.arguments import changeable_files
from stringd.gate.attempts import attempt_of, hold_programs
from stringd.gate.grants import GrantedCaller
from stringd.gate.judge import Sentence
from stringd.gate.policy import StandingPolicy
from stringd.gate.rules import Effect
from stringd.gate.validate import ValidatedRequest

ELSEWHERE: Final = "rules and grants are about programs of this machine"


def explained(request: ValidatedRequest, caller: GrantedCaller, policy: StandingPolicy) -> Sentence:
    """The decision of the policy about a request, without running or counting anything."""
    if request.is_remote:
        return Sentence(Effect.ASK, why=ELSEWHERE)
    with ExitStack() as held:
        programs = hold_programs(request, held)
        files = changeable_files(request.pipeline, programs, as_root=request.privileged)
        attempt = attempt_of(request, programs, files, caller, policy.rules)
        return policy.explain(attempt)


def decision_object(ruling: Sentence) -> dict[str, object]:
    """A decision for programs; what is not known is left out."""
    found: dict[str, object] = {"decision": str(ruling.effect), "why": ruling.why}
    if ruling.by:
        found["decided_by"] = ruling.by
    if ruling.stage is not None:
        found["stage"] = ruling.stage
    if ruling.word is not None:
        found["word"] = ruling.word
    return found


def decision_text(ruling: Sentence) -> str:
    """A decision in one line."""
    return f"{_WORDS[ruling.effect]}: {ruling.why}"


_WORDS: Final = {
    Effect.ALLOW: "runs without a question",
    Effect.ASK: "you are asked",
    Effect.DENY: "denied without a question",
}
