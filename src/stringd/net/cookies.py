"""Cookies of one topic: what a site sets is sent back to that site, and to nobody else.

Stricter than a browser: a cookie belongs to the exact scheme, host and port that set it, whatever
its `Domain` says.
"""

import time
from collections.abc import Iterable
from typing import Final, NamedTuple
from urllib.parse import urlsplit

MAX_COOKIES: Final = 50
"""Of one site; the oldest makes room."""
MAX_SITES: Final = 50
MAX_COOKIE_CHARACTERS: Final = 4096
_FORBIDDEN: Final = frozenset(";\r\n\0")


class Cookie(NamedTuple):
    """One cookie of a site."""

    name: str
    value: str
    path: str
    expires: float | None
    """When it ends, in seconds since the epoch; None with the topic."""


Site = tuple[str, str, int | None]


class CookieJar:
    """Takes and gives cookies; lives as long as its topic."""

    def __init__(self) -> None:
        self._sites: dict[Site, dict[tuple[str, str], Cookie]] = {}

    def header(self, url: str) -> str | None:
        """What to send with a request to an address; None for nothing."""
        site, path = _site(url), urlsplit(url).path or "/"
        now = time.time()
        fitting = [
            cookie
            for cookie in self._sites.get(site, {}).values()
            if (cookie.expires is None or cookie.expires > now) and _covers(cookie.path, path)
        ]
        fitting.sort(key=lambda cookie: -len(cookie.path))
        return "; ".join(f"{each.name}={each.value}" for each in fitting) or None

    def copy(self) -> "CookieJar":
        """Another one with the same cookies."""
        other = CookieJar()
        other._sites = {site: dict(held) for site, held in self._sites.items()}
        return other

    def take(self, url: str, lines: Iterable[str]) -> None:
        """Keep what the `Set-Cookie` lines of an answer say."""
        for line in lines:
            cookie = _read(line, urlsplit(url).path)
            if cookie is None:
                continue
            held = self._sites.setdefault(_site(url), {})
            held.pop((cookie.name, cookie.path), None)
            if cookie.expires is None or cookie.expires > time.time():
                held[cookie.name, cookie.path] = cookie
            if len(held) > MAX_COOKIES:
                del held[next(iter(held))]
            if len(self._sites) > MAX_SITES:
                del self._sites[next(iter(self._sites))]


def _site(url: str) -> Site:
    parts = urlsplit(url)
    return parts.scheme, (parts.hostname or "").lower(), parts.port


def _covers(path: str, asked: str) -> bool:
    return asked == path or asked.startswith(path if path.endswith("/") else f"{path}/")


def _read(line: str, asked: str) -> Cookie | None:
    pair, *attributes = line.split(";")
    name, equals, value = (part.strip() for part in pair.partition("="))
    if not equals or not name or len(line) > MAX_COOKIE_CHARACTERS or _FORBIDDEN & {*name, *value}:
        return None
    known = {
        key.strip().lower(): text.strip()
        for key, _, text in (attribute.partition("=") for attribute in attributes)
    }
    folder = asked.rpartition("/")[0] or "/"
    path = known["path"] if known.get("path", "").startswith("/") else folder
    return Cookie(name, value, path, _end(known))


def _end(attributes: dict[str, str]) -> float | None:
    age = attributes.get("max-age", "")
    if age.removeprefix("-").isdecimal() and len(age) < 12:
        return time.time() + int(age)
    if "expires" not in attributes:
        return None
    from email.utils import parsedate_to_datetime  # few cookies need it

    try:
        return parsedate_to_datetime(attributes["expires"]).timestamp()
    except (ValueError, OverflowError):
        return None
