"""The one door through which a child process gets its environment.

There are three kinds of children, each a row of the table below. None gets the daemon's settings
(`STRINGD_*`) or the keys it pays model providers with. A shell the user talks to has the rest of
the user's environment, tokens of other services included. What runs for an agent or an app starts
from a short list of names, so that nothing else can leak.
"""

import os
import re
from collections.abc import Mapping
from typing import Final, NamedTuple

# Every process of one shell carries it, so those that left its session can still be found.
MARK: Final = "STRING_SHELL_ID"

PROVIDER_KEYS: Final = re.compile(
    r".*_API_KEYS?|.*_API_TOKEN|ANTHROPIC_.*(?:KEY|TOKEN)|OPENAI_.*(?:KEY|TOKEN)|"
    r"AZURE_OPENAI_.*|CLAUDE_CODE_OAUTH_TOKEN|HF_TOKEN|HUGGING_FACE_HUB_TOKEN"
)
"""Variables that hold a key of a model provider. `GITHUB_TOKEN` is the user's own as well, so only
the allow lists below keep it out."""
_OURS: Final = r"STRINGD_.*|" + PROVIDER_KEYS.pattern + "|" + re.escape(MARK)

# A shell runs or obeys what these hold before it reads its command.
_SHELL_START: Final = (
    r"BASH_ENV|ENV|BASHOPTS|SHELLOPTS|PROMPT_COMMAND|PS[0124]|HISTFILE|TMOUT|IFS|PWD|OLDPWD|SHLVL|"
    r"COLUMNS|LINES|_"
)
# These choose which code programs load or how the shell reads its text.
_LOADERS: Final = (
    r"(?:LD_|DYLD_|BASH|GCONV|PYTHON|PERL|RUBY|NODE_|JAVA_|GIT_).*|CDPATH|ENV|GLOBIGNORE|IFS|PS\d|"
    r"PROMPT_COMMAND|SHELLOPTS"
)
_LOCALE: Final = r"LANG|LC_[A-Za-z0-9_]*"
_ACTION_NAMES: Final = r"PATH|LANG|LC_ALL|LC_CTYPE|TZ|TMPDIR|USER|LOGNAME"
# Nobody sits at the terminal: pagers and questions would only wait.
_UNATTENDED: Final = {
    "TERM": "dumb",
    "PAGER": "cat",
    "GIT_PAGER": "cat",
    "GIT_TERMINAL_PROMPT": "0",
    "DEBIAN_FRONTEND": "noninteractive",
}
_VARIABLE: Final = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")


class ChildPolicy(NamedTuple):
    """What one kind of child sees of a base environment, and what its caller may not add."""

    inherits: re.Pattern[str]
    excludes: re.Pattern[str]
    sets: Mapping[str, str]
    refuses: re.Pattern[str]


SHELL: Final = ChildPolicy(
    inherits=re.compile(r".*", re.DOTALL),
    excludes=re.compile(f"{_OURS}|{_SHELL_START}"),
    sets={**_UNATTENDED, "HISTFILE": "", "MANPAGER": "cat", "SYSTEMD_PAGER": "cat"},
    # A session's variable may come from a web answer; names with `_` first are its settings.
    refuses=re.compile(
        rf"_.*|{_OURS}|{_SHELL_START}|{_LOADERS}|(?:NPM_|SSL_|SSH_|XDG_|STRING).*|EDITOR|VISUAL|"
        r".*PAGER|.*PATH|.*_OPTIONS|PROMPT_.*"
    ),
)
"""Bash topics and `/exec`: the user's own shell."""

AGENT: Final = ChildPolicy(
    inherits=re.compile(
        rf"HOME|{_LOCALE}|LANGUAGE|LOGNAME|PATH|SHELL|TMPDIR|TZ|USER|XDG_(?:CACHE|CONFIG|DATA)_HOME"
    ),
    excludes=re.compile(_OURS),
    sets=_UNATTENDED,
    # Whoever allows the command sees what is added to it, but not what these would run first.
    refuses=re.compile(r"BASH_ENV|BASHOPTS|ENV|PS4|SHELLOPTS"),
)
"""What an agent of a run starts."""

ACTION: Final = ChildPolicy(
    inherits=re.compile(_ACTION_NAMES),
    excludes=re.compile(_OURS),
    sets={"TERM": "dumb"},
    refuses=re.compile(rf"{_LOADERS}|HOME|TERM|SHELL|{_ACTION_NAMES}"),
)
"""Commands of actions, and mounted MCP servers."""


def child_environment(
    policy: ChildPolicy,
    base: Mapping[str, str],
    *,
    home: str | None = None,
    additions: Mapping[str, str] | None = None,
    mark: str | None = None,
) -> dict[str, str]:
    """The environment of a child; `home` is the base's unless one is given.

    Of `additions`, those the policy refuses or has a value for already are left out.
    """
    found = {name: value for name, value in base.items() if _passes(policy, name)}
    found["PATH"] = found.get("PATH") or os.defpath
    if not found.keys() & {"LANG", "LC_ALL", "LC_CTYPE"}:
        found["LANG"] = "C.UTF-8"
    found |= policy.sets
    found["HOME"] = home or base.get("HOME") or os.path.expanduser("~")  # noqa: PTH111
    for name, value in (additions or {}).items():
        if name not in found and may_add(policy, name) and "\0" not in value:
            found[name] = value
    if mark is not None:
        found[MARK] = mark
    return found


def is_name(text: str) -> bool:
    """Whether a shell can name a variable so."""
    return _VARIABLE.fullmatch(text) is not None


def may_add(policy: ChildPolicy, name: str) -> bool:
    """Whether a caller may put a variable of this name into a child's environment."""
    return is_name(name) and policy.refuses.fullmatch(name) is None


def _passes(policy: ChildPolicy, name: str) -> bool:
    return policy.inherits.fullmatch(name) is not None and policy.excludes.fullmatch(name) is None
