"""What crosses the gate's socket: one request line in, one response line out.

Everything here is a value or a codec. A `Request` is what a peer claims, with defaults filled in
and nothing checked beyond its JSON types; `stringd.gate.validate` decides whether to believe it.
"""

import binascii
import json
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, fields
from enum import StrEnum
from typing import Final, Self, TypeVar

from stringd.wire.jsonlines import JsonError, Members, parse, unique
from stringd.wire.search import find

MAX_REQUEST_BYTES: Final = 1_048_576
MAX_OUTPUT_BYTES: Final = 16 * 1024 * 1024
# Two full streams after base64, and room for the rest.
MAX_RESPONSE_BYTES: Final = 64 * 1024 * 1024
SOCKET_NAME: Final = "stringd-gate.sock"
HERE: Final = frozenset({"", "local", "localhost"})
"""Names that always mean the machine of the gate, never one of its list."""

# Below this, parsing the whole line is quicker than looking for the big string in it.
LARGE_LINE: Final = 65_536
# What ends a JSON string, or shows that it is not written as it is meant.
STOPS: Final = (b'"', b"\\")
_STDOUT_OPENING: Final = b'"stdout":"'

_T = TypeVar("_T")


class RequestAction(StrEnum):
    EXEC = "exec"
    STOP = "stop"
    PING = "ping"
    # Of this gate: what was granted for a while, ending that, and what would be decided.
    GRANTS = "grants"
    REVOKE = "revoke"
    EXPLAIN = "explain"
    REMOTE = "remote"
    """A command for the machine that `host` names; a gate that does not know this refuses it."""
    DECIDE = "decide"
    """What an agent is about to do itself: the person decides, and the gate runs nothing."""


class Status(StrEnum):
    OK = "ok"
    DENIED = "denied"
    TIMEOUT = "timeout"
    ERROR = "error"


class ResponseError(Exception):
    """A response line that is not one."""


@dataclass(frozen=True, slots=True)
class Request:
    """One request as its sender wrote it. `id` is None when the sender left it out."""

    pipeline: tuple[tuple[str, ...], ...] = ()
    id: str | None = None
    host: str = ""
    session: str = ""
    time: str = ""
    env: Mapping[str, str] = field(default_factory=dict)
    reason: str = ""
    # The most restrictive default: who forgets the field still meets approval and sudo.
    privileged: bool = True
    forward_agent: bool = False
    version: str = ""
    action: RequestAction = RequestAction.EXEC
    # Of `revoke`: which one, by its number, or `all`.
    grant: str = ""
    # Who asks through the sender, as the sender knows it: a program that speaks for others says so.
    client: str = ""
    directory: str = ""
    client_pid: int = 0
    # What is to be decided: which tool, and what it would do, in as many lines as that takes.
    tool: str = ""
    text: str = ""


_REQUEST_FIELDS: Final = frozenset(member.name for member in fields(Request))


class Blob:
    """Output bytes: plain for whoever reads them, base64 on the wire. Each side is made once."""

    __slots__ = ("_encoded", "_plain")

    def __init__(self, plain: bytes = b"") -> None:
        self._plain: bytes | None = plain
        self._encoded: Iterable[bytes | memoryview] = ()

    @classmethod
    def from_base64(cls, pieces: Iterable[bytes | memoryview]) -> Self:
        """Output as base64, in pieces that follow each other; they may be asked for repeatedly."""
        blob = cls()
        blob._plain, blob._encoded = None, pieces
        return blob

    @property
    def base64(self) -> Iterable[bytes | memoryview]:
        if self._plain is not None and not self._encoded:
            self._encoded = (binascii.b2a_base64(self._plain, newline=False),)
        return self._encoded

    def __bytes__(self) -> bytes:
        """The plain bytes. Raises `ResponseError` when the peer's text is not base64."""
        if self._plain is None:
            try:
                self._plain = binascii.a2b_base64(b"".join(self._encoded))
            except binascii.Error as error:
                raise ResponseError(f"output is not base64: {error}") from None
        return self._plain

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Blob) and bytes(self) == bytes(other)

    def __hash__(self) -> int:
        return hash(bytes(self))

    def __repr__(self) -> str:
        return f"Blob({bytes(self)[:40]!r})"


@dataclass(frozen=True, slots=True)
class Stage:
    """How one command of the pipeline ended. `exit_code` is -1 when a signal ended it."""

    exit_code: int
    stderr: Blob = field(default_factory=Blob)
    stderr_truncated: bool = False
    signal: int | None = None
    stderr_open: bool = False


@dataclass(frozen=True, slots=True)
class Response:
    """One answer. `ok` means it ran: look at `stages[-1].exit_code` for success."""

    id: str
    status: Status
    stages: tuple[Stage, ...] = ()
    stdout: Blob | None = None
    stdout_truncated: bool = False
    message: str | None = None
    version: str = ""
    stdout_open: bool = False
    duration_ms: int | None = None
    decided_by: str | None = None
    decision_note: str | None = None
    # Of `grants` and `explain`: JSON values for programs, beside the `message` for people.
    grants: tuple[Mapping[str, object], ...] | None = None
    decision: Mapping[str, object] | None = None


def decode_request(line: bytes) -> Request:
    """A `Request` from its line. Raises `JsonError` for anything but an object of right types."""
    value = parse(line)
    if not isinstance(value, Members):
        raise JsonError("a request must be an object")
    members = unique(value, _REQUEST_FIELDS)
    return Request(
        pipeline=_pipeline(members.get("pipeline", [])),
        id=_text(members, "id") if "id" in members else None,
        host=_text(members, "host"),
        session=_text(members, "session"),
        time=_text(members, "time"),
        env=_environment(members.get("env", Members())),
        reason=_text(members, "reason"),
        privileged=_flag(members, "privileged", default=True),
        forward_agent=_flag(members, "forward_agent", default=False),
        version=_text(members, "version"),
        action=_action(_text(members, "action", RequestAction.EXEC)),
        grant=_text(members, "grant"),
        client=_text(members, "client"),
        directory=_text(members, "directory"),
        client_pid=_number(members, "client_pid"),
        tool=_text(members, "tool"),
        text=_text(members, "text"),
    )


def encode_request(request: Request) -> bytes:
    """The line of a request, newline included; `action` and `version` only when they matter."""
    members: dict[str, object] = {"id": request.id} if request.id is not None else {}
    members |= {"host": request.host, "session": request.session, "time": request.time}
    members["pipeline"] = request.pipeline
    if request.action is not RequestAction.EXEC:
        members["action"] = request.action
    if request.grant:
        members["grant"] = request.grant
    members |= {"env": dict(request.env), "reason": request.reason}
    members |= {"privileged": request.privileged, "forward_agent": request.forward_agent}
    members |= {
        name: value
        for name in ("version", "client", "directory", "client_pid", "tool", "text")
        if (value := getattr(request, name))
    }
    return _compact(members) + b"\n"


def encode_pipeline(pipeline: Sequence[Sequence[str]]) -> bytes:
    """The pipeline alone as it is in a request line: what a digest of a command is made of."""
    return _compact(pipeline)


def encode_response(response: Response) -> Iterator[bytes | memoryview]:
    """The pieces of a response line, newline included; large output is never held as a whole."""
    head: dict[str, object] = {"id": response.id, "status": response.status}
    yield _compact(head)[:-1]
    if response.stages:
        yield from _stage_pieces(response.stages)
    if response.stdout is not None:
        yield b',"stdout":"'
        yield from response.stdout.base64
        yield b'"'
    rest = _present(
        stdout_truncated=response.stdout_truncated or None,
        message=response.message,
        version=response.version or None,
        stdout_open=response.stdout_open or None,
        duration_ms=response.duration_ms,
        decided_by=response.decided_by,
        decision_note=response.decision_note,
        grants=response.grants,
        decision=response.decision,
    )
    if rest:
        yield b"," + _compact(rest)[1:-1]
    yield b"}\n"


def decode_response(line: bytes | memoryview, plain: int = LARGE_LINE) -> Response:
    """A `Response` from its line. Unknown keys are ignored. Raises `ResponseError`.

    Whoever received it may know that none of `STOPS` is between `LARGE_LINE` and `plain`.
    """
    text, stdout = _without_large_stdout(memoryview(line), plain)
    try:
        value = json.loads(text)
    except (ValueError, RecursionError) as error:
        raise ResponseError(f"not JSON: {error}") from None
    if not isinstance(value, dict):
        raise ResponseError("not an object")
    try:
        status = Status(value.get("status", ""))
    except ValueError:
        raise ResponseError(f"unknown status {value.get('status')!r}") from None
    printed = _optional(value, "stdout", str)
    if stdout is None and printed is not None:
        stdout = Blob.from_base64([_ascii(printed)])
    return Response(
        id=_optional(value, "id", str) or "",
        status=status,
        stages=tuple(_stage(entry) for entry in _optional(value, "stages", list) or []),
        stdout=stdout,
        stdout_truncated=_optional(value, "stdout_truncated", bool) or False,
        message=_optional(value, "message", str),
        version=_optional(value, "version", str) or "",
        stdout_open=_optional(value, "stdout_open", bool) or False,
        duration_ms=_optional(value, "duration_ms", int),
        decided_by=_optional(value, "decided_by", str),
        decision_note=_optional(value, "decision_note", str),
        grants=_grants(value),
        decision=_optional(value, "decision", dict),
    )


def fresh_id(random: bytes) -> str:
    """A UUID of version 4 from 16 random bytes, without the module that takes time to load."""
    number = int.from_bytes(random) & ~(0xF << 76 | 0x3 << 62) | 0x4 << 76 | 0x2 << 62
    text = f"{number:032x}"
    return "-".join((text[:8], text[8:12], text[12:16], text[16:20], text[20:]))


AUDIT_LOG: Final = "gate-audit.jsonl"
"""The name of the audit log in `gate_directory`."""


def gate_directory(environ: Mapping[str, str], home: str = "") -> str:
    """Where the gate keeps what is the user's: the same from every directory.

    `home` counts where the environment does not say where the user lives.
    """
    chosen = environ.get("STRINGD_DATA_DIR", "")
    if chosen.startswith("/"):
        return chosen
    return f"{environ.get('HOME') or home or '/'}/.string"


def socket_path(
    environ: Mapping[str, str], uid: int, data_dir: str, is_dir: Callable[[str], bool]
) -> str:
    """Where the gate listens when nobody says otherwise; daemon and clients agree through this."""
    if chosen := environ.get("STRINGD_GATE_SOCKET"):
        return chosen
    for runtime in (environ.get("XDG_RUNTIME_DIR", ""), f"/run/user/{uid}"):
        if runtime and is_dir(runtime):
            return f"{runtime}/{SOCKET_NAME}"
    return f"{data_dir}/gate.sock"


def _compact(value: object) -> bytes:
    # ASCII only: a peer that prints the line meets no control character of ours.
    return json.dumps(value, separators=(",", ":")).encode("ascii")


def _present(**members: object) -> dict[str, object]:
    return {name: value for name, value in members.items() if value is not None}


def _text(fields: Mapping[str, object], name: str, default: str = "") -> str:
    value = fields.get(name, default)
    if not isinstance(value, str):
        raise JsonError(f"{name} must be a string")
    return value


def _flag(fields: Mapping[str, object], name: str, *, default: bool) -> bool:
    value = fields.get(name, default)
    if not isinstance(value, bool):
        raise JsonError(f"{name} must be true or false")
    return value


def _number(fields: Mapping[str, object], name: str) -> int:
    value = fields.get(name, 0)
    if type(value) is not int or not 0 <= value < 2**31:
        raise JsonError(f"{name} must be a whole number")
    return value


def _action(name: str) -> RequestAction:
    try:
        return RequestAction(name)
    except ValueError:
        raise JsonError(f"action must be one of {', '.join(RequestAction)}") from None


def _pipeline(value: object) -> tuple[tuple[str, ...], ...]:
    # `Members` is a list too, and an object is not a pipeline.
    if type(value) is not list:
        raise JsonError("pipeline must be an array of arrays of strings")
    return tuple(_words(stage) for stage in value)


def _words(value: object) -> tuple[str, ...]:
    if type(value) is not list or not all(type(word) is str for word in value):
        raise JsonError("pipeline must be an array of arrays of strings")
    return tuple(value)


def _environment(value: object) -> dict[str, str]:
    if not isinstance(value, Members):
        raise JsonError("env must be an object of strings")
    env = unique(value)
    return {name: _text(env, name) for name in env}


def _stage_pieces(stages: Sequence[Stage]) -> Iterator[bytes | memoryview]:
    for index, stage in enumerate(stages):
        opening = b',"stages":[' if index == 0 else b","
        yield opening + b'{"exit_code":%d,"stderr":"' % stage.exit_code
        yield from stage.stderr.base64
        rest = _present(
            stderr_truncated=stage.stderr_truncated or None,
            signal=stage.signal,
            stderr_open=stage.stderr_open or None,
        )
        yield b'"' + (b"," + _compact(rest)[1:] if rest else b"}")
    yield b"]"


def _without_large_stdout(line: memoryview, plain: int) -> tuple[bytes, Blob | None]:
    """Cut a large stdout out of the line, so that its base64 is not scanned as JSON text.

    Quotes inside a JSON string are escaped, so the opening can only be found where it is a member.
    """
    head = bytes(line[:LARGE_LINE])
    opening = head.find(_STDOUT_OPENING) if len(line) > LARGE_LINE else -1
    start = opening + len(_STDOUT_OPENING)
    end = -1
    if opening >= 0 and (end := find(line[:LARGE_LINE], STOPS, start)) < 0:
        end = find(line, STOPS, plain)
    # Base64 may be written with escaped slashes by others; those take the slow road.
    if end < 0 or line[end] != ord('"'):
        return bytes(line), None
    rest = bytes(line[end:])
    short = head[:start] + rest
    try:
        value = json.loads(short)
    except ValueError:
        return bytes(line), None
    if _STDOUT_OPENING in rest or not isinstance(value, dict) or value.get("stdout") != "":
        return bytes(line), None
    return short, Blob.from_base64([line[start:end]])


def _optional(value: Mapping[str, object], name: str, kind: type[_T]) -> _T | None:
    found = value.get(name)
    if found is None:
        return None
    if not isinstance(found, kind):
        raise ResponseError(f"{name} has the wrong type")
    return found


def _grants(value: Mapping[str, object]) -> tuple[Mapping[str, object], ...] | None:
    entries = _optional(value, "grants", list)
    if entries is None:
        return None
    if not all(isinstance(entry, dict) for entry in entries):
        raise ResponseError("grants must hold objects")
    return tuple(entries)


def _stage(value: object) -> Stage:
    if not isinstance(value, dict):
        raise ResponseError("stages must hold objects")
    code = _optional(value, "exit_code", int)
    return Stage(
        exit_code=-1 if code is None else code,
        stderr=Blob.from_base64([_ascii(_optional(value, "stderr", str) or "")]),
        stderr_truncated=_optional(value, "stderr_truncated", bool) or False,
        signal=_optional(value, "signal", int),
        stderr_open=_optional(value, "stderr_open", bool) or False,
    )


def _ascii(text: str) -> bytes:
    try:
        return text.encode("ascii")
    except UnicodeEncodeError:
        raise ResponseError("output is not base64") from None
