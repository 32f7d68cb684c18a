"""What happened, in words for the audit log and lines for the approver. Pure."""

import re
from collections.abc import Iterator, Sequence
from typing import Final

from stringd.gate.capture import Capture
from stringd.gate.display import (
    Line,
    Span,
    Style,
    clipped,
    first_lines,
    fitted,
    line,
)
from stringd.gate.pipeline import Outcome
from stringd.gate.program import Route, ShownProgram
from stringd.gate.question import MAX_NAME, MAX_PATH, MAX_REASON, AskingPeer, digest
from stringd.gate.sha import sha256
from stringd.gate.subject import subject
from stringd.gate.validate import ValidatedRequest
from stringd.wire.gate import RequestAction, encode_pipeline

ECHOED_LINES: Final = 10
MAX_LOGGED: Final = 1024
MAX_RECEIVED: Final = 8192
_FOLDERS: Final = re.compile(r"rule:/(?:[^:]*/)?")


def received_fields(request: ValidatedRequest, peer: AskingPeer) -> dict[str, object]:
    """The audit record of a request.

    Nobody has approved it yet, so it takes little room whatever the caller sent.
    """
    fields: dict[str, object] = {
        "peer": {"pid": peer.pid, "uid": peer.uid, "exe": peer.exe, "cwd": peer.cwd[:MAX_PATH]},
        "session": request.session[:MAX_NAME],
        "host": request.host[:MAX_NAME],
        "reason": request.reason[:MAX_REASON],
        "digest": digest(request),
        "privileged": request.privileged,
        "forward_agent": request.forward_agent,
    }
    fields |= {
        name: text[:MAX_PATH]
        for name in ("client", "directory")
        if (text := getattr(request, name))
    }
    fields |= {"action": request.action} if request.action is not RequestAction.EXEC else {}
    if is_large(request):
        if request.is_decision:
            start = request.text[:MAX_LOGGED]
            return fields | {"tool": request.tool, "text_start": start}
        encoded = encode_pipeline(request.pipeline)
        start = encoded[:MAX_LOGGED].decode("ascii")
        return fields | {"pipeline_bytes": len(encoded), "pipeline_start": start}
    return fields | command_fields(request)


def command_fields(request: ValidatedRequest) -> dict[str, object]:
    """What was asked for, whole."""
    if request.is_decision:
        return {"tool": request.tool, "text": request.text}
    return {"pipeline": request.pipeline, "env": dict(request.env)}


def program_fields(
    programs: Sequence[ShownProgram], sudo: ShownProgram | None, route: Route | None = None
) -> dict[str, object]:
    """What will run, for the record of an approval; each program once."""
    if route is not None:
        host = route.host
        key = {"address": host.address, "fingerprint": host.fingerprint}
        return {"machine": {"name": host.name, **key}, "ssh": route.ssh.path}
    known = {program.word: _program_record(program) for program in programs}
    by = {} if sudo is None else {"sudo": sudo.path}
    return {"programs": list(known.values()), **by}


def _program_record(program: ShownProgram) -> dict[str, object]:
    record: dict[str, object] = {"path": program.path}
    if program.real not in (None, program.path):
        record["real"] = program.real
    if program.identity is not None:
        record["inode"] = program.identity.inode
    if program.held is not None and program.held.digest is not None:
        record["sha256"] = program.held.digest
    return record


def is_large(request: ValidatedRequest) -> bool:
    """Whether the whole command is recorded only once it is approved."""
    env = sum(len(name) + len(value) for name, value in request.env.items())
    return env + len(encode_pipeline(request.pipeline)) + len(request.text) > MAX_RECEIVED


def recorded_id(request_id: str) -> str:
    """An id for the log: as it is, or cut and told apart by its digest."""
    if len(request_id) <= MAX_NAME:
        return request_id
    return f"{request_id[:MAX_NAME]}… sha256 {sha256(request_id.encode()).hexdigest()[:16]}"


def outcome_fields(outcome: Outcome) -> dict[str, object]:
    """The audit record of a finished command."""
    return {
        "exit_codes": outcome.codes,
        "stdout_bytes": outcome.stdout.total,
        "stderr_bytes": [stderr.total for stderr in outcome.stderrs],
        "duration_ms": outcome.duration_ms,
    }


def outcome_text(outcome: Outcome) -> str:
    """The exit code, or those of each stage."""
    codes = [code if code >= 0 else -1 for code in outcome.codes]
    return f"exit {codes[0]}" if len(codes) == 1 else f"exit {codes}"


def outcome_lines(request: ValidatedRequest, outcome: Outcome, columns: int) -> Iterator[Line]:
    """The echo of a result: exit codes and the command, then the first lines of each stream."""
    text = outcome_text(outcome)
    style = Style.BOLD if outcome.codes[-1] != 0 else Style.DIM
    signals = [f"  stage {i}: signal {-code}" for i, code in enumerate(outcome.codes) if code < 0]
    row = f"{text}{''.join(signals)}  {_duration(outcome.duration_ms)}  "
    yield line(_labelled(row, request, columns), style)
    yield from _stream_lines("stdout", outcome.stdout, columns)
    for index, stderr in enumerate(outcome.stderrs):
        name = "stderr" if len(outcome.stderrs) == 1 else f"stderr[{index}]"
        yield from _stream_lines(name, stderr, columns)


def error_line(request: ValidatedRequest, message: str, columns: int) -> Line:
    """The echo of a request that did not run, or did not end well."""
    return line(_labelled(f"error: {message}  ", request, columns), Style.BOLD)


def refusal_line(request: ValidatedRequest, ending: str, columns: int) -> Line:
    """The echo of a request that came to nothing without anything being wrong."""
    return line(_labelled(f"{ending}  ", request, columns), Style.DIM)


def standing_line(request: ValidatedRequest, by: str, when: str, columns: int) -> Line:
    """What runs without a question, and what allowed it."""
    rank = "as root: " if request.privileged else ""
    # The audit log has the whole path; here the command matters more.
    short = _FOLDERS.sub("rule:", by)
    return line(_labelled(f"{when} ▶ {short}  {rank}", request, columns), Style.BOLD)


def log_line(request: ValidatedRequest) -> str:
    """One line per request for `--verbose`."""
    kind = "privileged" if request.privileged else "unprivileged"
    client = clipped(request.version, MAX_NAME) or "(unknown)"
    command = clipped(subject(request), MAX_LOGGED)
    return f"[{clipped(request.id, MAX_NAME)}] [{kind}] [client {client}] {command}"


def _labelled(opening: str, request: ValidatedRequest, columns: int) -> str:
    """What happened and to which command, in one row: a caller's text starts no row of its own."""
    return fitted(opening + subject(request), columns)


def _duration(milliseconds: int) -> str:
    return f"{milliseconds} ms" if milliseconds < 1000 else f"{milliseconds / 1000:.1f} s"


def _stream_lines(name: str, stream: Capture, columns: int) -> Iterator[Line]:
    if not stream.kept:
        return
    count = stream.newlines + (0 if stream.ends_line else 1)
    counted = f"{count} line{'' if count == 1 else 's'}"
    if not stream.counted_all:
        counted = f"more than {stream.newlines} lines"
    cut = ", truncated" if count > ECHOED_LINES else ""
    yield line(f"== {name} == ({counted}{cut})", Style.DIM)
    # Behind a gutter, output cannot pass for a question of ours.
    for text in first_lines(stream.head.removesuffix(b"\n"), ECHOED_LINES, columns - 2):
        yield (Span("│ ", Style.DIM), Span(text))
