"""Keeping persistent values out of what a model reads.

A value is a secret when its name says so, when it looks like a credential, or when an action
sends it in a header. Settings such as `$CITY` stay readable: apps talk about them.
"""

import re
from collections.abc import Iterable, Mapping
from typing import Final
from urllib.parse import quote

import msgspec

SHOWN_CHARACTERS: Final = 3
"""Of a secret a reply shows at most this much: enough to recognise, not to use."""
_NAME: Final = re.compile(
    r"(?:^|_)(?:AUTH|BEARER|CREDENTIALS?|CREDS?|COOKIE|KEYS?|PASS|PASSPHRASE|PASSWD|PASSWORD|"
    r"PAT|PRIVATE|PWD|SECRETS?|SIGNATURE|TOKENS?|WEBHOOK)(?:$|_|\d)|(?:KEY|TOKEN|SECRET|PASSWORD)$",
    re.IGNORECASE,
)
_CREDENTIAL: Final = re.compile(
    r"(?:sk|pk|rk|gh[opsu]|github_pat|glpat|hf|xox[abposr]|AKIA|ASIA|eyJ)[-_A-Za-z0-9][-_.A-Za-z0-9]{12,}"
    r"|(?=[^a-z]*[a-z])(?=[^A-Z]*[A-Z])(?=[^0-9]*[0-9])[A-Za-z0-9_+][A-Za-z0-9_+/=-]{23,}"
    r"|[0-9a-fA-F]{32,}|[a-z][a-z0-9+.-]*://[^/@\s]*:[^/@\s]+@\S*",
    re.ASCII,
)


def masked(value: str) -> str:
    """A secret as replies show it; very short values have nothing left to hide."""
    if len(value) <= SHOWN_CHARACTERS:
        return value
    return f"{value[:SHOWN_CHARACTERS]}…"


def names_secret(name: str) -> bool:
    """Whether something of this name is a secret, whatever it is."""
    return _NAME.search(name) is not None


def is_secret(name: str, value: str) -> bool:
    """Whether a persistent value must not be shown."""
    return names_secret(name) or _CREDENTIAL.fullmatch(value) is not None


def secrets_in(stored: Mapping[str, str], exposed: Iterable[str] = ()) -> dict[str, str]:
    """The secrets among persistent variables; those named in `exposed` always count."""
    always = frozenset(exposed)
    return {
        name: value
        for name, value in stored.items()
        if len(value) > SHOWN_CHARACTERS and (name in always or is_secret(name, value))
    }


class Mask:
    """Hides secrets in text, in the spellings URLs and JSON give them."""

    def __init__(self, secrets: Iterable[str]) -> None:
        shown: dict[str, str] = {}
        for secret in secrets:
            if len(secret) > SHOWN_CHARACTERS:
                json_text = msgspec.json.encode(secret.encode("utf-8", "replace").decode()).decode()
                for spelling in (secret, quote(secret, safe=""), json_text[1:-1]):
                    shown[spelling] = masked(secret)
        self._shown = shown
        # Longest first: a secret may begin with another one.
        spellings = sorted(shown, key=len, reverse=True)
        self._pattern = re.compile("|".join(map(re.escape, spellings))) if spellings else None

    def __call__(self, text: str) -> str:
        if self._pattern is None:
            return text
        return self._pattern.sub(lambda match: self._shown[match[0]], text)


NOTHING_HIDDEN: Final = Mask(())
