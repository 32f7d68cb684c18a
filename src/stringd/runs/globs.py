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
_BRACES: Final = re.compile(r"\{([^{}]*,[^{}]*)\}")


class GlobError(ValueError):
    """The pattern cannot be used; `str()` says why."""


def matches(pattern: str, path: str) -> bool:
    """Whether a relative path fits. Raises `GlobError`."""
    return _compiled(pattern).fullmatch("" if path == ROOT else path) is not None


@lru_cache(maxsize=1024)
def _compiled(pattern: str) -> re.Pattern[str]:
    plain = [one.removeprefix("./").strip("/") for one in _alternatives(pattern)]
    try:
        found = "|".join("" if one in ("", ROOT) else _regex(one) for one in plain)
        # A name may contain a newline, and must not slip past a pattern with it.
        return re.compile(found, re.DOTALL)
    except re.error:
        raise GlobError(f"Not a usable pattern: {pattern}") from None


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


def _regex(pattern: str) -> str:
    parts = [part for part in pattern.split("/") if part]
    found = ""
    for index, part in enumerate(parts):
        first, last = index == 0, index == len(parts) - 1
        if part == "**":
            found += _any_depth(first=first, last=last)
        else:
            found += _name(part) + ("" if last or _closing(parts, index) else "/")
    return found


def _closing(parts: list[str], index: int) -> bool:
    """Whether only a final `**` follows, which brings its own separator."""
    return index == len(parts) - 2 and parts[-1] == "**"


def _any_depth(*, first: bool, last: bool) -> str:
    if last:
        return ".*" if first else "(?:/.*)?"
    return "(?:[^/]+/)*"


def _name(part: str) -> str:
    found, index = "", 0
    while index < len(part):
        char = part[index]
        end = part.find("]", index + 2) if char == "[" else -1
        if end > 0:
            found += _class(part[index + 1 : end])
            index = end
        else:
            found += {"*": "[^/]*", "?": "[^/]"}.get(char) or re.escape(char)
        index += 1
    return found


def _class(inside: str) -> str:
    negated = inside[0] in "!^"
    members = inside[1:] if negated else inside
    escaped = members.replace("\\", "\\\\").replace("[", "\\[").replace("^", "\\^")
    return f"(?!/)[{'^' if negated else ''}{escaped}]"
