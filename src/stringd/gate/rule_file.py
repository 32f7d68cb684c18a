"""The file in which rules are written: TOML, one `[[rule]]` for each. Pure.

A file with anything wrong in it is refused as a whole, with every problem and its line.
"""

import re
from collections.abc import Callable, Mapping
from typing import Final, NamedTuple

from stringd.gate.characters import is_clean
from stringd.gate.rules import (
    DEFAULT_LIMIT,
    AnyWord,
    Effect,
    ExactWord,
    NameWord,
    PathUnder,
    Rule,
    RuleWord,
    WholeNumber,
    WordOf,
    is_plain_path,
)
from stringd.gate.versatile import needs_exact_words

MAX_BYTES: Final = 262_144
MAX_RULES: Final = 500
MAX_LIMIT: Final = 600
_HEADER: Final = re.compile(r"[ \t]*\[\[[ \t]*rule[ \t]*\]\][ \t]*(?:#.*)?")
_AT_LINE: Final = re.compile(r"(.*) \(at line (\d+), column \d+\)")
_KEYS: Final = frozenset({"effect", "argv", "root", "env", "limit", "note"})


class RuleProblem(NamedTuple):
    line: int
    why: str


class RuleFile(NamedTuple):
    """What a file says; its rules count only if it has no problems."""

    rules: tuple[Rule, ...]
    problems: tuple[RuleProblem, ...] = ()


class _BadRuleError(Exception):
    pass


def parse_rules(text: str, file: str, *, for_root: bool) -> RuleFile:
    """The rules of a file. Only `for_root` may it have rules that allow something to root."""
    import tomllib  # a few milliseconds that a gate without rules does not spend

    if "'''" in text or '"""' in text:
        # So that a line that looks like the start of a rule is one.
        return _broken(text.count("\n", 0, _first_triple(text)) + 1, "text of several lines")
    try:
        document = tomllib.loads(text)
    except tomllib.TOMLDecodeError as error:
        at = _AT_LINE.fullmatch(str(error))
        return _broken(int(at[2]) if at else text.count("\n") + 1, at[1] if at else str(error))
    lines = [
        number
        for number, line in enumerate(text.split("\n"), start=1)
        if _HEADER.fullmatch(line.rstrip("\r"))
    ]
    entries = document.pop("rule", [])
    if document:
        return _broken(1, f"{next(iter(document))!r} is not known here; only [[rule]] is")
    if not isinstance(entries, list) or len(entries) != len(lines):
        return _broken(1, "each rule must begin with a line [[rule]]")
    if len(entries) > MAX_RULES:
        return _broken(lines[MAX_RULES], f"more than {MAX_RULES} rules")
    rules: list[Rule] = []
    problems: list[RuleProblem] = []
    for line, entry in zip(lines, entries, strict=True):
        try:
            rules.append(_rule(entry, file, line, for_root))
        except _BadRuleError as error:
            problems.append(RuleProblem(line, str(error)))
    return RuleFile(() if problems else tuple(rules), tuple(problems))


def _first_triple(text: str) -> int:
    return min(at for mark in ("'''", '"""') if (at := text.find(mark)) >= 0)


def _broken(line: int, why: str) -> RuleFile:
    return RuleFile((), (RuleProblem(line, why),))


def _rule(entry: Mapping[str, object], file: str, line: int, for_root: bool) -> Rule:
    for name in entry:
        if name not in _KEYS:
            raise _BadRuleError(f"{name!r} is not known; a rule has {', '.join(sorted(_KEYS))}")
    effect = _effect(entry.get("effect"))
    program, words, has_rest = _argv(entry.get("argv"), effect)
    rule = Rule(
        effect,
        program,
        words,
        has_rest,
        root=_flag(entry, "root"),
        env=_env(entry.get("env", {})),
        limit=_limit(entry.get("limit", DEFAULT_LIMIT)),
        file=file,
        line=line,
    )
    if effect is not Effect.ALLOW and entry.keys() & {"root", "env", "limit"}:
        raise _BadRuleError(f"root, env and limit are for rules that allow; this one says {effect}")
    if effect is Effect.ALLOW:
        _check_allow(rule, for_root)
    return rule


def _check_allow(rule: Rule, for_root: bool) -> None:
    if not is_plain_path(rule.program):
        raise _BadRuleError("an allow names its program by its full path")
    if rule.root and not for_root:
        raise _BadRuleError("what root may run is said in a file that only root can change")
    if needs_exact_words(rule.program) and not rule.is_exact:
        raise _BadRuleError(
            f"{rule.program} can run or write anything by its arguments: only exact words"
        )


def _effect(value: object) -> Effect:
    try:
        return Effect(str(value))
    except ValueError:
        raise _BadRuleError('effect must be "allow", "ask" or "deny"') from None


def _argv(value: object, effect: Effect) -> tuple[str, tuple[RuleWord, ...], bool]:
    if not isinstance(value, list) or not value or not isinstance(value[0], str) or not value[0]:
        raise _BadRuleError("argv must be a list of words, the program first")
    said = value[1:]
    has_rest = bool(said) and said[-1] == {"rest": True}
    if has_rest:
        if effect is Effect.ALLOW:
            raise _BadRuleError("an allow says every word: rest is for rules that ask or deny")
        said = said[:-1]
    return _text(value[0]), tuple(_word(each, effect) for each in said), has_rest


def _word(value: object, effect: Effect) -> RuleWord:
    if isinstance(value, str):
        return ExactWord(_text(value))
    if not isinstance(value, dict) or not value:
        raise _BadRuleError(f"{value!r} is not a word; {_SLOTS}")
    kind, *others = value
    if kind not in _MAKERS or (others and kind != "int"):
        raise _BadRuleError(f"{value!r} is not a slot; {_SLOTS}")
    if kind == "any" and effect is Effect.ALLOW:
        raise _BadRuleError("an allow says every word: any is for rules that ask or deny")
    return _MAKERS[kind](value[kind])


def _one_of(value: object) -> WordOf:
    if not isinstance(value, list) or not value or not all(isinstance(v, str) for v in value):
        raise _BadRuleError("one_of is a list of words")
    if any(word.startswith("-") for word in value):
        raise _BadRuleError("a slot never matches an option; write options as exact words")
    return WordOf(tuple(map(_text, value)))


def _number(value: object) -> WholeNumber:
    bounds = [0, WholeNumber().high] if value is True else value
    if (
        not isinstance(bounds, list)
        or len(bounds) != 2
        or not all(type(bound) is int and 0 <= bound <= WholeNumber().high for bound in bounds)
        or bounds[0] > bounds[1]
    ):
        raise _BadRuleError("int is true or a list of the smallest and the largest number")
    return WholeNumber(*bounds)


def _path_under(value: object) -> PathUnder:
    if not isinstance(value, str) or not is_plain_path(value.rstrip("/")):
        raise _BadRuleError("path_under is a full path of a directory, and not /")
    return PathUnder(_text(value.rstrip("/")))


def _name(value: object) -> NameWord:
    if value is not True:
        raise _BadRuleError("name is true")
    return NameWord()


def _any(value: object) -> AnyWord:
    if value is not True:
        raise _BadRuleError("any is true")
    return AnyWord()


_MAKERS: Final[Mapping[str, Callable[[object], RuleWord]]] = {
    "one_of": _one_of,
    "int": _number,
    "name": _name,
    "path_under": _path_under,
    "any": _any,
}
_SLOTS: Final = (
    "slots are { one_of = [...] }, { int = true }, { int = [1, 9] }, { name = true }, "
    '{ path_under = "/dir" } and, to ask or deny, { any = true } and a last { rest = true }'
)


def _env(value: object) -> dict[str, str]:
    if not isinstance(value, dict) or not all(isinstance(each, str) for each in value.values()):
        raise _BadRuleError("env is a table of texts")
    return {_text(name): _text(content) for name, content in value.items()}


def _flag(entry: Mapping[str, object], name: str) -> bool:
    value = entry.get(name, False)
    if not isinstance(value, bool):
        raise _BadRuleError(f"{name} is true or false")
    return value


def _limit(value: object) -> int:
    if type(value) is not int or not 1 <= value <= MAX_LIMIT:
        raise _BadRuleError(f"limit is a number of uses in a minute, 1 to {MAX_LIMIT}")
    return value


def _text(value: str) -> str:
    if not is_clean(value):
        raise _BadRuleError("there are control or direction-changing characters in it")
    return value
