"""Answers to those who ask about the rules and grants of a gate. Nothing here allows anything."""

from stringd import __version__
from stringd.gate.attempts import granted_caller
from stringd.gate.callers import CallerId
from stringd.gate.display import pipeline_text
from stringd.gate.errors import RefusalError
from stringd.gate.explain import decision_object, decision_text, explained
from stringd.gate.policy import StandingPolicy
from stringd.gate.question import AskingPeer
from stringd.gate.validate import ValidatedRequest
from stringd.wire.gate import Blob, Response, Status


def grants_response(request: ValidatedRequest, policy: StandingPolicy) -> Response:
    """What is granted now."""
    grants = policy.grants.listed()
    text = "\n".join(map(_grant_text, grants)) or "nothing is granted"
    return Response(
        request.id,
        Status.OK,
        stdout=Blob(),
        message=text,
        version=__version__,
        grants=tuple(grants),
    )


def revoke(request: ValidatedRequest, policy: StandingPolicy) -> tuple[list[int], Response]:
    """End a grant, or all of them. Raises `RefusalError` for one that there is not."""
    which = request.grant
    if which != "all" and not (which.isascii() and which.isdigit() and len(which) < 10):
        raise RefusalError("grant must be a number or all")
    ended = policy.grants.revoke(None if which == "all" else int(which))
    if which != "all" and not ended:
        raise RefusalError(f"there is no grant {which}")
    text = f"revoked: {' '.join(map(str, ended))}" if ended else "nothing is granted"
    return ended, Response(request.id, Status.OK, stdout=Blob(), message=text, version=__version__)


def explain_response(
    request: ValidatedRequest, who: CallerId, peer: AskingPeer, policy: StandingPolicy
) -> Response:
    """What would be decided if the same caller asked for it now."""
    ruling = explained(request, granted_caller(who, peer, request), policy)
    return Response(
        request.id,
        Status.OK,
        stdout=Blob(),
        message=decision_text(ruling),
        version=__version__,
        decision=decision_object(ruling),
    )


def _grant_text(grant: object) -> str:
    if not isinstance(grant, dict):
        return ""
    command = pipeline_text(grant["pipeline"])
    env = "".join(f"{name}={value!r} " for name, value in grant["env"].items())
    left = f"{grant['seconds_left']} s and {grant['uses_left']} uses left"
    who = f"{grant['session'] or '(unnamed)'}, {grant['program']} (pid {grant['pid']})"
    return f"{grant['grant']}  {left}  {env}{command}  for {who}"
