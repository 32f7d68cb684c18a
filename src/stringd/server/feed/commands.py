"""Commands as watchers see them: one short line, without the values people keep secret. Pure."""

import re
from typing import TYPE_CHECKING, Final

from stringd.actions.secrets import names_secret
from stringd.wire.exec import command_label

if TYPE_CHECKING:
    from stringd.runtime.topics.observer import ClientName

_SET: Final = re.compile(r"(/(?:set|var)\b[^$\n]*\$\w+)[ =].*", re.IGNORECASE)
_HEADER: Final = re.compile(r"((?:^|\s)(?:-H|--header)[ =])\s*(?:\"[^\"]*\"?|'[^']*'?|\S+)")
# `NAME=value`, `--name value` and `"name": value`. What a shell would put in is not the value, and
# a label may have been cut inside of quotes.
_NAMED: Final = re.compile(
    r"""((?<![\w-])(?:--?)?([A-Za-z_][\w-]*)=|--([A-Za-z][\w-]*)\s+|["']([\w-]+)["']\s*:\s*)"""
    r"""(?!"?\$[A-Za-z_{(]|--)(?:"[^"]*"?|'[^']*'?|[^\s"';&|])+"""
)
_LOGIN: Final = re.compile(
    r"(\bBearer\s+|(?:^|\s)(?:-u|--user)[ =]?[^\s:]+:|\b[a-z][a-z0-9+.-]*://[^/@:\s]*:)[^\s\"'@]+",
    re.IGNORECASE,
)
_CREDENTIAL: Final = re.compile(
    r"\b(?:sk-|pk-|rk-|gh[opsu]_|github_pat_|glpat-|hf_|xox[abposr]-|AKIA|ASIA|eyJ)[-\w.]{12,}"
)


def shown_command(text: str) -> str:
    """The first line of a command, without what people keep secret.

    Left out are what `/set $NAME` stores, headers, logins, and what is given to a name that says
    that it is a secret.
    """
    label = command_label(text)
    if "$" in label and (found := _SET.match(label)) is not None:
        return f"{found[1]} …"
    for pattern in (_HEADER, _LOGIN):
        label = pattern.sub(r"\1…", label)
    return _CREDENTIAL.sub("…", _NAMED.sub(_without_secret, label))


def _without_secret(found: re.Match[str]) -> str:
    name = (found[2] or found[3] or found[4]).replace("-", "_")
    return f"{found[1]}…" if names_secret(name) else found[0]


def client_name(client: "ClientName") -> str:
    """What a client calls itself, short enough to list."""
    name = client if isinstance(client, str) else client.decode("utf-8", "replace")
    return name[:80]
