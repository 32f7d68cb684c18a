"""What happened, in words for the audit log and lines for the approver. Pure."""

from collections.abc import Iterator
from hashlib import sha256
from typing import Final

from stringd.gate.capture import Capture
from stringd.gate.display import (
    Line,
    Span,
    Style,
    clipped,
    first_lines,
    line,
    pipeline_text,
    render,
)
from stringd.gate.execute import Outcome
from stringd.gate.question import MAX_NAME, MAX_REASON, Question, digest
from stringd.wire.gate import encode_pipeline

ECHOED_LINES: Final = 3
MAX_LOGGED: Final = 1024
MAX_RECEIVED: Final = 65_536
MAX_TAILED: Final = 200


def received_fields(question: Question) -> dict[str, object]:
    """The audit record of a request.

    Nobody has approved it yet, so it takes little room whatever the caller sent.
    """
    request, peer = question.request, question.peer
    fields: dict[str, object] = {
        "peer": {"pid": peer.pid, "uid": peer.uid, "exe": peer.exe},
        "session": request.session[:MAX_NAME],
        "host": request.host[:MAX_NAME],
        "reason": request.reason[:MAX_REASON],
        "digest": digest(request),
        "privileged": request.privileged,
        "forward_agent": request.forward_agent,
    }
    if is_large(question):
        encoded = encode_pipeline(request.pipeline)
        start = encoded[:MAX_LOGGED].decode("ascii")
        return fields | {"pipeline_bytes": len(encoded), "pipeline_start": start}
    return fields | command_fields(question)


def command_fields(question: Question) -> dict[str, object]:
    """What was asked for, whole."""
    return {
        "pipeline": question.request.pipeline,
        "programs": [program.path for program in question.programs],
        "env": dict(question.request.env),
    }


def is_large(question: Question) -> bool:
    """Whether the whole command is recorded only once it is approved."""
    env = sum(len(name) + len(value) for name, value in question.request.env.items())
    return env + len(encode_pipeline(question.request.pipeline)) > MAX_RECEIVED


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


def outcome_lines(request_id: str, outcome: Outcome, columns: int) -> Iterator[Line]:
    """The echo of a result: exit codes, then the first lines of each stream."""
    codes = [code if code >= 0 else -1 for code in outcome.codes]
    text = f"exit {codes[0]}" if len(codes) == 1 else f"exit {codes}"
    style = Style.BOLD if codes[-1] != 0 else Style.DIM
    signals = [f"  stage {i}: signal {-code}" for i, code in enumerate(outcome.codes) if code < 0]
    rest = f"{''.join(signals)}  {render(request_id)[:36]}"
    yield (Span(text, style), Span(rest, Style.DIM))
    yield from _stream_lines("stdout", outcome.stdout, columns)
    for index, stderr in enumerate(outcome.stderrs):
        name = "stderr" if len(outcome.stderrs) == 1 else f"stderr[{index}]"
        yield from _stream_lines(name, stderr, columns)


def error_line(request_id: str, message: str) -> Line:
    """The echo of a request that did not run, or did not end well."""
    return (Span(f"error: {message}", Style.BOLD), Span(f"  {render(request_id)[:36]}", Style.DIM))


def refusal_line(request_id: str, ending: str) -> Line:
    """The echo of a request that came to nothing without anything being wrong."""
    return line(f"{ending}  {render(request_id)[:36]}", Style.DIM)


def log_line(question: Question) -> str:
    """One line per request for `--verbose`."""
    request = question.request
    kind = "privileged" if request.privileged else "unprivileged"
    client = clipped(request.version, MAX_NAME) or "(unknown)"
    command = clipped(pipeline_text(request.pipeline), MAX_LOGGED)
    return f"[{clipped(request.id, MAX_NAME)}] [{kind}] [client {client}] {command}"


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


def audit_line(record: dict[str, object]) -> str:
    """One audit record for people."""
    parts = [str(record.get("time", "")), str(record.get("event", "")), str(record.get("id", ""))]
    pipeline = record.get("pipeline")
    if isinstance(pipeline, list):
        kind = "privileged" if record.get("privileged") else "unprivileged"
        text = pipeline_text([[str(word) for word in stage] for stage in pipeline])
        parts += [kind, clipped(text, MAX_TAILED)]
    for name in ("decision", "by", "note", "exit_codes", "message", "how", "version"):
        if record.get(name) not in (None, "", []):
            parts.append(f"{name}={record[name]}")
    return render("  ".join(part for part in parts if part))
