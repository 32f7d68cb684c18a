"""What the person at the terminal reads. Pure: a question and a terminal size in, lines out.

The side fields come first and are bounded; the command comes last, next to the question, complete.
Where it does not fit it is given in pages, and `Screen` says so until the last one was shown.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from hashlib import sha256
from itertools import islice
from typing import Final, NamedTuple

from stringd.gate.characters import deceives, describe
from stringd.gate.display import (
    NON_ASCII_FLAG,
    Line,
    Span,
    Style,
    clipped,
    command_lines,
    command_text,
    flagged,
    labelled,
    line,
    pipeline_text,
    quote,
    render,
    width_of,
)
from stringd.gate.program import Program
from stringd.gate.validate import SCANNED_FIELDS, ValidatedRequest
from stringd.wire.gate import encode_pipeline

HEADER: Final = "━━━ Privilege Request ━━━ stringd gate ━━━"
MAX_REASON: Final = 500
MAX_NAME: Final = 128
MAX_ENV_VALUE: Final = 256
MAX_ENV_SHOWN: Final = 20
# More than this is not taken in at a glance, however large the terminal.
MAX_AT_A_GLANCE: Final = 1024
MAX_LINES_LISTED: Final = 200
MAX_CODE_POINTS: Final = 8
# The hint, the waiting count, the question and a spare line.
_ROWS_BELOW: Final = 4


class Size(NamedTuple):
    columns: int
    rows: int


@dataclass(frozen=True, slots=True)
class Peer:
    """Who is at the other end of the connection, as the kernel tells it."""

    pid: int
    uid: int
    exe: str


@dataclass(frozen=True, slots=True)
class Question:
    """A request and what was found out about it, ready to be asked."""

    request: ValidatedRequest
    programs: tuple[Program, ...]
    peer: Peer


class Screen(NamedTuple):
    """A composed question: what is shown at once, and the rest of the command in pages."""

    opening: list[Line]
    pages: list[list[Line]]
    hint: Line


def digest(request: ValidatedRequest) -> str:
    """The SHA-256 of the pipeline as it is written on the wire."""
    return sha256(encode_pipeline(request.pipeline)).hexdigest()


def compose(question: Question, size: Size) -> Screen:
    """The screen of a question."""
    side = list(_side_lines(question, size.columns))
    command = list(_command_section(question, size.columns))
    length = len(pipeline_text(question.request.pipeline))
    if length <= MAX_AT_A_GLANCE and len(command) + _ROWS_BELOW <= size.rows:
        return Screen(side + command, [], line("? every word   n deny with a note", Style.DIM))
    room = max(size.rows - len(side) - _ROWS_BELOW - 3, 5)
    if length > MAX_AT_A_GLANCE:
        # However tall the terminal, the end must be paged to.
        room = min(room, max(1, len(command) // 2))
    page = max(size.rows - _ROWS_BELOW, 5)
    rest = command[room:]
    pages = [rest[start : start + page] for start in range(0, len(rest), page)]
    summary = labelled("Length:  ", _summary(question.request, length), size.columns, Style.BOLD)
    more = line(f"{more_lines(len(rest))}: press v; y works at the end.", Style.BOLD)
    return Screen([*side, *summary, *command[:room], more], pages, _paging_hint())


def more_lines(count: int) -> str:
    return f"… {count} more line{'' if count == 1 else 's'}"


def question_text(*, privileged: bool, timeout: int) -> str:
    """The question itself, literal for every client of this protocol."""
    asked = "Execute as root?" if privileged else "Execute?"
    return f"{asked} [y/N] ({timeout}s timeout, default=N)"


def word_lines(question: Question, columns: int) -> Iterator[Line]:
    """One line per word, with the code points of whatever is not plain ASCII; bounded."""
    lines = _all_word_lines(question, columns)
    yield from islice(lines, MAX_LINES_LISTED)
    if next(lines, None) is not None:
        yield line("  … and more: press v for the whole command", Style.DIM)


def _all_word_lines(question: Question, columns: int) -> Iterator[Line]:
    for i, stage in enumerate(question.request.pipeline):
        for j, word in enumerate(stage):
            yield from command_lines(f"  [{i}][{j}] ", quote(word), columns)
            yield from _code_points(word)
    for name, text in _side_texts(question.request):
        if deceives(text):
            yield line(f"  {name}:", Style.DIM)
            yield from _code_points(text)


def _side_texts(request: ValidatedRequest) -> Iterator[tuple[str, str]]:
    for name in SCANNED_FIELDS:
        yield name, getattr(request, name)
    yield from request.env.items()


def _paging_hint() -> Line:
    return line("v read on   ? every word   n deny with a note", Style.DIM)


def _summary(request: ValidatedRequest, length: int) -> str:
    count = len(request.pipeline)
    stages = "1 stage" if count == 1 else f"{count} stages"
    return f"{stages}, {length} characters, sha256 {digest(request)[:16]}"


def _side_lines(question: Question, columns: int) -> Iterator[Line]:
    request = question.request
    yield line("")
    yield line(HEADER, Style.BOLD)
    session = clipped(request.session, MAX_NAME) or "(unnamed)"
    host = clipped(request.host, MAX_NAME) or "local"
    yield from labelled("From:    ", f"{session} @ {host}", columns)
    yield from labelled("Client:  ", _client(question), columns)
    yield from labelled("Time:    ", render(request.time), columns)
    yield from labelled("ID:      ", clipped(request.id, MAX_NAME), columns)
    if request.reason:
        yield from labelled("Reason:  ", clipped(request.reason, MAX_REASON), columns, Style.BOLD)
    if request.env:
        yield from labelled("Env:     ", _env_text(request), columns)


def _client(question: Question) -> str:
    version = clipped(question.request.version, MAX_NAME) or "(unknown)"
    peer = question.peer
    return f"{version}, {clipped(peer.exe, MAX_ENV_VALUE)} (pid {peer.pid})"


def _env_text(request: ValidatedRequest) -> str:
    # Only locale names can be many, so whatever else there is comes first and is always shown.
    names = sorted(request.env, key=lambda name: name.startswith("LC_"))
    shown = [_assignment(name, request.env[name]) for name in names[:MAX_ENV_SHOWN]]
    if hidden := len(names) - len(shown):
        shown.append(f"… ({hidden} more variables)")
    return " ".join(shown)


def _assignment(name: str, value: str) -> str:
    hidden = len(value) - MAX_ENV_VALUE
    shown = f"{clipped(name, MAX_NAME)}={flagged(quote(value[:MAX_ENV_VALUE]))}"
    return f"{shown}… ({hidden} more characters)" if hidden > 0 else shown


def _command_section(question: Question, columns: int) -> Iterator[Line]:
    request = question.request
    whole = pipeline_text(request.pipeline)
    tags = _tags(question)
    if len(request.pipeline) == 1:
        yield from _tagged(command_lines("Command: ", whole, columns), tags, columns)
        yield from _resolution("Resolves: ", question.programs[0], columns)
        return
    if width_of(whole) + 10 > columns:
        whole = f"{len(request.pipeline)} stages"
        yield from _tagged([line(f"Command: {whole}", Style.BOLD)], tags, columns)
    else:
        yield from _tagged(command_lines("Command: ", whole, columns), tags, columns)
    for number, (stage, program) in enumerate(
        zip(request.pipeline, question.programs, strict=True), start=1
    ):
        yield from command_lines(f"{number:>3}. ", command_text(stage), columns)
        yield from _resolution("     Resolves: ", program, columns)
    for program in question.programs[1:]:
        if program.path is None:
            warning = f"{quote(program.word)} not found in PATH"
            yield from labelled("Warning:  ", warning, columns, Style.BOLD)


def _tags(question: Question) -> str:
    words = [word for stage in question.request.pipeline for word in stage]
    flag = NON_ASCII_FLAG if deceives("".join(words)) else ""
    return flag + (" (agent forwarded)" if question.request.forward_agent else "")


def _tagged(lines: list[Line], tags: str, columns: int) -> list[Line]:
    """Tags behind the last line, or below it where there is no room."""
    if not tags:
        return lines
    if sum(width_of(span.text) for span in lines[-1]) + len(tags) > columns:
        return [*lines, (Span("        "), Span(tags, Style.DIM))]
    return [*lines[:-1], (*lines[-1], Span(tags, Style.DIM))]


def _resolution(label: str, program: Program, columns: int) -> list[Line]:
    if program.path is None:
        return labelled(label, "(not found in PATH)", columns, Style.BOLD)
    if program.is_as_written:
        return []
    path = flagged(program.path)
    if program.real is None:
        return labelled(label, f"{path} (canonicalize failed)", columns, Style.BOLD)
    if program.real == program.path:
        return labelled(label, path, columns)
    style = Style.BOLD if "/" in program.word else Style.PLAIN
    return labelled(label, f"{path} -> {flagged(program.real)}", columns, style)


def _code_points(text: str) -> Iterator[Line]:
    seen = sorted({character for character in text if not character.isascii() or character == "\t"})
    for character in seen[:MAX_CODE_POINTS]:
        yield line(f"         {render(character)}  {describe(character)}", Style.DIM)
    if len(seen) > MAX_CODE_POINTS:
        yield line(f"         … and {len(seen) - MAX_CODE_POINTS} more characters", Style.DIM)
