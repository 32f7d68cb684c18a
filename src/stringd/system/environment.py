"""The one door through which a child process gets its environment.

A child sees the user's environment, minus what belongs to the daemon: its settings (`STRINGD_*`)
and the keys it pays model providers with. Names that would change how the shell itself starts are
dropped too, so a shell begins the same way every time.
"""

import re
from collections.abc import Mapping
from typing import Final

# Every process of one shell carries it, so those that left its session can still be found.
MARK: Final = "STRING_SHELL_ID"

_DAEMON_NAMES: Final = re.compile(
    r"STRINGD_.*|.*_API_KEY|ANTHROPIC_AUTH_TOKEN|HF_TOKEN|HUGGING_FACE_HUB_TOKEN|" + re.escape(MARK)
)
_SHELL_START_NAMES: Final = frozenset(
    {"BASH_ENV", "ENV", "BASHOPTS", "SHELLOPTS", "PROMPT_COMMAND", "PS0", "PS1", "PS2", "PS4"}
    | {"HISTFILE", "TMOUT", "IFS", "PWD", "OLDPWD", "SHLVL", "COLUMNS", "LINES", "_"}
)
# Nobody sits at this terminal: pagers and questions would only wait.
_UNATTENDED: Final = {
    "TERM": "dumb",
    "HISTFILE": "",
    "PAGER": "cat",
    "GIT_PAGER": "cat",
    "MANPAGER": "cat",
    "SYSTEMD_PAGER": "cat",
    "GIT_TERMINAL_PROMPT": "0",
    "DEBIAN_FRONTEND": "noninteractive",
}
_VARIABLE: Final = re.compile(r"[A-Za-z][A-Za-z0-9_]*")
# A variable may come from a web answer; it must not choose which code other programs load.
_STEERING: Final = re.compile(
    r"(LD_|DYLD_|BASH|GIT_|PYTHON|PERL|RUBY|NODE_|JAVA_|NPM_|GCONV|SSL_|SSH_|XDG_|STRING).*"
    r"|EDITOR|VISUAL|.*PAGER|.*PATH|.*_OPTIONS|CDPATH|GLOBIGNORE|IFS|ENV|PS\d|PROMPT_.*"
)


def child_environment(
    base: Mapping[str, str],
    *,
    home: str,
    variables: Mapping[str, str] | None = None,
    mark: str | None = None,
) -> dict[str, str]:
    """The environment of a child that works for the user whose home is `home`.

    `variables` are a session's: they are exported unless their name starts with `_`, is already
    taken, or steers how programs start.
    """
    environment = {name: value for name, value in base.items() if _belongs_to_user(name)}
    environment |= {**_UNATTENDED, "HOME": home}
    if not environment.keys() & {"LANG", "LC_ALL", "LC_CTYPE"}:
        environment["LANG"] = "C.UTF-8"
    for name, value in (variables or {}).items():
        if name not in environment and _exportable(name) and "\0" not in value:
            environment[name] = value
    if mark is not None:
        environment[MARK] = mark
    return environment


def _belongs_to_user(name: str) -> bool:
    return name not in _SHELL_START_NAMES and _DAEMON_NAMES.fullmatch(name) is None


def _exportable(name: str) -> bool:
    return (
        _VARIABLE.fullmatch(name) is not None
        and _belongs_to_user(name)
        and _STEERING.fullmatch(name) is None
    )
