"""What the rules and grants have to know of a request, looked up on the disk."""

import os
from collections.abc import Sequence
from contextlib import ExitStack
from typing import Final

from stringd.gate.arguments import ChangeableFiles
from stringd.gate.callers import CallerId
from stringd.gate.errors import RefusalError
from stringd.gate.grants import FileIdentity, Granted, GrantedCaller
from stringd.gate.judge import Attempt
from stringd.gate.peers import executable_of
from stringd.gate.program import Identity, ShownProgram
from stringd.gate.question import AskingPeer
from stringd.gate.resolve import hold, release
from stringd.gate.rules import PathFact, PathUnder, Rule, is_plain_path
from stringd.gate.trust import is_fixed, weaknesses
from stringd.gate.validate import ValidatedRequest

# Each is held open while it is decided about.
MAX_PROGRAMS: Final = 100
# A command with more paths than this is asked about.
MAX_PATHS: Final = 64
_MORE_FILES: Final = FileIdentity("", None)


def hold_programs(request: ValidatedRequest, held_by: ExitStack) -> tuple[ShownProgram, ...]:
    """What each stage will run, held until the stack is left; each name is looked up once."""
    names = dict.fromkeys(stage[0] for stage in request.pipeline)
    if len(names) > MAX_PROGRAMS:
        raise RefusalError(f"more than {MAX_PROGRAMS} different programs in one pipeline")
    held: dict[str, ShownProgram] = {}
    for name in names:
        held[name] = hold(name, as_root=request.privileged)
        held_by.callback(release, held[name])
    return tuple(held[stage[0]] for stage in request.pipeline)


def gate_is_root() -> bool:
    """Whether every command runs as root, because the gate does."""
    return os.getuid() == 0


def granted_caller(who: CallerId, peer: AskingPeer, request: ValidatedRequest) -> GrantedCaller:
    """Who asks, as a grant remembers it."""
    client = f"{request.client} {request.directory} {request.client_pid}"
    return GrantedCaller(who, executable_of(who.pid), peer.exe, request.session, client)


def attempt_of(
    request: ValidatedRequest,
    programs: Sequence[ShownProgram],
    changeable: ChangeableFiles,
    caller: GrantedCaller,
    rules: Sequence[Rule],
) -> Attempt:
    """A request with the files it would run and use, and where its paths lead."""
    as_root = request.privileged or gate_is_root()
    files = [_program_identity(program) for program in programs]
    files += [FileIdentity(weak.path, _identity(weak.path)) for weak in changeable.named]
    files += [_MORE_FILES] if changeable.more else []
    granted = Granted(request.pipeline, tuple(sorted(request.env.items())), tuple(files), caller)
    looks = any(isinstance(word, PathUnder) for rule in rules for word in rule.words)
    return Attempt(
        granted,
        tuple(programs),
        as_root,
        request.forward_agent,
        _path_facts(request.pipeline) if looks else {},
    )


def grant_objection(attempt: Attempt) -> str:
    """Why a request cannot be granted for a while; empty if it can."""
    if attempt.as_root:
        return "Nothing is granted to root: every command of root is a question."
    if attempt.forward_agent:
        return "Nothing is granted with your SSH agent: it is lent one command at a time."
    if any(program.identity is None for program in attempt.programs):
        return "A program that was not found cannot be granted."
    if _MORE_FILES in attempt.granted.files:
        return "It uses too many files that can change to grant it."
    return ""


def _program_identity(program: ShownProgram) -> FileIdentity:
    digest = None if program.held is None else program.held.digest
    return FileIdentity(f"{program.path} {program.real}", program.identity, digest)


def _path_facts(pipeline: Sequence[Sequence[str]]) -> dict[str, PathFact]:
    words = dict.fromkeys(word for stage in pipeline for word in stage[1:] if is_plain_path(word))
    return {word: _fact(word) for word in list(words)[:MAX_PATHS]}


def _fact(path: str) -> PathFact:
    try:
        real = os.path.realpath(path, strict=True)
        weak = weaknesses(path)
    except (OSError, ValueError):
        return PathFact(None, None)
    if weak:
        return PathFact(real, weak[-1].who)
    # For a gate that is root, what asks it is root as well.
    return PathFact(real, None if is_fixed(path) else "programs of root")


def _identity(path: str) -> Identity | None:
    try:
        found = os.stat(path)  # noqa: PTH116  (a Path would rewrite what was sent)
    except (OSError, ValueError):
        return None
    return Identity(found.st_dev, found.st_ino, found.st_size, found.st_mtime_ns, found.st_ctime_ns)
