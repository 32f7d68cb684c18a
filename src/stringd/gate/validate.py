"""From what a peer claims to what the gate will ask about. Pure.

`ValidatedRequest` validates in its constructor and has no other, so whoever holds one knows that
every check below has passed. The prompter and the executor accept nothing else.
"""

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import Final, final

from stringd.gate.characters import is_clean
from stringd.gate.errors import RefusalError
from stringd.gate.instants import age_seconds, lead_seconds, parse_instant
from stringd.wire.gate import Request, RequestAction

MAX_AGE_SECONDS: Final = 60
DEFAULT_MAX_FUTURE_SECONDS: Final = 5

# What a command may have is checked for these; the others run nothing.
ABOUT_COMMANDS: Final = frozenset({RequestAction.EXEC, RequestAction.REMOTE, RequestAction.EXPLAIN})

# The fields that are shown and are single texts, in the order they are scanned.
SCANNED_FIELDS: Final = (
    *("reason", "session", "host", "version", "id", "client", "directory", "tool"),
)

ASKED: Final = (RequestAction.EXEC, RequestAction.REMOTE, RequestAction.DECIDE)
"""The actions a person is asked about."""

_ALLOWED_NAME: Final = re.compile(r"LANG|TZ|HOME|DEBIAN_FRONTEND|TERM|LC_[A-Za-z0-9_]*")


@final
@dataclass(frozen=True, slots=True, init=False)
class ValidatedRequest:
    """A request that passed every check that needs no memory.

    Its fields are copies nobody can change. Raises `RefusalError` with the message for the caller.
    """

    id: str
    host: str
    session: str
    time: str
    pipeline: tuple[tuple[str, ...], ...]
    env: Mapping[str, str]
    reason: str
    privileged: bool
    forward_agent: bool
    version: str
    action: RequestAction
    grant: str
    client: str
    directory: str
    client_pid: int
    tool: str
    text: str

    def __init__(
        self,
        request: Request,
        *,
        fresh_id: str,
        now: int,
        max_future: int = DEFAULT_MAX_FUTURE_SECONDS,
    ) -> None:
        for message in _objections(request, now, max_future):
            raise RefusalError(message)
        put = object.__setattr__
        put(self, "id", fresh_id if request.id is None else request.id)
        put(self, "pipeline", tuple(tuple(stage) for stage in request.pipeline))
        put(self, "env", MappingProxyType(dict(request.env)))
        for name in ("host", "session", "time", "reason", "version"):
            put(self, name, getattr(request, name))
        for name in ("client", "directory", "tool", "text"):
            put(self, name, getattr(request, name))
        for name in ("privileged", "forward_agent", "action", "grant", "client_pid"):
            put(self, name, getattr(request, name))
        if self.is_decision:
            # The gate runs nothing for it, so nothing of it is root's.
            put(self, "privileged", False)

    @property
    def is_decision(self) -> bool:
        """Whether the person only decides, and the caller does what it asked about itself."""
        return self.action is RequestAction.DECIDE

    @property
    def is_remote(self) -> bool:
        """Whether it is for the machine that `host` names; else `host` says where it comes from."""
        return self.action is RequestAction.REMOTE


def _objections(request: Request, now: int, max_future: int) -> Iterator[str]:
    """Every reason to refuse, in the order of the protocol; the first one answers."""
    yield from _pipeline_objections(request)
    yield from _decision_objections(request) if request.action is RequestAction.DECIDE else ()
    yield from _text_objections(request)
    # A control action runs nothing, so what a command may have does not concern it.
    is_exec = request.action in ABOUT_COMMANDS
    yield from _privilege_objections(request) if is_exec else ()
    yield from _time_objections(request.time, now, max_future)
    yield from _env_objections(request.env) if is_exec else ()


def _decision_objections(request: Request) -> Iterator[str]:
    """What is decided is all in `tool` and `text`: what would not be shown may not be there."""
    if request.pipeline or request.env or request.forward_agent:
        yield "a decide request has no pipeline, env or forward_agent"
    if not request.tool or not request.text:
        yield "a decide request needs tool and text"


def _pipeline_objections(request: Request) -> Iterator[str]:
    if request.action in ABOUT_COMMANDS and not request.pipeline:
        yield "pipeline must not be empty"
    for i, stage in enumerate(request.pipeline):
        if not stage:
            yield f"pipeline stage {i} must not be empty"
        for j, word in enumerate(stage):
            if not is_clean(word):
                yield f"pipeline[{i}][{j}] contains forbidden control/bidi characters"


def _text_objections(request: Request) -> Iterator[str]:
    for name in request.env:
        if not is_clean(name):
            yield f"env key '{name}' contains forbidden characters"
    if not all(map(is_clean, request.env.values())):
        yield "env value contains forbidden characters"
    for name in SCANNED_FIELDS:
        if not is_clean(getattr(request, name) or ""):
            yield f"{name} contains forbidden control/bidi characters"
    if not all(map(is_clean, request.text.split("\n"))):
        yield "text contains forbidden control/bidi characters"


def _privilege_objections(request: Request) -> Iterator[str]:
    if request.privileged and request.forward_agent:
        yield "forward_agent is only allowed for unprivileged commands"
    if not request.privileged and request.action is not RequestAction.REMOTE:
        return
    for i, stage in enumerate(request.pipeline):
        name = stage[0] if stage else ""
        # sudo, and env on another machine, would read these as options or as assignments.
        if name.startswith("-") or "=" in name:
            yield f"pipeline[{i}][0] is not a command name"


def _time_objections(time: str, now: int, max_future: int) -> Iterator[str]:
    if not time:
        yield "missing time field"
        return
    instant = parse_instant(time)
    if instant is None:
        yield "malformed time field"
        return
    if (age := age_seconds(instant, now)) > MAX_AGE_SECONDS:
        yield f"request too old: {age}s (max {MAX_AGE_SECONDS}s)"
    if (lead := lead_seconds(instant, now)) > max_future:
        yield f"request time is in the future: {lead}s (max {max_future}s)"


def _env_objections(env: Mapping[str, str]) -> Iterator[str]:
    if "SSH_AUTH_SOCK" in env:
        yield "SSH_AUTH_SOCK cannot be set in request env; use forward_agent instead"
    for name in env:
        if not _ALLOWED_NAME.fullmatch(name):
            yield f"environment variable not allowed: {name}"
