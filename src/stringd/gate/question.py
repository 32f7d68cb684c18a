"""What the person at the terminal reads. Pure: a question and a terminal size in, lines out.

The side fields come first and are bounded. Everything that reaches the command comes after them,
complete, next to the question. Where it does not fit it is given in pages, and whoever shows them
lets nobody approve before the last one was seen.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import islice
from typing import Final, NamedTuple

from stringd.gate.arguments import ChangeableFiles
from stringd.gate.characters import deceives, describe
from stringd.gate.display import (
    NON_ASCII_FLAG,
    Line,
    Span,
    Style,
    clipped,
    command_lines,
    command_words,
    fitted,
    flagged,
    in_order,
    labelled,
    line,
    pipeline_text,
    pipeline_words,
    quote,
    render,
    width_of,
)
from stringd.gate.hints import hints
from stringd.gate.program import Route, ShownProgram
from stringd.gate.sha import sha256
from stringd.gate.subject import permission_lines
from stringd.gate.trust import Weakness
from stringd.gate.validate import SCANNED_FIELDS, ValidatedRequest
from stringd.wire.gate import encode_pipeline

AS_ROOT_HEADER: Final = "━━━ Privilege Request ━━━ stringd gate ━━━"
PERMISSION_HEADER: Final = "━━━ Permission request ━━━ stringd gate ━━━"
PLAIN_HEADER: Final = "━━━ Command request ━━━ stringd gate ━━━"
MAX_REASON: Final = 500
MAX_NAME: Final = 128
MAX_PATH: Final = 256
# More than this is not taken in at a glance, however large the terminal.
MAX_AT_A_GLANCE: Final = 1024
MAX_LINES_LISTED: Final = 200
MAX_CODE_POINTS: Final = 8
# What the screen has below a page: a message, two hints, the state and the question.
ROWS_BELOW: Final = 5


class Size(NamedTuple):
    columns: int
    rows: int


@dataclass(frozen=True, slots=True)
class AskingPeer:
    """Who is at the other end of the connection, as the kernel says."""

    pid: int
    uid: int
    exe: str
    cwd: str = ""
    # The outermost program of its tree, where that is another one.
    origin: str = ""
    # The agent above it, by the name it gave its process.
    agent: str = ""
    # The program it says it asks for, where the kernel knows one of that number.
    behind: str = ""


@dataclass(frozen=True, slots=True)
class Question:
    """A request and what was found out about it, ready to be asked."""

    request: ValidatedRequest
    programs: tuple[ShownProgram, ...]
    peer: AskingPeer
    # By whom it will run: the name of the account, and the sudo that makes it root.
    account: str = ""
    sudo: ShownProgram | None = None
    # What the command opens by itself and others than root can change until then.
    files: ChangeableFiles = ChangeableFiles()  # noqa: RUF009  (a value)
    # What the command gets besides what the request set.
    env: Mapping[str, str] = field(default_factory=dict)
    # Why it cannot be granted for a while; empty if it can.
    no_grant: str = ""
    # Where the account lives that it will run as.
    home: str = ""
    # The way to the machine it runs on, if that is another one.
    route: Route | None = None

    @property
    def as_root(self) -> bool:
        """Whether it will run as root, be it because the gate or the login there is root."""
        if self.route is not None and self.route.host.destination.startswith("root@"):
            return True
        return self.request.privileged or (self.account == "root" and not self.request.is_decision)

    @property
    def elsewhere(self) -> str:
        """The name of the machine it runs on, if that is another one."""
        return "" if self.route is None else self.route.host.name


def digest(request: ValidatedRequest) -> str:
    """The SHA-256 of the pipeline as it is written on the wire, or of what is to be decided."""
    if request.is_decision:
        return sha256(f"{request.tool}\n{request.text}".encode()).hexdigest()
    return sha256(encode_pipeline(request.pipeline)).hexdigest()


def compose(question: Question, size: Size) -> list[list[Line]]:
    """The question in pages, each short enough to leave room below it."""
    side = list(_side_lines(question, size.columns))
    body = list(body_lines(question, size.columns))
    height = max(size.rows - ROWS_BELOW, 3)
    length = _length(question.request)
    if len(side) + len(body) > height:
        side = list(_compact_side(question, size.columns))
    if length <= MAX_AT_A_GLANCE and len(side) + len(body) <= height:
        return [side + body]
    summary = labelled("Length:  ", _summary(question.request, length), size.columns, Style.BOLD)
    lines = [side[0], *summary, *side[1:], *body]
    if length > MAX_AT_A_GLANCE:
        # However tall the terminal, the end must be paged to.
        height = min(height, len(side) + len(summary) + max(1, len(body) // 2))
    return [lines[start : start + height] for start in range(0, len(lines), height)]


def details(question: Question, size: Size) -> list[list[Line]]:
    """Every word on a line of its own, the whole environment and odd characters, in pages."""
    height = max(size.rows - ROWS_BELOW, 3)
    lines = list(word_lines(question, size.columns))
    return [lines[start : start + height] for start in range(0, len(lines), height)]


def prompt(question: Question, timeout: int) -> str:
    """The last row: what is asked."""
    if question.request.is_decision:
        return f"Allow? [y/N] ({timeout}s timeout, default=N)"
    return question_text(as_root=question.as_root, timeout=timeout, elsewhere=question.elsewhere)


def question_text(*, as_root: bool, timeout: int, elsewhere: str = "") -> str:
    """The question itself, literal for every client of this protocol."""
    rank = " as root" if as_root else ""
    place = f" on {elsewhere}" if elsewhere else ""
    return f"Execute{rank}{place}? [y/N] ({timeout}s timeout, default=N)"


def word_lines(question: Question, columns: int) -> Iterator[Line]:
    """One line per word, with the code points of whatever is not plain ASCII; bounded."""
    lines = _all_word_lines(question, columns)
    yield from islice(lines, MAX_LINES_LISTED)
    if next(lines, None) is not None:
        yield line("  … and more: the pages of the question have all of it", Style.DIM)


def _all_word_lines(question: Question, columns: int) -> Iterator[Line]:
    for i, stage in enumerate(question.request.pipeline):
        for j, word in enumerate(stage):
            yield from command_lines(f"  [{i}][{j}] ", [quote(word)], columns)
            yield from _code_points(word)
    for name, value in {**question.env, **question.request.env}.items():
        yield from command_lines("  env ", [f"{render(name)}={quote(value)}"], columns, Style.PLAIN)
        yield from _code_points(value)
    yield from _code_points(question.request.text)
    yield from _side_lines(question, columns)
    for name in SCANNED_FIELDS:
        if deceives(text := getattr(question.request, name)):
            yield line(f"  {name}:", Style.DIM)
            yield from _code_points(text)
    for weak in _weak_places(question):
        yield from labelled("  changeable: ", f"{flagged(weak.path)}, by {weak.who}", columns)


def _weak_places(question: Question) -> list[Weakness]:
    found = [weak for program in question.programs for weak in program.weaknesses]
    return list(dict.fromkeys([*found, *question.files.named]))


def _length(request: ValidatedRequest) -> int:
    env = sum(len(name) + len(value) + 2 for name, value in request.env.items())
    return len(pipeline_text(request.pipeline)) + env + len(request.text)


def _summary(request: ValidatedRequest, length: int) -> str:
    if request.is_decision:
        lines = request.text.count("\n") + 1
        return f"{lines} lines, {length} characters, sha256 {digest(request)[:16]}"
    count = len(request.pipeline)
    stages = "1 stage" if count == 1 else f"{count} stages"
    return f"{stages}, {length} characters, sha256 {digest(request)[:16]}"


def _side_lines(question: Question, columns: int) -> Iterator[Line]:
    request = question.request
    yield _header(request)
    yield from labelled("From:    ", _who(request), columns)
    yield from labelled("Client:  ", client_text(question), columns)
    if text := _for_whom(question):
        yield from labelled("For:     ", text, columns)
    yield from labelled("Time:    ", render(request.time), columns)
    yield from labelled("ID:      ", clipped(request.id, MAX_NAME), columns)
    if request.reason:
        yield from labelled("Reason:  ", clipped(request.reason, MAX_REASON), columns, Style.BOLD)


def _header(request: ValidatedRequest) -> Line:
    if request.is_decision:
        return line(PERMISSION_HEADER, Style.BOLD)
    return line(AS_ROOT_HEADER if request.privileged else PLAIN_HEADER, Style.BOLD)


def _who(request: ValidatedRequest) -> str:
    session = clipped(request.session, MAX_NAME) or "(unnamed)"
    place = "" if request.is_remote else clipped(request.host, MAX_NAME)
    return f"{session} @ {place or 'local'}"


def _compact_side(question: Question, columns: int) -> Iterator[Line]:
    """The side fields where there is little room; the details have them whole."""
    request = question.request
    yield _header(request)
    yield line(fitted(f"From:    {_who(request)}", columns))
    yield line(fitted(f"Client:  {client_text(question)}", columns))
    if text := _for_whom(question):
        yield line(fitted(f"For:     {text}", columns))
    yield line(fitted(f"ID:      {request.id}", columns))
    if request.reason:
        yield line(fitted(f"Reason:  {clipped(request.reason, MAX_REASON)}", columns), Style.BOLD)


def client_text(question: Question) -> str:
    """Who asks, by the kernel's word, behind the version it gives itself."""
    version = clipped(question.request.version, MAX_NAME) or "(unknown)"
    peer = question.peer
    text = f"{version}, {clipped(peer.exe, MAX_PATH)} (pid {peer.pid})"
    if peer.origin:
        text += f" of {clipped(peer.origin, MAX_PATH)}"
    if peer.agent:
        text += f", by {clipped(peer.agent, MAX_NAME)}"
    return f"{text} in {clipped(peer.cwd, MAX_PATH)}" if peer.cwd else text


def _for_whom(question: Question) -> str:
    """Whom a program that speaks for others asks for, in its own words."""
    request = question.request
    if not (request.client or request.directory or question.peer.behind):
        return ""
    text = clipped(request.client, MAX_NAME) or "(unnamed)"
    if question.peer.behind:
        text += f", {clipped(question.peer.behind, MAX_PATH)}"
    return f"{text} in {clipped(request.directory, MAX_PATH)}" if request.directory else text


def body_lines(question: Question, columns: int) -> Iterator[Line]:
    """All that reaches the command, whole."""
    request = question.request
    if request.is_decision:
        yield from permission_lines(request, columns)
        return
    if request.env:
        words = [f"{render(name)}={quote(value)}" for name, value in sorted(request.env.items())]
        tag = NON_ASCII_FLAG if not all(map(str.isascii, words)) else ""
        yield from _tagged(command_lines("Env:     ", words, columns, Style.PLAIN), tag, columns)
    yield from _command_lines(question, columns)
    yield from _cautions(question, columns)
    yield from _place_lines(question, columns)
    if risks := hints(request.pipeline, question.programs, request.env, question.home):
        text = fitted(f"Risk:    {', '.join(risks)}", columns)
        yield line(text, Style.BOLD)
    yield from labelled("Runs:    ", _how_it_runs(question), columns)


def _command_lines(question: Question, columns: int) -> Iterator[Line]:
    request = question.request
    words = pipeline_words(request.pipeline)
    tags = _tags(question)
    if len(request.pipeline) == 1:
        yield from _tagged(command_lines("Command: ", words, columns), tags, columns)
        for program in question.programs:
            yield from _resolution("Resolves: ", program, columns)
        return
    if sum(width_of(word) + 1 for word in words) + 10 > columns:
        words = [f"{len(request.pipeline)} stages"]
    yield from _tagged(command_lines("Command: ", words, columns), tags, columns)
    for number, stage in enumerate(request.pipeline, start=1):
        yield from command_lines(f"{number:>3}. ", command_words(stage), columns)
        for program in question.programs[number - 1 : number]:
            yield from _resolution("     Resolves: ", program, columns)
    for program in question.programs[1:]:
        if program.path is None:
            warning = f"{quote(program.word)} not found in PATH"
            yield from labelled("Warning:  ", warning, columns, Style.BOLD)


def _cautions(question: Question, columns: int) -> Iterator[Line]:
    """What others than root can still change."""
    named: set[str] = set()
    for program in question.programs:
        if program.path is None or not program.weaknesses or program.path in named:
            continue
        named.add(program.path)
        weak = program.weaknesses[-1]
        text = f"{weak.who} can change {flagged(weak.path)}; if it changes, nothing is run"
        yield from labelled("Caution: ", text, columns, Style.BOLD)
    for weak in question.files.named:
        text = f"{weak.who} can change {flagged(weak.path)} until it is used"
        yield from labelled("Caution: ", text, columns, Style.BOLD)
    if question.files.more:
        text = "not all of its files were looked at; others can change more of them"
        yield from labelled("Caution: ", text, columns, Style.BOLD)


def _place_lines(question: Question, columns: int) -> Iterator[Line]:
    """The other machine: its name, where it is, and the key it must show."""
    if (route := question.route) is None:
        return
    host = route.host
    place = f"{render(host.name)} ({render(host.address)}, {host.fingerprint})"
    yield from labelled("Host:    ", place, columns, Style.ELSEWHERE)
    if route.caution:
        yield from labelled("Caution: ", f"{host.name}: {route.caution}", columns, Style.BOLD)


def _how_it_runs(question: Question) -> str:
    if (route := question.route) is not None:
        by = f"by {flagged(route.ssh.path or '')}"
        programs = "with the programs it finds there"
        if not question.request.privileged:
            return f"on {question.elsewhere} as its login in /, {by}, {programs}"
        sudo = "" if route.host.destination.startswith("root@") else ", through sudo there"
        return f"as root on {question.elsewhere} in /{sudo}, {by}, {programs}"
    if question.sudo is not None:
        return f"as root in /, through {flagged(question.sudo.path or '')}"
    return f"as {render(question.account)} in /" if question.account else "in /"


def _tags(question: Question) -> str:
    words = [word for stage in question.request.pipeline for word in stage]
    flag = "" if all(map(str.isascii, words)) else NON_ASCII_FLAG
    return flag + (" (agent forwarded)" if question.request.forward_agent else "")


def _tagged(lines: list[Line], tags: str, columns: int) -> list[Line]:
    """Tags behind the last line, or below it where there is no room."""
    if not tags:
        return lines
    if sum(width_of(span.text) for span in lines[-1]) + len(tags) > columns:
        return [*lines, (Span("        "), Span(tags, Style.DIM))]
    return [*lines[:-1], (*lines[-1], Span(tags, Style.DIM))]


def _resolution(label: str, program: ShownProgram, columns: int) -> Sequence[Line]:
    if program.path is None:
        return labelled(label, "(not found in PATH)", columns, Style.BOLD)
    if program.is_as_written:
        return []
    path = _path(program.path)
    if program.real is None:
        return labelled(label, f"{path} (canonicalize failed)", columns, Style.BOLD)
    if program.real == program.path:
        return labelled(label, path, columns)
    style = Style.BOLD if "/" in program.word else Style.PLAIN
    return labelled(label, f"{path} -> {_path(program.real)}", columns, style)


def _path(path: str) -> str:
    return in_order(path) + ("" if path.isascii() else NON_ASCII_FLAG)


def _code_points(text: str) -> Iterator[Line]:
    seen = sorted({character for character in text if not character.isascii() or character == "\t"})
    for character in seen[:MAX_CODE_POINTS]:
        yield line(f"         {render(character)}  {describe(character)}", Style.DIM)
    if len(seen) > MAX_CODE_POINTS:
        yield line(f"         … and {len(seen) - MAX_CODE_POINTS} more characters", Style.DIM)
