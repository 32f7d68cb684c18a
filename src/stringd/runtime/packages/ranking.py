"""Which installed apps answer to some words: by name, description and actions, best first."""

import math
import re
from collections.abc import Iterable, Sequence
from typing import Final, NamedTuple

_WORD: Final = re.compile(r"[A-Z]+(?![a-z])|[A-Z]?[a-z]+|\d+|[^\W\d_A-Za-z]+")
_NAME: Final = 4.0
_ACTION: Final = 3.0
_ABOUT: Final = 2.0
_ACTION_ABOUT: Final = 1.0
_BEGINS: Final = 0.6
"""How much a word counts that only begins like the wanted one."""
_MIN_BEGINNING: Final = 3
_FILLERS: Final = frozenset(
    ("a", "an", "and", "at", "by", "for", "from", "in", "is", "it", "of", "on", "the", "to", "with")
)
_LEAST: Final = 0.3
"""Of the best app's score: what is below it shares a chance word."""


class ActionSummary(NamedTuple):
    id: str
    about: str = ""


class AppSummary(NamedTuple):
    """What is known of a package without opening it."""

    label: str
    """`app:NAME` or `tool:NAME`."""
    about: str = ""
    actions: tuple[ActionSummary, ...] = ()

    @property
    def name(self) -> str:
        return self.label.partition(":")[2]


class RankedApp(NamedTuple):
    app: AppSummary
    score: float
    actions: tuple[ActionSummary, ...]
    """All of them, those that the words mean first."""
    meant: int
    """How many of them the words mean."""


class _Words(NamedTuple):
    """An app as words to compare with."""

    name: frozenset[str]
    about: frozenset[str]
    actions: tuple[tuple[frozenset[str], frozenset[str]], ...]


def ranked(apps: Iterable[AppSummary], wanted: str) -> list[RankedApp]:
    """The apps that any of the words names; a word that few apps have counts more."""
    known = [(app, _words_of(app)) for app in apps]
    words = sorted(stems(wanted) - _FILLERS or stems(wanted))
    weights = [_rarity([each for _, each in known], word) for word in words]
    found = [_rank(app, each, words, weights) for app, each in known]
    least = _LEAST * max((each.score for each in found), default=0.0)
    meant = (each for each in found if each.score > 0 and each.score >= least)
    return sorted(meant, key=lambda each: (-each.score, each.app.label))


def stems(text: str) -> frozenset[str]:
    """The words of a text in small letters, without the s of a plural; `createIssue` is two."""
    return frozenset(_stem(word.casefold()) for word in _WORD.findall(text))


def _stem(word: str) -> str:
    plural = len(word) > 3 and word.endswith("s") and not word.endswith("ss")
    return word[:-1] if plural else word


def _words_of(app: AppSummary) -> _Words:
    actions = tuple((stems(each.id), stems(each.about)) for each in app.actions)
    return _Words(stems(app.name), stems(app.about), actions)


def _rarity(apps: Sequence[_Words], word: str) -> float:
    having = sum(_worth(app, word) > 0 for app in apps)
    return math.log(1 + len(apps) / having) if having else 0.0


def _rank(app: AppSummary, words: _Words, wanted: list[str], weights: list[float]) -> RankedApp:
    pairs = list(zip(wanted, weights, strict=True))
    score = sum(weight * _worth(words, word) for word, weight in pairs)
    values = [
        sum(weight * _action_worth(each, word) for word, weight in pairs) for each in words.actions
    ]
    order = sorted(range(len(values)), key=lambda at: -values[at])
    # An action that fits much better than its neighbours is the one that is asked for.
    best = max(values, default=0.0)
    return RankedApp(
        app,
        score + best,
        tuple(app.actions[at] for at in order),
        sum(value > 0 and value >= best * 0.75 for value in values),
    )


def _worth(app: _Words, word: str) -> float:
    best = max(_NAME * _likeness(app.name, word), _ABOUT * _likeness(app.about, word))
    return max([best, *(_action_worth(each, word) for each in app.actions)])


def _action_worth(action: tuple[frozenset[str], frozenset[str]], word: str) -> float:
    ident, about = action
    return max(_ACTION * _likeness(ident, word), _ACTION_ABOUT * _likeness(about, word))


def _likeness(words: frozenset[str], wanted: str) -> float:
    if wanted in words:
        return 1.0
    if len(wanted) < _MIN_BEGINNING:
        return 0.0
    near = any(
        word.startswith(wanted) or (len(word) > _MIN_BEGINNING and wanted.startswith(word))
        for word in words
    )
    return _BEGINS if near else 0.0
