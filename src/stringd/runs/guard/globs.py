"""Glob patterns over workspace-relative paths.

`*` and `?` stay within a name, `**` crosses folders, `[…]` and `{a,b}` choose. `folder/**` covers
the folder itself too, and the workspace itself is called `.`.
"""

import re
from functools import lru_cache
from typing import Final

ROOT: Final = "."
# Nested braces multiply; no pattern a person writes comes near this.
_MAX_ALTERNATIVES: Final = 256
_Steps = tuple[re.Pattern[str] | None, ...]
"""An expression for each name on the way, None for any number of folders."""
_NOTHING: Final = re.compile(r"(?!)")
_BRACES: Final = re.compile(r"\{([^{}]*,[^{}]*)\}")


class GlobError(ValueError):
    """The pattern cannot be used; `str()` says why."""


def matches(pattern: str, path: str) -> bool:
    """Whether a relative path fits. Raises `GlobError`."""
    names = [] if path in ("", ROOT) else path.split("/")
    return any(_fits(one, names) for one in _compiled(pattern))


def _fits(steps: _Steps, names: list[str]) -> bool:
    """Only the latest `**` is ever taken back, so no pattern takes for ever."""
    step = name = last = 0
    deep: int | None = None
    while name < len(names):
        wanted = steps[step] if step < len(steps) else _NOTHING
        if wanted is None and step == len(steps) - 1:
            return True
        if wanted is None:
            deep, last = step, name
            step += 1
        elif wanted.fullmatch(names[name]):
            step, name = step + 1, name + 1
        elif deep is not None:
            last += 1
            step, name = deep + 1, last
        else:
            return False
    return all(each is None for each in steps[step:])


@lru_cache(maxsize=1024)
def _compiled(pattern: str) -> tuple[_Steps, ...]:
    try:
        return tuple(_steps(one) for one in _alternatives(pattern))
    except re.error:
        raise GlobError(f"Not a usable pattern: {pattern}") from None


def _steps(pattern: str) -> _Steps:
    parts = [part for part in pattern.split("/") if part not in ("", ROOT)]
    # A name may contain a newline, and must not slip past a pattern with it.
    return tuple(None if part == "**" else re.compile(_name(part), re.DOTALL) for part in parts)


def _alternatives(pattern: str) -> list[str]:
    done: list[str] = []
    waiting = [pattern]
    while waiting:
        if len(done) + len(waiting) > _MAX_ALTERNATIVES:
            raise GlobError(f"Too many alternatives in pattern: {pattern[:80]}")
        one = waiting.pop()
        found = _BRACES.search(one)
        if found is None:
            done.append(one)
        else:
            choices = found[1].split(",")
            waiting += [one[: found.start()] + each + one[found.end() :] for each in choices]
    return done


def _name(part: str) -> str:
    """Each `*` takes as little as it can and keeps it, so that matching stays quick."""
    first, *others = _pieces(part)
    if not others:
        return first
    middle = "".join(f"(?>.*?{piece})" for piece in others[:-1] if piece)
    return f"{first}{middle}.*{others[-1]}"


def _pieces(part: str) -> list[str]:
    """What is between the `*` of a name, as expressions."""
    found, index = [""], 0
    while index < len(part):
        char = part[index]
        end = _end_of_class(part, index) if char == "[" else -1
        if char == "*":
            found.append("")
        elif end > 0:
            found[-1] += _class(part[index + 1 : end])
            index = end
        else:
            found[-1] += "." if char == "?" else re.escape(char)
        index += 1
    return found


def _end_of_class(part: str, start: int) -> int:
    """Where it closes, or -1. A bracket right at its beginning is one of its members."""
    negated = part[start + 1 : start + 2] in ("!", "^")
    return part.find("]", start + 2 + negated)


def _class(inside: str) -> str:
    negated = inside[0] in "!^"
    members = inside[1:] if negated else inside
    escaped = members.replace("\\", "\\\\").replace("[", "\\[").replace("^", "\\^")
    return f"[{'^' if negated else ''}{escaped}]"
