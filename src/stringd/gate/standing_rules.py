"""The rules of a gate from its start: read once, accepted where they have to be, and on record."""

from collections.abc import Callable
from pathlib import Path

from stringd.gate.audit import AuditLog
from stringd.gate.errors import TroubleError
from stringd.gate.rule_places import RulesOnDisk, keep_accepted, read_accepted, read_rules
from stringd.gate.rules import Rule

Tell = Callable[[str], None]
Accept = Callable[[RulesOnDisk, str | None], bool]


def standing_rules(
    root_file: Path, own_file: Path, audit: AuditLog, accept: Accept, tell: Tell
) -> tuple[Rule, ...]:
    """The rules that count until this gate ends. What does not count is said, and asked about."""
    rules: list[Rule] = []
    shared = read_rules(root_file, for_root=True)
    if shared is not None and _is_sound(shared, tell) and _is_recorded(shared, "root", audit, tell):
        rules += shared.rules
        tell(f"Rules of this machine: {_counted(shared)} in {shared.path}")
    own = read_rules(own_file, for_root=False)
    if own is None or not _is_sound(own, tell):
        return tuple(rules)
    if not accept(own, read_accepted(own_file)):
        tell(f"Your rules were not accepted and do not count: {own.path}")
        return tuple(rules)
    if _is_recorded(own, "terminal", audit, tell):
        rules += own.rules
        tell(f"Your rules: {_counted(own)} in {own.path}, accepted")
        try:
            keep_accepted(own_file, own.text)
        except OSError as error:
            tell(f"{own_file}: what was accepted cannot be kept: {error.strerror}")
    return tuple(rules)


def _is_sound(found: RulesOnDisk, tell: Tell) -> bool:
    for problem in found.problem_lines():
        tell(problem)
    if found.problems:
        tell(f"None of the rules in {found.path} count; stringd gate rules check says why.")
    return not found.problems


def _is_recorded(found: RulesOnDisk, by: str, audit: AuditLog, tell: Tell) -> bool:
    """Write down which rules count; rules that are not on record do not."""
    fields: dict[str, object] = {
        "file": str(found.path),
        "sha256": found.digest,
        "rules": len(found.rules),
        "accepted_by": by,
    }
    try:
        audit.append("rules", fields, sync=True)
    except TroubleError as error:
        tell(f"{error}; the rules in {found.path} do not count")
        return False
    return True


def _counted(found: RulesOnDisk) -> str:
    return "1 rule" if len(found.rules) == 1 else f"{len(found.rules)} rules"
