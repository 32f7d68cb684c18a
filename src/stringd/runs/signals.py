"""Does an observer's verdict end its cycle?"""

from collections.abc import Callable, Iterable
from typing import Final

from stringd.runs.strategy.definition import MatchMode


def breaks(verdict: str, signals: Iterable[str], mode: MatchMode) -> bool:
    """Whether the verdict carries one of the signals. Case never matters."""
    text = verdict.casefold()
    return any(_MODES[mode](text, signal.casefold()) for signal in signals)


def _substring(text: str, signal: str) -> bool:
    return signal in text


def _opens(line: str, signal: str) -> bool:
    line, signal = line.strip(), signal.strip()
    if not signal or not line.startswith(signal):
        return False
    return len(line) == len(signal) or line[len(signal)].isspace()


def _first_line(text: str, signal: str) -> bool:
    return any(_opens(line, signal) for line in _lines(text)[:1])


def _any_line(text: str, signal: str) -> bool:
    return any(_opens(line, signal) for line in _lines(text))


def _exact(text: str, signal: str) -> bool:
    return bool(signal.strip()) and text.strip() == signal.strip()


def _lines(text: str) -> list[str]:
    return [line for line in text.split("\n") if line.strip()]


_MODES: Final[dict[MatchMode, Callable[[str, str], bool]]] = {
    "substring": _substring,
    "first-line": _first_line,
    "any-line": _any_line,
    "exact": _exact,
}
