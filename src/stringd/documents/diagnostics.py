"""Parse diagnostics: what an author should know. They never stop a document from opening."""

from collections.abc import Iterable

from msgspec import Struct


class Finding(Struct, frozen=True, gc=False):
    """A diagnostic before its line is known: lines are counted once, for all findings together."""

    position: int
    code: str
    text: str


class Diagnostic(Struct, frozen=True, order=True, gc=False):
    """One thing an author should know, at its line."""

    line: int
    code: str
    text: str

    def __str__(self) -> str:
        return f"Line {self.line}: {self.code}: {self.text}"


def diagnose(source: str, findings: Iterable[Finding]) -> tuple[Diagnostic, ...]:
    """Findings in document order, with line numbers."""
    placed: list[Diagnostic] = []
    line, counted = 1, 0
    for finding in sorted(findings, key=lambda each: each.position):
        line += source.count("\n", counted, finding.position)
        counted = finding.position
        placed.append(Diagnostic(line, finding.code, finding.text))
    return tuple(placed)
