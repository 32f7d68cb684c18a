"""Where rules are read from: root's file, which counts as it is, and the person's own.

Root's file must be one that only root can change, on the whole way to it. The own file can be
written by every program of the account, so it counts only after the person at the terminal has
read and accepted it, and only for what does not run as root.
"""

import os
import stat
from dataclasses import dataclass, replace
from hashlib import sha256
from pathlib import Path
from typing import Final

from stringd.gate.resolve import resolve
from stringd.gate.rule_file import MAX_BYTES, RuleProblem, parse_rules
from stringd.gate.rules import Effect, Rule
from stringd.gate.trust import weaknesses

ACCEPTED_SUFFIX: Final = ".accepted"


@dataclass(frozen=True, slots=True)
class RulesOnDisk:
    """A file of rules as it was read."""

    path: Path
    text: str = ""
    digest: str = ""
    rules: tuple[Rule, ...] = ()
    problems: tuple[RuleProblem, ...] = ()

    def problem_lines(self) -> list[str]:
        """Every problem with its place."""
        return [f"{self.path}:{problem.line}: {problem.why}" for problem in self.problems]


def read_rules(path: Path, *, for_root: bool) -> RulesOnDisk | None:
    """The rules in a file; None if there is no such file."""
    try:
        raw = _read(path, for_root)
    except FileNotFoundError:
        return None
    except OSError as error:
        return _refused(path, error.strerror or str(error))
    digest = sha256(raw).hexdigest()
    try:
        text = raw.decode("utf-8")
    except UnicodeDecodeError:
        return _refused(path, "it is not UTF-8")
    found = parse_rules(text, str(path), for_root=for_root)
    rules, problems = [], list(found.problems)
    for rule in found.rules:
        pinned = _pinned(rule)
        if isinstance(pinned, Rule):
            rules.append(pinned)
        else:
            problems.append(pinned)
    return RulesOnDisk(path, text, digest, () if problems else tuple(rules), tuple(problems))


def accepted_path(path: Path) -> Path:
    """Where the text that was last accepted is kept, to show what changed since."""
    return path.with_name(path.name + ACCEPTED_SUFFIX)


def read_accepted(path: Path) -> str | None:
    """The text that was accepted last. It is only compared with, never used as rules."""
    try:
        return _read(accepted_path(path), False).decode("utf-8", "replace")
    except OSError:
        return None


def keep_accepted(path: Path, text: str) -> None:
    """Keep a text that was accepted. Raises `OSError`."""
    flags = os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_NOFOLLOW | os.O_CLOEXEC
    descriptor = os.open(accepted_path(path), flags, 0o600)
    with os.fdopen(descriptor, "w", encoding="utf-8") as file:
        file.write(text)


def _read(path: Path, for_root: bool) -> bytes:
    descriptor = os.open(path, os.O_RDONLY | os.O_CLOEXEC | os.O_NONBLOCK | os.O_NOCTTY)
    with os.fdopen(descriptor, "rb") as file:
        found = os.fstat(descriptor)
        if not stat.S_ISREG(found.st_mode):
            raise OSError(22, "it is not a file")
        if for_root and (weak := weaknesses(str(path))):
            raise OSError(1, f"it does not count: {weak[-1].who} can change {weak[-1].path}")
        raw = file.read(MAX_BYTES + 1)
    if len(raw) > MAX_BYTES:
        raise OSError(27, f"it has more than {MAX_BYTES} bytes")
    return raw


def _refused(path: Path, why: str) -> RulesOnDisk:
    return RulesOnDisk(path, problems=(RuleProblem(0, why),))


def _pinned(rule: Rule) -> Rule | RuleProblem:
    """An allow with the file it is about; others as they are."""
    if rule.effect is not Effect.ALLOW:
        return rule
    program = resolve(rule.program)
    if program.path is None:
        # It never matches, and counts again when the gate is restarted.
        return rule
    if program.real != rule.program:
        return RuleProblem(rule.line, f"{rule.program} leads to {program.real}: write that")
    if program.weaknesses:
        weak = program.weaknesses[-1]
        return RuleProblem(rule.line, f"{weak.who} can change {weak.path}: it cannot be allowed")
    return replace(rule, identity=program.identity)
