"""Rules, programs and requests for tests of what decides without a key."""

from collections.abc import Mapping, Sequence
from dataclasses import replace

from stringd.gate.callers import CallerId
from stringd.gate.grants import FileIdentity, Granted, GrantedCaller
from stringd.gate.judge import Attempt
from stringd.gate.program import Identity, ShownProgram
from stringd.gate.rule_file import parse_rules
from stringd.gate.rules import Paths, Rule

FILE = "/rules.toml"
CALLER = GrantedCaller(CallerId(4242, 7), "/usr/bin/node", "/usr/bin/node", "alpha")
IDENTITY = Identity(1, 2, 3, 4, 5)


def program(word: str, **changes: object) -> ShownProgram:
    """A program of the system, found by its name or its path."""
    path = word if word.startswith("/") else f"/usr/bin/{word}"
    fields: dict[str, object] = {"path": path, "real": path, "identity": IDENTITY, "is_fixed": True}
    return ShownProgram(word, **(fields | changes))  # type: ignore[arg-type]


def rules(text: str, *, for_root: bool = True) -> list[Rule]:
    """The rules of a text, each about the programs above."""
    found = parse_rules(text, FILE, for_root=for_root)
    assert found.problems == ()
    return [replace(rule, identity=IDENTITY) for rule in found.rules]


def allow(argv: str, *more: str) -> str:
    return "\n".join(["[[rule]]", 'effect = "allow"', f"argv = {argv}", *more]) + "\n"


def attempt(
    *stages: Sequence[str],
    programs: Sequence[ShownProgram] | None = None,
    env: Mapping[str, str] | None = None,
    as_root: bool = False,
    forward_agent: bool = False,
    paths: Paths | None = None,
    uses: Mapping[str, int] | None = None,
    caller: GrantedCaller = CALLER,
) -> Attempt:
    found = tuple(program(stage[0]) for stage in stages) if programs is None else tuple(programs)
    files = tuple(FileIdentity(f"{each.path} {each.real}", each.identity) for each in found)
    pipeline = tuple(tuple(stage) for stage in stages)
    granted = Granted(pipeline, tuple(sorted((env or {}).items())), files, caller)
    return Attempt(granted, found, as_root, forward_agent, paths or {}, uses or {})
