"""Whether a command is allowed, asked about or denied, by the rules and the grants. Pure.

deny > ask > grant > allow, and what nothing allows is asked. Every command of a pipeline must be
allowed. The gate and `stringd gate explain` both call `judge`; there is no other way to decide
without a key.
"""

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Final

from stringd.gate.display import quote
from stringd.gate.grants import Granted
from stringd.gate.program import ShownProgram
from stringd.gate.rules import (
    LIMIT_SECONDS,
    Effect,
    Misfit,
    Paths,
    Rule,
    StageCommand,
    is_about,
    misfit,
)
from stringd.gate.rules import commands as commands_of

NOTHING_SAID: Final = "no rule and no grant is about it"


@dataclass(frozen=True, slots=True)
class Attempt:
    """A request with everything that counts for the decision."""

    granted: Granted
    """What a grant would have to cover, exactly."""
    programs: tuple[ShownProgram, ...]
    as_root: bool
    forward_agent: bool = False
    paths: Paths = field(default_factory=dict)
    # How often each rule was used in the last minute, by whomever.
    uses: Mapping[str, int] = field(default_factory=dict)

    def commands(self) -> list[StageCommand]:
        what = self.granted
        return commands_of(
            what.pipeline, self.programs, dict(what.env), self.paths, as_root=self.as_root
        )


@dataclass(frozen=True, slots=True)
class Sentence:
    """What was decided, by what, and why. `by` is empty where nothing but a person decides."""

    effect: Effect
    by: str = ""
    why: str = ""
    rules: tuple[Rule, ...] = ()
    grant: int | None = None
    # Which word of which command failed, where one did.
    stage: int | None = None
    word: int | None = None


def judge(rules: Sequence[Rule], grants: Mapping[int, Granted], attempt: Attempt) -> Sentence:
    """The decision."""
    commands = attempt.commands()
    for effect in (Effect.DENY, Effect.ASK):
        for rule in rules:
            if rule.effect is effect and any(misfit(rule, each) is None for each in commands):
                return Sentence(effect, rule.name, f"{_place(rule)} says {effect}", (rule,))
    if attempt.forward_agent:
        return Sentence(Effect.ASK, why="your SSH agent is never lent without a question")
    if not attempt.as_root:
        for number, granted in grants.items():
            if granted == attempt.granted:
                return Sentence(Effect.ALLOW, f"grant:{number}", f"grant {number}", grant=number)
    allowed = [rule for rule in rules if rule.effect is Effect.ALLOW]
    used: list[Rule] = []
    uses = Counter(attempt.uses)
    for index, command in enumerate(commands):
        found = _allow(allowed, command, uses, index)
        if isinstance(found, Sentence):
            return found
        used.append(found)
        uses[found.name] += 1
    names = dict.fromkeys(rule.name for rule in used)
    why = ", ".join(dict.fromkeys(_place(rule) for rule in used))
    return Sentence(Effect.ALLOW, " ".join(names), f"allowed by {why}", tuple(used))


def _allow(
    rules: Sequence[Rule], command: StageCommand, uses: Mapping[str, int], stage: int
) -> Rule | Sentence:
    """The rule that allows a command, or why it is asked about."""
    nearest: tuple[Rule, Misfit] | None = None
    for rule in rules:
        if (found := misfit(rule, command)) is None:
            if uses.get(rule.name, 0) < rule.limit:
                return rule
            found = Misfit(-1, f"used {rule.limit} times in {LIMIT_SECONDS:.0f} seconds")
        if is_about(rule, command) and (nearest is None or _depth(found) > _depth(nearest[1])):
            nearest = rule, found
    if nearest is None:
        return Sentence(Effect.ASK, why=NOTHING_SAID, stage=stage)
    rule, found = nearest
    said = f"{_place(rule)} does not match: {_words(found, command)}"
    return Sentence(Effect.ASK, why=said, stage=stage, word=found.word if found.word >= 0 else None)


def _depth(found: Misfit) -> int:
    """How much of a rule matched before it failed."""
    return 10**9 if found.word < 0 else found.word


def _words(found: Misfit, command: StageCommand) -> str:
    if found.word < 0:
        return found.why
    if found.word >= len(command.words):
        return f"word {found.word} {found.why}"
    return f"word {found.word}, {quote(command.words[found.word])}, {found.why}"


def _place(rule: Rule) -> str:
    return f"{rule.file}:{rule.line}"
